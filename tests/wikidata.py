"""Queries as people write them for Wikidata, and what the label service binds, by its manual and not by our code."""

import random
from dataclasses import dataclass

import pyoxigraph

WD, WDT = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/"
PREFIXES = {
    "wd": WD,
    "wdt": WDT,
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "schema": "http://schema.org/",
}
PROPERTIES = {"Label": "rdfs:label", "AltLabel": "skos:altLabel", "Description": "schema:description"}
GRAPH = """
    wd:Q1 wdt:P31 wd:Q5 ; wdt:P19 wd:Q64 ; wdt:P2 7 ; rdfs:label "Ann"@en, "Anna"@de .
    wd:Q1 schema:description "chess player"@en .
    wd:Q2 wdt:P31 wd:Q5 ; wdt:P19 wd:Q64, wd:Q90 ; wdt:P2 9 ; rdfs:label "Bea"@de, "Béa"@fr ; skos:altLabel "B."@en .
    wd:Q3 wdt:P31 wd:Q5 ; wdt:P2 9 .
    wd:Q4 wdt:P31 wd:Q515 ; wdt:P19 <http://example.org/place#1> ; wdt:P2 "four" ; rdfs:label "Dan" .
    wd:Q6 wdt:P31 wd:Q5 ; wdt:P19 wd:Q64 ; rdfs:label "Ann"@en-gb, "Fay"@EN ; schema:description "Malerin"@de .
    wd:Q64 rdfs:label "Berlin"@en, "Berlin"@de . wd:Q90 rdfs:label "Paris"@en . wd:Q5 rdfs:label "human"@en .
"""
TURTLE = "".join(f"@prefix {name}: <{iri}> .\n" for name, iri in PREFIXES.items()) + GRAPH
PATTERNS = {
    "?item wdt:P31 wd:Q5": ("item",),
    "?item wdt:P31 ?class ; wdt:P19 ?place": ("item", "class", "place"),
    "?item wdt:P31 ?class OPTIONAL { ?item wdt:P19 ?place }": ("item", "class", "place"),
    "{ ?item wdt:P19 wd:Q64 } UNION { ?item wdt:P31 wd:Q515 }": ("item",),
    "?item wdt:P2 ?place FILTER(?place != 7)": ("item", "place"),
    "VALUES ?item { wd:Q1 wd:Q3 wd:Q404 }": ("item",),
}
LANGUAGES = ("en", "de", "fr,de", "[AUTO_LANGUAGE],en", "de , en", "xx", "[AUTO_LANGUAGE]")


@dataclass(frozen=True)
class Labelled:
    """A query, and the same without the service: the columns of its pattern, and the names that the service adds."""

    query: str
    plain: str
    added: tuple[tuple[str, str, str], ...]
    """The entity's variable, the property and the variable that it is bound to."""
    languages: tuple[str, ...]


def labelled(seed: int) -> Labelled:
    """A query whose names the service binds, by the ends of the selected variables or by triples in its braces."""
    choose = random.Random(seed)
    pattern = choose.choice(list(PATTERNS))
    variables = PATTERNS[pattern]
    languages = choose.choice(LANGUAGES)
    is_manual = choose.random() < 0.3
    added = []
    for variable in choose.sample(variables, choose.randint(1, len(variables))):
        for ending in choose.sample(list(PROPERTIES), choose.randint(1, 2)):
            name = f"{variable}{ending}" if not is_manual else f"{variable}_{choose.choice('xyz')}{len(added)}"
            added.append((variable, PROPERTIES[ending], name))
    triples = "".join(f" ?{entity} {of} ?{name} ." for entity, of, name in added) if is_manual else ""
    param = f'bd:serviceParam wikibase:language "{languages}"'
    body = choose.choice([f"{param}.{triples}", f"{param} . {triples}", f"{triples} {param}"])
    before = choose.choice(["", "SILENT ", "# names\n"])
    service = f"SERVICE {before}wikibase:label {{ {body} }}"
    if choose.random() < 0.3:
        service = service.replace("wikibase:label", "<http://wikiba.se/ontology#label>")
    where = choose.choice([f"{pattern} {service}", f"{pattern} . {service} ."])
    if pattern.startswith("?item wdt:P31") and choose.random() < 0.3:
        where = f"{service} {pattern}"
    if choose.random() < 0.2:
        where = choose.choice(
            [f"{where} hint:Prior hint:runLast true .", f"hint:Query hint:optimizer 'None' . {where}"]
        )
    columns = [f"?{name}" for name in variables] + [f"?{name}" for _, _, name in added]
    choose.shuffle(columns)
    select = " ".join(columns)
    match choose.randint(0, 3):
        case 0:
            query = f"SELECT {select} WHERE {{ {where} }}"
        case 1:
            query = f"SELECT {select}\nWHERE {{\n  {where}\n}}\nORDER BY ?{added[0][2]}"
        case 2:
            query = f"SELECT {select} {{ {{ SELECT {select} {{ {where} }} }} }}"
        case _:
            query = f"SELECT {select} (COUNT(*) AS ?rows) WHERE {{ {where} }} GROUP BY {select}"
    plain = f"SELECT {' '.join(f'?{name}' for name in variables)} WHERE {{ {pattern} }}"
    stated = tuple(language.strip() for language in languages.split(",") if language != "[AUTO_LANGUAGE]")
    return Labelled(query, plain, tuple(added), stated or ("en",))


def answer(of: Labelled) -> tuple[list[str], list[tuple]]:
    """The columns of the plain query and the names, and the rows: terms of pyoxigraph, None where nothing is bound."""
    store = pyoxigraph.Store()
    store.load(input=TURTLE, format=pyoxigraph.RdfFormat.TURTLE)
    solutions = store.query(of.plain, prefixes=PREFIXES)
    variables = [variable.value for variable in solutions.variables]
    rows = []
    for solution in solutions:
        cells = {name: solution[name] for name in variables}
        cells |= {name: _name(store, cells[entity], property_, of.languages) for entity, property_, name in of.added}
        rows.append(tuple(cells.values()))
    return [*variables, *(name for _, _, name in of.added)], rows


def _name(store, entity, property_, languages):
    prefix, _, local = property_.partition(":")
    for language in languages:
        quads = (
            store.quads_for_pattern(entity, pyoxigraph.NamedNode(PREFIXES[prefix] + local), None, None)
            if isinstance(entity, pyoxigraph.NamedNode)
            else ()
        )
        for quad in quads:
            if (quad.object.language or "").lower() == language:
                return quad.object
    if property_ != "rdfs:label" or entity is None:
        return None
    return entity if isinstance(entity, pyoxigraph.Literal) else pyoxigraph.Literal(entity.value.removeprefix(WD))
