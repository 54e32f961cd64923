"""A small graph with every sort of term, and queries that have one right answer each, for every engine to give."""

import pyoxigraph
from yaml_tables import read_table

from pytest_queryeval.core.table import IRI, BlankNode, Literal

EX = "http://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"
PREFIXES = f"PREFIX : <{EX}>\nPREFIX xsd: <{XSD}>\n"
DATA = read_table("sparql_queries.yaml")
AT_PREFIXES = f"@prefix : <{EX}> .\n@prefix xsd: <{XSD}> .\n"
TURTLE, NAMED = (f"{AT_PREFIXES}{DATA[name]}" for name in ("graph", "named"))
QUERIES = {name: PREFIXES + body for name, body in DATA["queries"].items()}
ORDERED = frozenset(name for name in QUERIES if name.startswith("order"))
DIFFERENCES = {name: tuple(of) for name, of in DATA["differences"].items()}


def cell(text):
    """A cell of an answer: UNDEF, `true`, or a term of Turtle."""
    if text in ("UNDEF", "true", "false"):
        return {"UNDEF": None, "true": True, "false": False}[text]
    if text.startswith("_:"):
        return BlankNode(text[2:])
    ((_, _, term, _),) = pyoxigraph.parse(f"{PREFIXES}<a:a> <a:a> {text} .", format=pyoxigraph.RdfFormat.TURTLE)
    if isinstance(term, pyoxigraph.NamedNode):
        return IRI(term.value)
    datatype = "" if term.language or term.datatype.value == f"{XSD}string" else term.datatype.value
    return Literal(term.value, datatype, term.language or "")


ANSWERS = {
    name: (tuple(of["columns"]), [tuple(map(cell, row)) for row in of["rows"]]) for name, of in DATA["answers"].items()
}
FORMATS = {
    "g.ttl": '@prefix : <http://e/> . :a :b "ü"@de, :a .',
    "g.nt": '<http://e/a> <http://e/b> "\\u00FC"@de .\n<http://e/a> <http://e/b> <http://e/a> .\n',
    "g.nq": '<http://e/a> <http://e/b> "ü"@de <http://e/g> .\n<http://e/a> <http://e/b> <http://e/a> .\n',
    "g.trig": '@prefix : <http://e/> . :g { :a :b "ü"@de } :a :b :a .',
    "g.jsonld": '{"@id": "http://e/a", "http://e/b": [{"@value": "ü", "@language": "de"}, {"@id": "http://e/a"}]}',
    "g.rdf": """<?xml version="1.0"?><!DOCTYPE rdf:RDF [<!ENTITY e "http://e/">]>
        <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">
        <rdf:Description rdf:about="&e;a"><e:b xml:lang="de">ü</e:b><e:b rdf:resource="&e;a"/></rdf:Description>
        </rdf:RDF>""",
}
RDF_XML = """<?xml version="1.0"?><!DOCTYPE rdf:RDF [{entities}]>
    <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">
    <rdf:Description rdf:about="http://e/a"><e:b>&x;</e:b></rdf:Description></rdf:RDF>"""
LAUGHS = "".join(f'<!ENTITY x{level} "{f"&x{level - 1};" * 10}">' for level in range(1, 9))
LAUGHS = f'<!ENTITY x0 "{"ha" * 10}">{LAUGHS}<!ENTITY x "&x8;">'
ENTITIES = {
    "two billion laughs": LAUGHS,
    "two billion laughs behind a long comment": f"<!--{'x' * 2**21}-->{LAUGHS}",
    "two billion laughs behind many entities": "".join(f'<!ENTITY y{n} "y">' for n in range(100_000)) + LAUGHS,
    "a file": '<!ENTITY x SYSTEM "file://{folder}/secret.txt">',
    "a file of declarations": '<!ENTITY % p SYSTEM "file://{folder}/secret.txt"> %p;',
    "an entity within itself": '<!ENTITY x "&y;"><!ENTITY y "&x;">',
}
