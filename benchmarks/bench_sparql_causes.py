"""How many wrong SPARQL predictions have a cause, by their number of mistakes, and which labels the causes have.

`python benchmarks/bench_sparql_causes.py [FILE]` makes predictions with one to three mistakes for three graphs: the building
of the example suite, a library with generated data, and the Brick ontology where the package `brickschema` is installed. The
predictions and their causes are written to FILE, one JSON object a line, to be read and judged. Mistakes are mutants of
`queryeval strength`, and two that models often make: a label as a column more, and rdfs:subClassOf* where there is a class.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from pytest_queryeval import load_cases
from pytest_queryeval.core.report import CaseReport
from pytest_queryeval.core.table import Policy
from pytest_queryeval.features.strength.sparql import mutants
from pytest_queryeval.runs.evaluate import evaluate

SUITE = Path(__file__).resolve().parents[1] / "example_suite" / "sparql"
PREDICTIONS_BY_MISTAKES = {1: 4, 2: 4, 3: 2}  # of each gold
LABELS = "PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>\n"
BRICK = f"PREFIX brick: <https://brickschema.org/schema/Brick#>\n{LABELS}PREFIX skos: <http://www.w3.org/2004/02/skos/core#>\n"
BRICK_GOLDS = {
    "Which classes are directly under Sensor?": "SELECT ?class { ?class rdfs:subClassOf brick:Sensor }",
    "What are the English labels of all kinds of valves?": (
        'SELECT DISTINCT ?label { ?class rdfs:subClassOf+ brick:Valve ; rdfs:label ?label FILTER(LANG(?label) = "en") }'
    ),
    "How many kinds of setpoints are there?": "SELECT (COUNT(DISTINCT ?c) AS ?n) { ?c rdfs:subClassOf+ brick:Setpoint }",
    "Which kinds of fans have a definition that speaks of air?": (
        "SELECT ?class ?text { ?class rdfs:subClassOf* brick:Fan ; skos:definition ?text "
        'FILTER(CONTAINS(LCASE(STR(?text)), "air")) }'
    ),
    "Which five classes have the most direct subclasses?": (
        "SELECT ?class (COUNT(?sub) AS ?n) { ?sub rdfs:subClassOf ?class . ?class rdfs:subClassOf+ brick:Equipment } "
        "GROUP BY ?class ORDER BY DESC(?n) ?class LIMIT 5"
    ),
    "Which tags does an air handling unit have?": "SELECT ?tag { brick:Air_Handling_Unit brick:hasAssociatedTag ?tag }",
}
LIBRARY = f"PREFIX : <https://example.org/library#>\n{LABELS}"
LIBRARY_GOLDS = {
    "Which books has Ada Berg written?": 'SELECT ?book { ?book :author ?person . ?person rdfs:label "Ada Berg" }',
    "Who wrote novels before 1990?": (
        "SELECT DISTINCT ?person { ?book a :Novel ; :author ?person ; :year ?year FILTER(?year < 1990) }"
    ),
    "How many books has each publisher?": (
        "SELECT ?publisher (COUNT(?book) AS ?n) { ?book :publisher ?publisher } GROUP BY ?publisher"
    ),
    "Which members have not borrowed anything?": "SELECT ?m { ?m a :Member FILTER NOT EXISTS { ?m :borrowed ?book } }",
    "In which cities are the publishers of the books that member 3 has borrowed?": (
        "SELECT DISTINCT ?city { :member-3 :borrowed/:publisher/:city ?city }"
    ),
    "What are the three oldest atlases with their years?": (
        "SELECT ?book ?year { ?book a :Atlas ; :year ?year } ORDER BY ?year ?book LIMIT 3"
    ),
    "Which members borrowed a book of somebody who lives in their city?": (
        "SELECT DISTINCT ?m { ?m :borrowed ?book ; :city ?city . ?book :author ?person . ?person :city ?city }"
    ),
    "Which books of more than 400 pages have a sequel, and its year if known?": (
        "SELECT ?book ?year { ?book :pages ?p ; :sequel ?next OPTIONAL { ?next :year ?year } FILTER(?p > 400) }"
    ),
}


def main() -> None:
    chance = random.Random(4)
    records: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, source, golds in graphs(Path(folder)):
            pairs = [
                {
                    "id": f"{name}-{number}",
                    "question": question,
                    "gold": gold,
                    "predicted": predicted,
                    "mistakes": mistakes,
                }
                for number, (question, gold, predicted, mistakes) in enumerate(predictions(golds, chance))
            ]
            path = Path(folder) / f"{name}.queryeval.yaml"
            fields = ("id", "question", "gold", "predicted")
            cases = [{field: pair[field] for field in fields} for pair in pairs]
            suite = {"kind": "sparql", "source": source, "cases": cases}
            path.write_text(json.dumps(suite), encoding="utf-8")
            reports = {report["id"]: report for report in evaluate(load_cases(path))["cases"]}
            wrong = [
                {**pair, "case": report}
                for pair in pairs
                if (report := reports[str(pair["id"])])["outcome"] == "failed"
                and report["predicted"]
                and not report["predicted"]["error"]
            ]
            show(name, wrong)
            records += wrong
    show("all", records)
    if sys.argv[1:]:
        lines = (json.dumps(record) for record in records)
        Path(sys.argv[1]).write_text("\n".join(lines) + "\n", encoding="utf-8")


def show(name: str, records: list[dict[str, object]]) -> None:
    """Print how many wrong predictions have a cause, and of which labels."""
    causes: list[tuple[object, CaseReport]] = [(record["mistakes"], record["case"]) for record in records]  # type: ignore[misc]
    causes_of_cases = [case["cause"] for _, case in causes if case["cause"]]
    print(
        f"{name}: {len(causes)} wrong predictions, {len(causes_of_cases)} ({len(causes_of_cases) / max(len(causes), 1):.0%}) with a cause"
    )
    for number in PREDICTIONS_BY_MISTAKES:
        of_number = [case for mistakes, case in causes if mistakes == number]
        print(f"  {number} mistakes: {sum(bool(case['cause']) for case in of_number)} of {len(of_number)}")
    labels = Counter(edit["label"] for cause in causes_of_cases for edit in cause["edits"])
    print(f"  {', '.join(f'{label} {number}' for label, number in labels.most_common())}")


def graphs(folder: Path) -> Iterator[tuple[str, object, list[tuple[str, str]]]]:
    """Yield each graph by its name, as a source, and its questions with their golds."""
    cases = [case for path in sorted(SUITE.glob("*.queryeval.yaml")) for case in load_cases(path)]
    golds = {
        gold.query: case.question
        for case in cases
        for gold in case.golds
        if gold.query and "CONSTRUCT" not in gold.query
    }
    yield "building", str(SUITE / "building.ttl"), [(question or "", gold) for gold, question in golds.items()]
    library = folder / "library.ttl"
    library.write_text(library_triples(random.Random(11)), encoding="utf-8")
    yield "library", str(library), [(question, LIBRARY + gold) for question, gold in LIBRARY_GOLDS.items()]
    package = find_spec("brickschema")
    if package is not None and package.origin is not None:
        ontology = Path(package.origin).parent / "ontologies" / "1.3" / "Brick.ttl"
        yield "brick", str(ontology), [(question, BRICK + gold) for question, gold in BRICK_GOLDS.items()]


def library_triples(chance: random.Random) -> str:
    """Return books with their authors, publishers and members, in Turtle."""
    cities = [f":city-{number}" for number in range(6)]
    lines = [
        "@prefix : <https://example.org/library#> .",
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .",
        ":Novel rdfs:subClassOf :Book . :Atlas rdfs:subClassOf :Book . :CrimeNovel rdfs:subClassOf :Novel .",
    ]
    names = ("Ada", "Bela", "Cleo", "Dora", "Emil", "Finn"), ("Berg", "Holm", "Lund")
    people = [f"{first} {last}" for last in names[1] for first in names[0]]
    for number, name in enumerate(people):
        lines.append(f':person-{number} a :Person ; rdfs:label "{name}" ; :city {chance.choice(cities)} .')
    for number in range(5):
        lines.append(f':house-{number} a :Publisher ; rdfs:label "House {number}" ; :city {chance.choice(cities)} .')
    for number in range(90):
        lines.append(
            f':book-{number} a :{chance.choice(("Novel", "Novel", "Atlas", "CrimeNovel"))} ; rdfs:label "Book {number}" ; '
            f":author :person-{chance.randrange(len(people))} ; :publisher :house-{chance.randrange(5)} ; "
            f":pages {chance.randrange(90, 700)}"
            + (f" ; :year {chance.randrange(1950, 2020)}" if chance.random() < 0.8 else "")
            + (f" ; :sequel :book-{chance.randrange(90)}" if chance.random() < 0.3 else "")
            + " ."
        )
    for number in range(30):
        lines.append(f':member-{number} a :Member ; rdfs:label "Member {number}" ; :city {chance.choice(cities)} .')
        lines += [f":member-{number} :borrowed :book-{chance.randrange(90)} ." for _ in range(chance.randrange(5))]
    return "\n".join(lines) + "\n"


def predictions(golds: list[tuple[str, str]], chance: random.Random) -> Iterator[tuple[str, str, str, int]]:
    """Yield questions with gold, a prediction that has mistakes, and their number."""
    for question, gold in golds:
        queries_so_far = {gold}
        for mistakes, number in PREDICTIONS_BY_MISTAKES.items():
            for _ in range(number):
                predicted = gold
                for _ in range(mistakes):
                    predicted = with_mistake(predicted, chance)
                if predicted not in queries_so_far:
                    queries_so_far.add(predicted)
                    yield question, gold, predicted, mistakes


def with_mistake(query: str, chance: random.Random) -> str:
    """Return a query with one mistake more."""
    if chance.random() < 0.2 and "SELECT" in query and "Label" not in query and "GROUP" not in query:
        variable = query.partition("?")[2].split()[0].strip("(){}*+")
        head, brace, tail = query.rpartition("}")
        column = f"?{variable} ?{variable}Label"
        labelled = f"{head} OPTIONAL {{ ?{variable} <http://www.w3.org/2000/01/rdf-schema#label> ?{variable}Label }} {brace}{tail}"
        return labelled.replace(f"?{variable}", column, 1)
    if chance.random() < 0.1 and " a " in query:
        return query.replace(" a ", " a/<http://www.w3.org/2000/01/rdf-schema#subClassOf>* ", 1)
    by_operator: dict[str, list[str]] = {}
    for mutant in mutants(query, {}, Policy(), lambda _: None):
        if not mutant.equivalent:
            by_operator.setdefault(mutant.operator, []).append(mutant.query)
    return chance.choice(by_operator[chance.choice(sorted(by_operator))]) if by_operator else query


if __name__ == "__main__":
    main()
