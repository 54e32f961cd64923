"""`arity_f1` of texts without a source: the columns that queries select."""

import pytest

from pytest_queryeval import evaluate, load_cases

GOLD = "gold_table: {columns: [name, age], rows: [[Ann, '30'], [Bob, '25'], [Cy, '35']]}"


def result(folder, kind, predicted, gold=GOLD):
    path = folder / "s.queryeval.yaml"
    path.write_text(
        f"kind: {kind}\nmetrics: [arity_f1]\nthresholds: {{arity_f1: 0.5}}\n"
        f"cases:\n  - id: a\n    {gold}\n    predicted: |\n      {predicted}\n",
        encoding="utf-8",
    )
    (case,) = evaluate(load_cases(path))["cases"]
    return case


@pytest.mark.parametrize(
    ("kind", "predicted", "score"),
    [
        ("sparql", "SELECT ?n ?a WHERE {}", 1),
        ("sparql", "SELECT ?n WHERE {}", 2 / 3),
        ("sparql", "SELECT DISTINCT ?n (COUNT(?a) AS ?c) (EXISTS { SELECT ?z { ?z ?p ?o } } AS ?e) WHERE {}", 0.8),
        ("sparql", "ASK {}", 2 / 3),
        ("sparql", "CONSTRUCT WHERE { ?s ?p ?o }", 0.8),
        ("sparql", "I do not know", 0),
        ("sparql", "DELETE WHERE { ?s ?p ?o }", 0),
        ("sql", "SELECT name, max(age) AS oldest FROM person GROUP BY name", 1),
        ("sql", "WITH p AS (SELECT * FROM person) SELECT name FROM p UNION SELECT name FROM q", 2 / 3),
        ("sql", "SELECT name, count(*), 1 FROM person GROUP BY 1", 0.8),
        ("sql", "SELECT FROM WHERE", 0),
    ],
)
def test_the_columns_that_a_query_selects_count(tmp_path, kind, predicted, score):
    case = result(tmp_path, kind, predicted)

    assert case["scores"] == {"arity_f1": pytest.approx(score)}
    assert case["outcome"] == ("passed" if score >= 0.5 else "failed")


def test_two_texts_are_compared_as_well(tmp_path):
    assert result(tmp_path, "sparql", "SELECT ?a {}", gold="gold: SELECT ?x ?y {}")["scores"]["arity_f1"] == 2 / 3


@pytest.mark.parametrize(
    ("kind", "predicted"),
    [("sparql", "SELECT * WHERE { ?s ?p ?o }"), ("sql", "SELECT p.*, 1 FROM person AS p"), ("sql", "SELECT * FROM t")],
)
def test_all_columns_of_something_have_no_number_without_a_source(tmp_path, kind, predicted):
    case = result(tmp_path, kind, predicted)

    assert case["outcome"] == "error"
    assert "nothing says which columns `*` selects" in str(case)
