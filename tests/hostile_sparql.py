"""Queries that no model should write, and what may come of them: kinds of failure, or an answer.

`{url}` stands for an address of this machine at which nobody may knock, `{folder}` for a folder with a file of triples.
"""

from __future__ import annotations

ANSWER = "answer"
P = "PREFIX : <http://e/> "

UPDATES = {
    "query and update": "ASK {} ; DROP ALL",
    "NUL byte": "SELECT * { ?s ?p ?o }\0DROP ALL",
    "behind an escaped comment": "#\\u000A SELECT * {}#\nDROP ALL",
    "insert data": "INSERT DATA { <http://e/a> <http://e/b> 1 }",
    "insert where": "INSERT { ?s <http://e/x> ?o } WHERE { ?s ?p ?o }",
    "delete where": "DELETE WHERE { ?s ?p ?o }",
    "delete and insert": "DELETE { ?s ?p ?o } INSERT { ?o ?p ?s } WHERE { ?s ?p ?o }",
    "with": "WITH <http://e/g> DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }",
    "with a prefixed name": "PREFIX g: <http://e/> WITH g:g DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }",
    "with within a named subquery": "SELECT * WITH { DELETE WHERE { ?s ?p ?o } } AS %i WHERE { INCLUDE %i }",
    "named subquery with an insert": "WITH { INSERT { ?s ?p 1 } WHERE { ?s ?p ?o } } AS %i SELECT * { INCLUDE %i }",
    "behind a named subquery": "WITH { SELECT * { ?s ?p ?o } } AS %i DELETE WHERE { ?s ?p ?o }",
    "behind a named query": "WITH %i AS { SELECT * { ?s ?p ?o } } SELECT * { INCLUDE %i } ; DROP ALL",
    "named subquery of an update": "WITH %i AS { DROP ALL } SELECT * { INCLUDE %i }",
    "load": "LOAD <{url}>",
    "load a file": "LOAD SILENT <file://{folder}/secret.nt> INTO GRAPH <http://e/g>",
    "clear": "CLEAR ALL",
    "drop": "drop silent default",
    "create": "CREATE GRAPH <http://e/g>",
    "add": "ADD DEFAULT TO <http://e/g>",
    "move": "MOVE DEFAULT TO <http://e/g>",
    "copy": "COPY DEFAULT TO <http://e/g>",
    "behind a prologue": "BASE <http://e/> PREFIX : <x> # SELECT\nDROP ALL",
    "escaped": "\\u0044ROP ALL",
}
SERVICES = {
    "service": "SELECT * { SERVICE <{url}> { ?s ?p ?o } }",
    "lower case": "select * { service <{url}> { ?s ?p ?o } }",
    "mixed case": "SELECT * { sErViCe <{url}> { ?s ?p ?o } }",
    "silent": "SELECT * { SERVICE SILENT <{url}> { ?s ?p ?o } }",
    "no space": "SELECT*{SERVICE<{url}>{ ?s ?p ?o }}",
    "variable": "SELECT * { BIND(<{url}> AS ?x) SERVICE?x{ ?s ?p ?o } }",
    "values": "SELECT * { VALUES ?x { <{url}> } SERVICE ?x { ?s ?p ?o } }",
    "prefixed name": "PREFIX : <{url}> SELECT * { SERVICE:x{ ?s ?p ?o } }",
    "silent prefixed name": "PREFIX a: <{url}> SELECT * { SERVICE SILENT a: { ?s ?p ?o } }",
    "prefix that is glued to it": "PREFIX a: <{url}> SELECT * { SERVICEa:x{ ?s ?p ?o } }",
    "prefix that is glued to silent": "PREFIX a: <{url}> SELECT * { SERVICESILENTa:x{ ?s ?p ?o } }",
    "base": "BASE <{url}> SELECT * { SERVICE <x> { ?s ?p ?o } }",
    "escaped": "SELECT * { \\u0053ERVICE <{url}> { ?s ?p ?o } }",
    "escaped in full": "SELECT * { \\U00000053\\u0065rvice <{url}> { ?s ?p ?o } }",
    "sub-select": "SELECT * { { SELECT * { SERVICE <{url}> { ?s ?p ?o } } } }",
    "exists": "SELECT * { ?a ?b ?c FILTER EXISTS { SERVICE <{url}> { ?s ?p ?o } } }",
    "optional": "ASK { OPTIONAL { SERVICE <{url}> { ?s ?p ?o } } }",
    "minus": "SELECT * { ?s ?p ?o MINUS { SERVICE <{url}> { ?s ?p ?o } } }",
    "construct": "CONSTRUCT { ?s ?p ?o } { SERVICE <{url}> { ?s ?p ?o } }",
    "describe": "DESCRIBE ?s { SERVICE <{url}> { ?s ?p ?o } }",
    "named subquery": "SELECT * WITH { SELECT * { SERVICE <{url}> { ?s ?p ?o } } } AS %i WHERE { INCLUDE %i }",
    "named query": "WITH %i AS { SERVICE <{url}> { ?s ?p ?o } } SELECT * { INCLUDE %i }",
    "behind a comment": "SELECT * { # fine\rSERVICE # <http://e/>\n<{url}> { ?s ?p ?o } }",
    "behind a text": "SELECT * { BIND('#\\'' AS ?q) SERVICE <{url}> { ?s ?p ?o } }",
    "behind a number": "SELECT * { ?a ?b 1SERVICE<{url}>{ ?s ?p ?o } }",
    # rdflib compares keywords in upper case, and these letters have it.
    "long s": "SELECT * { \u017fervice <{url}> { ?s ?p ?o } }",
    "dotless i": "SELECT * { SERV\u0131CE <{url}> { ?s ?p ?o } }",
    # What looks like an IRI from `<` to `>` is a comparison, and what looks like an open long text is two short ones:
    # both hide what stands behind them from a simple scan.
    "between less and greater": "SELECT * { FILTER(1<2)SERVICE#>\n<{url}>{ ?s ?p ?o } }",
    "between exists and greater": "SELECT * { FILTER(EXISTS{}<2)SERVICE#>\n<{url}>{ ?s ?p ?o } }",
    "hidden name with an escape": "PREFIX : <{url}> SELECT * { VALUES ?x { '''a' } SERVICE :a\\-b { ?s ?p ?o } }",
    "hidden silent with comments": "SELECT * { VALUES ?x { '''a' } SERVICE#\nSILENT#\n<{url}>#\n{ ?s ?p ?o } }",
    "behind what looks like a long text": "SELECT * { VALUES ?x { '''a' } SERVICE <{url}> { ?s ?p ?o } }",
    "in what looks like a text": "SELECT * { FILTER(1<2&&'a>'!='b') SERVICE <{url}> { ?s ?p 'c' } }",
}
# No engine takes these for SERVICE; a scan may.
NEAR_SERVICES = {
    "behind a dot": "PREFIX : <http://e/>  SELECT * { ?a ?b :c.SERVICE <{url}> { ?s ?p ?o } }",
    "escaped twice": "SELECT * { \\u005Cu0053ERVICE <{url}> { ?s ?p ?o } }",
}
WORDS = {
    "text": 'SELECT ?s { ?s ?p ?o FILTER(?o != "SERVICE <http://e/> {}") } LIMIT 1',
    "long text": "SELECT ?s { ?s ?p ?o FILTER(?o != '''it's a\nSERVICE <http://e/> { }''') } LIMIT 1",
    "prefix": "PREFIX services: <http://e/> SELECT ?o { ?s services:next ?o } LIMIT 1",
    "prefix of that name": "PREFIX service: <http://e/> SELECT ?o { ?s service:next ?o } LIMIT 1",
    "named graph": "PREFIX service: <http://e/> ASK { ?s ?p ?o OPTIONAL { GRAPH service:g { ?s ?q ?x } } }",
    "local name": f"{P} SELECT ?s {{ ?s :next ?o OPTIONAL {{ ?s :service ?x }} }} LIMIT 1",
    "variable": "SELECT ?service { ?service ?p ?o } LIMIT 1",
    "dollar variable": "SELECT $SERVICE { $SERVICE ?p ?o } LIMIT 1",
    "comment": "SELECT ?s { ?s ?p ?o } # SERVICE <http://e/> { }\nLIMIT 1",
    "IRI": "SELECT ?s { ?s ?p ?o FILTER(?s != <http://e/#SERVICE>) } LIMIT 1",
    "language tag": 'SELECT ?s { ?s ?p ?o FILTER(?o != "a"@service) } LIMIT 1',
    "words of updates": 'SELECT ?drop ("DELETE" AS ?insert) { ?drop ?p ?o } LIMIT 1',
}
FROM = {
    "from the web": "SELECT * FROM <{url}> { ?s ?p ?o }",
    "from a file": "SELECT * FROM <file://{folder}/secret.nt> { ?s ?p ?o }",
    "from named": "SELECT * FROM NAMED <{url}> { GRAPH ?g { ?s ?p ?o } }",
    "from a named file": "SELECT * FROM NAMED <file://{folder}/secret.nt> { GRAPH ?g { ?s ?p ?o } }",
    "graph": "SELECT * { GRAPH <file://{folder}/secret.nt> { ?s ?p ?o } }",
}
CROSS = " ".join(f"?a{number} ?b{number} ?c{number} ." for number in range(8))
SLOW = {
    "cartesian count": f"SELECT (COUNT(*) AS ?n) {{ {CROSS} }}",
    "cartesian rows": f"SELECT * {{ {CROSS} FILTER(CONCAT(STR(?a0), STR(?c7)) = 'no') }}",
    "cartesian order": f"SELECT ?a0 {{ {CROSS} }} ORDER BY ?c1 ?a0",
    "cartesian distinct": f"SELECT (COUNT(DISTINCT *) AS ?n) {{ {CROSS} }}",
    "cartesian construct": f"CONSTRUCT {{ ?a0 ?b1 ?c2 }} {{ {CROSS} FILTER(?a0 = ?c7) }}",
    "group_concat bomb": f"SELECT (STRLEN(GROUP_CONCAT(STR(?a0))) AS ?n) {{ {CROSS} }}",
    "regular expression": f'SELECT ?a0 {{ {CROSS} FILTER(REGEX(CONCAT(STR(?a0), STR(?c3)), "^(a|b|http.*)*c$")) }}',
}
# rdflib follows a path by calls within calls, as far as Python allows.
PATHS = {
    "deep path": f"{P} SELECT (COUNT(*) AS ?n) {{ ?a :next+ ?b . ?b :next+ ?c . ?c :next* ?d }}",
    "nested path": f"{P} SELECT (COUNT(*) AS ?n) {{ ?a ((:next*)*/(^:next|:next)+)+ ?b . ?b (:next/^:next)* ?c }}",
}
GROWTH = " ".join(f"BIND(CONCAT(?t{n}, ?t{n}, ?t{n}, ?t{n}) AS ?t{n + 1})" for n in range(30))
REPLACED = 'REPLACE(REPLACE(REPLACE(?t, ".", "$0$0$0$0$0$0$0$0"), ".", "$0$0$0$0$0$0$0$0"), ".", "$0$0$0$0$0$0$0$0")'
BACKTRACKING = f'SELECT * {{ BIND(REGEX("{"a" * 40}!", "^(a+)+$") AS ?x) }}'
LARGE = {
    "concat growth": f'SELECT (STRLEN(?t30) AS ?n) {{ BIND("0123456789" AS ?t0) {GROWTH} }}',
    "replace growth": f'SELECT (STRLEN({REPLACED.replace("?t", REPLACED)}) AS ?n) {{ BIND("{"a" * 20_000}" AS ?t) }}',
    "too many rows": "SELECT * { ?a ?b ?c . ?d ?e ?f }",
    "too many triples": "CONSTRUCT { ?a ?e ?f } { ?a ?b ?c . ?d ?e ?f }",
}
INVALID = {
    "prose": "Sure! Here is your query.",
    "prose behind a query": "ASK { ?s ?p ?o }\n\nThis query will not delete or insert anything.",
    "prose behind a semicolon": "ASK { ?s ?p ?o };\nWith this query, nothing is asked of a SERVICE.",
    "fenced block": "```sparql\nSELECT * { ?s ?p ?o }\n```",
    "comment": "# nothing here",
    "prologue": "PREFIX : <http://e/>",
    "two queries": "SELECT * { ?s ?p ?o } ; SELECT * { ?s ?p ?o }",
    "two queries without a mark": "ASK {} ASK {}",
    "SQL": "SELECT s FROM t WHERE p = 1",
    "unknown prefix": "SELECT * { ?s nowhere:p ?o }",
    "unfinished text": 'SELECT * { ?s ?p "x }',
    "unfinished IRI": "SELECT * { ?s <http://e/ ?o }",
    "unfinished group": "SELECT * { ?s ?p ?o",
    "lone surrogate": 'SELECT * { ?s ?p "\ud800" }',
    "escaped surrogate": 'SELECT * { ?s ?p "\\ud800" }',
    "escape codes": "SELECT * { ?s \x1b[2J\r\n##[error]fine\u202e }",
    "over the length limit": f"ASK {{}} #{'x' * 100_000}",
}
# How deep an engine follows is its own affair, as long as it comes back.
DEEP = {
    "braces": f"SELECT * {'{' * 4_000} ?s ?p ?o {'}' * 4_000}",
    "unfinished braces": f"SELECT * {'{' * 40_000}",
    "parentheses": f"SELECT ({'(' * 20_000}1{')' * 20_000} AS ?x) {{}}",
    "sum": f"SELECT (1{'+1' * 30_000} AS ?x) {{}}",
    "negations": f"SELECT ({'! ' * 30_000}true AS ?x) {{}}",
    "optionals": f"SELECT * {{ {'OPTIONAL { ' * 3_000} ?s ?p ?o {'} ' * 3_000} }}",
    "sub-selects": f"SELECT * {{ {'{ SELECT * { ' * 2_000} ?s ?p ?o {'} } ' * 2_000} }}",
    "unions": f"SELECT (COUNT(*) AS ?n) {{ {{ }} {'UNION { } ' * 6_000} }}",
    "blank nodes": f"ASK {{ ?s ?p {'[ ?p ' * 8_000} 1 {']' * 8_000} }}",
    "lists": f"ASK {{ ?s ?p {'( ' * 15_000} {') ' * 15_000} }}",
    "path": f"{P} SELECT (COUNT(*) AS ?n) {{ ?a {'/'.join([':next'] * 5_000)} ?b }}",
    "path of groups": f"{P} ASK {{ ?a {'(' * 8_000}:next{')*' * 8_000} ?b }}",
    "filters": f"SELECT * {{ {'FILTER EXISTS { ' * 3_000} ?s ?p ?o {'} ' * 3_000} }}",
    "quoted triples": f"ASK {{ {'<< ' * 8_000} ?s ?p ?o {'>> ?p ?o ' * 8_000} }}",
    "backtracking": BACKTRACKING,
}

HOSTILE = [
    (f"{group}: {name}", query, frozenset(kinds))
    for group, table, kinds in (
        ("update", UPDATES, {"unsafe"}),
        ("service", SERVICES, {"unsafe"}),
        ("near service", NEAR_SERVICES, {"unsafe", "invalid"}),
        ("word", WORDS, {ANSWER}),
        ("from", FROM, {ANSWER}),
        ("slow", SLOW, {"timeout", "too_large"}),
        ("path", PATHS, {"timeout", "too_large", "error"}),
        ("large", LARGE, {"timeout", "too_large"}),
        ("invalid", INVALID, {"invalid"}),
        ("deep", DEEP, {"invalid", "timeout", "too_large", ANSWER}),
    )
    for name, query in table.items()
]
