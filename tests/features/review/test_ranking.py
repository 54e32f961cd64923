"""The ranking of cases by how likely their golds are wrong."""

import pytest
from suites import write

from pytest_queryeval import load_cases
from pytest_queryeval.core.model import Abstention, QueryOrAnswer
from pytest_queryeval.evaluation.session import Session  # white box: one session for all cases
from pytest_queryeval.features.review.answers import SystemAnswer  # white box: answers without reports
from pytest_queryeval.features.review.ranking import (  # white box: answers without reports
    correlations,
    examine_case,
    rank_cases,
    ranking_data,
)

SHOP = """
CREATE TABLE product (name TEXT, price REAL);
INSERT INTO product VALUES ('pear', 2), ('plum', 2), ('fig', 5), ('kiwi', 5);
"""
HEAD = "kind: sql\nsource: {sqlite: {script: shop.sql}}\n"
NAMES = "SELECT name FROM product"
CHEAP = f"{NAMES} WHERE price < 3"
DEAR = f"{NAMES} WHERE price > 3"


@pytest.fixture
def rank(tmp_path, monkeypatch):
    """Return the ranking of the cases of a suite, each with what systems predict by the id of the case."""
    monkeypatch.chdir(tmp_path)
    write(SHOP, "shop.sql")

    def ranking(cases, predictions, **settings):
        path = write(f"{HEAD}cases:\n{cases}")
        with Session() as session:
            return rank_cases(
                examine_case(
                    case,
                    f"s.queryeval.yaml::{case.id}",
                    {system: answers[case.id] for system, answers in predictions.items() if case.id in answers},
                    session,
                    **settings,
                )
                for case in load_cases(path, require_prediction=False)
            )

    return ranking


@pytest.fixture
def texts(rank):
    """Return the sentences of the evidence on the one case of a suite."""

    def evidence(case, *queries, **settings):
        predictions = {f"s{number}": {"a": answer(query)} for number, query in enumerate(queries)}
        (ranked,) = rank(f"  - {{id: a, {case}}}\n", predictions, **settings)
        return [item["text"] for item in ranked.evidence]

    return evidence


def answer(query):
    return SystemAnswer(
        prediction=query if query is None or isinstance(query, Abstention) else QueryOrAnswer(query=query)
    )


def answers(**queries):
    return {id_: answer(query) for id_, query in queries.items()}


def gold(query):
    return f'gold: "{query}"'


def test_the_case_comes_first_whose_gold_most_systems_contradict_with_one_answer(rank):
    cases = f"  - {{id: all, {gold(NAMES)}}}\n  - {{id: cheap, {gold(DEAR)}}}\n"
    right = answers(all=f"{NAMES} WHERE 1", cheap=CHEAP)
    wrong = answers(all="SELECT price FROM product", cheap=f"{CHEAP} ORDER BY 1")

    ranking = ranking_data(rank(cases, {"a": right, "b": right, "c": wrong}))

    assert [case["case"] for case in ranking] == ["cheap", "all"]
    first = ranking[0]
    assert first.pop("gold").startswith("sha256:")
    edit = {"label": "wrong-operator", "clause": "WHERE", "change": "> → <"}
    assert first == {
        "case": "cheap",
        "suite": "s.queryeval.yaml",
        "nodeid": "s.queryeval.yaml::cheap",
        "rank": 1,
        "evidence": [
            {"kind": "systems", "text": "3 of 3 systems give the same answer, gold another"},
            {"kind": "edit", "text": "1 edit from gold to theirs: WHERE: > → < (wrong-operator)", "edits": [edit]},
        ],
        "answers": [
            {"systems": [], "is_gold": True, "query": DEAR},
            {"systems": ["a", "b", "c"], "is_gold": False, "query": CHEAP},
        ],
    }
    assert ranking[1]["evidence"][0]["text"] == "1 of 3 systems disagrees with gold"
    assert ranking[1]["answers"][0]["systems"] == ["a", "b"]


def test_cases_with_the_same_doubt_keep_their_order(rank):
    cases = "".join(f"  - {{id: c{number}, {gold(NAMES)}}}\n" for number in range(12))

    assert [ranked.case.id for ranked in rank(cases, {})] == [f"c{number}" for number in range(12)]


def test_a_system_with_gold_counts_more_than_one_against_it(rank):
    cases = "".join(f"  - {{id: {name}, {gold(CHEAP)}}}\n" for name in ("two", "one"))
    against = answers(two=DEAR, one=DEAR)

    ranking = rank(cases, {"a": against, "b": answers(two=DEAR, one="oops"), "c": answers(two=CHEAP, one="oops")})

    assert [ranked.case.id for ranked in ranking] == ["one", "two"]


def test_the_fewer_edits_lead_from_gold_to_the_answer_the_greater_is_the_doubt(rank):
    golds = {"two": "SELECT price FROM product WHERE price > 3", "one": CHEAP}
    cases = "".join(f"  - {{id: {name}, {gold(query)}}}\n" for name, query in golds.items())
    predictions = answers(two=CHEAP, one=DEAR)

    ranking = rank(cases, {"a": predictions, "b": predictions})

    assert [ranked.case.id for ranked in ranking] == ["one", "two"]
    assert [[len(item.get("edits", ())) for item in ranked.evidence] for ranked in ranking] == [[0, 1], [0, 2]]


def test_an_edit_of_fewer_words_raises_the_doubt_more(rank):
    golds = {
        "long": f"{NAMES} WHERE price IN (SELECT max(price) FROM product WHERE name > 'a')",
        "short": DEAR,
        "far": f"{NAMES} ORDER BY price DESC, name DESC LIMIT 3",
    }
    cases = "".join(f"  - {{id: {name}, {gold(query)}}}\n" for name, query in golds.items())

    ranking = rank(cases, {"a": dict.fromkeys(golds, answer(CHEAP))})

    assert ranking[0].case.id == "short"
    assert [ranked.signs["closeness"] > 0 for ranked in ranking] == [True, True, True]


def test_texts_of_values_are_compared_where_there_is_no_query(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write("kind: json\ncases:\n  - {id: near, gold: {a: 1, b: 2}}\n  - {id: far, gold: {c: [3, 4, 5]}}\n")
    with Session() as session:
        ranking = rank_cases(
            examine_case(case, case.id, {"s": answer('{"a": 1, "b": 3}')}, session)
            for case in load_cases(path, require_prediction=False)
        )

    assert [ranked.case.id for ranked in ranking] == ["near", "far"]


@pytest.mark.parametrize(
    ("query", "prediction", "difference"),
    [
        ("SELECT price FROM product", "SELECT DISTINCT price FROM product", "duplicates"),
        (f"{NAMES} ORDER BY name", f"{NAMES} ORDER BY name DESC", "order"),
        (NAMES, "SELECT name, price FROM product", "columns"),
        ("SELECT name, price FROM product", NAMES, "columns"),
        (NAMES, "SELECT upper(name) FROM product", "letter case"),
        (NAMES, CHEAP, None),
        (NAMES, "SELECT name FROM product WHERE 0", "no rows"),
        ("SELECT name, price FROM product WHERE 0", "SELECT name FROM product WHERE 0", None),
    ],
)
def test_evidence_says_in_what_alone_two_answers_differ(rank, query, prediction, difference):
    (ranked,) = rank(f"  - {{id: a, {gold(query)}}}\n", {"s": answers(a=prediction)})

    differences = [item.get("difference") for item in ranked.evidence if item["kind"] == "edit"]
    assert differences in ([difference], [] if difference is None else None)


def test_answers_are_equal_as_the_case_compares_them(texts):
    case = f"{gold(NAMES)}, compare: {{case: ignore, duplicates: ignore, extra_columns: allow}}"

    assert texts(case, "SELECT DISTINCT upper(name) FROM product", "SELECT price, name FROM product") == []


def test_gold_columns_count_for_gold_and_not_between_systems(rank):
    case = f"  - {{id: a, {gold('SELECT name, price FROM product')}, compare: {{gold_columns: [name]}}}}\n"

    (ranked,) = rank(case, {"a": answers(a=NAMES), "b": answers(a=CHEAP), "c": answers(a=f"{CHEAP} AND 1")})

    assert [group.systems for group in ranked.answers] == [["a"], ["b", "c"]]


@pytest.mark.parametrize(
    ("query", "systems"),
    [
        (NAMES, [[], ["a", "b", "c"]]),
        (f"{NAMES} ORDER BY name", [[], ["a", "b"], ["c"]]),
        (f"{NAMES} ORDER BY price", [[], ["a", "b"], ["c"]]),
    ],
)
def test_the_order_of_rows_counts_between_systems_where_gold_has_one(rank, query, systems):
    queries = [f"{CHEAP} ORDER BY name", f"{CHEAP} ORDER BY 1", f"{CHEAP} ORDER BY name DESC"]

    predictions = {name: answers(a=text) for name, text in zip("abc", queries, strict=True)}
    (ranked,) = rank(f"  - {{id: a, {gold(query)}}}\n", predictions)

    assert [group.systems for group in ranked.answers] == systems


def test_an_answer_without_order_is_in_exactly_its_order_where_gold_has_one(rank):
    unordered = "VALUES ('plum'), ('pear')"

    (ranked,) = rank(
        f"  - {{id: a, {gold(f'{NAMES} ORDER BY name')}}}\n",
        {
            "a": answers(a=unordered),
            "b": answers(a=f"{CHEAP} ORDER BY name"),
            "c": answers(a=f"{CHEAP} ORDER BY 1 DESC"),
        },
    )

    assert [group.systems for group in ranked.answers] == [[], ["a", "c"], ["b"]]


def test_systems_that_order_what_gold_leaves_in_any_order_speak_against_it(texts):
    cheapest = f"{NAMES} ORDER BY price LIMIT 1"

    assert texts(gold(NAMES), f"{NAMES} ORDER BY 1", NAMES) == ["1 of 2 systems orders rows, gold does not"]
    assert texts(gold(f"{NAMES} LIMIT 1"), cheapest, cheapest)[0] == "2 of 2 systems order rows, gold does not"
    assert texts(gold("SELECT max(price) FROM product"), "SELECT max(price) FROM product ORDER BY 1") == []


def test_a_right_answer_that_depends_on_a_tie_is_evidence(texts):
    cheapest = f"{NAMES} ORDER BY price LIMIT 1"

    assert "the only system is right by a choice among rows that tie" in texts(gold(cheapest), f"{cheapest} OFFSET 1")


def test_failed_and_missing_queries_count_as_systems_that_give_no_answer(texts):
    assert texts(gold(NAMES), CHEAP, f"{CHEAP} AND 1", "SELECT oops", None)[0] == (
        "2 of 4 systems give the same answer, gold another"
    )
    assert texts(gold(NAMES), "SELECT oops", None, "") == []


def test_systems_that_abstain_together_contradict_a_gold(texts):
    assert texts(gold(NAMES), Abstention("no"), Abstention(), NAMES) == ["2 of 3 systems abstain, gold has an answer"]


def test_answers_to_a_question_that_is_said_to_have_none_contradict_it(texts):
    assert texts("question: Why?, answerable: false", NAMES, f"{NAMES} WHERE 1", Abstention()) == [
        "2 of 3 systems give the same answer, gold says that there is none"
    ]


def test_a_gold_that_fails_is_evidence_by_itself(texts):
    assert texts(gold("SELECT nme FROM product"), NAMES, NAMES) == [
        "2 of 2 systems give the same answer, gold another",
        "gold query failed (invalid): no such column: nme: did you mean 'name'?",
    ]


def test_each_of_several_golds_is_right(rank):
    case = f'  - {{id: a, gold_any: ["{CHEAP}", "{DEAR}"]}}\n'

    (ranked,) = rank(case, {"a": answers(a=CHEAP), "b": answers(a=f"{DEAR} AND 1"), "c": answers(a=NAMES)})

    assert [(group.is_gold, group.systems) for group in ranked.answers] == [
        (True, ["a"]),
        (True, ["b"]),
        (False, ["c"]),
    ]


def test_stated_answers_are_golds_without_a_query(rank):
    case = "  - {id: a, gold_table: {columns: [n], rows: [[pear], [plum]]}}\n"

    data = ranking_data(rank(case, {"a": answers(a=CHEAP), "b": answers(a=DEAR)}))

    assert [entry["query"] for entry in data[0]["answers"]] == [None, DEAR]
    assert data[0]["answers"][0]["systems"] == ["a"]


def test_json_answers_are_compared_as_their_kind_does(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write("kind: json\ncases: [{id: a, gold: {city: Rome, year: 1}}]\n")
    (case,) = load_cases(path, require_prediction=False)
    texts = ['{"city": "Rome", "year": 2}', '{"year": 2, "city": "Rome"}', '{"year": 1, "city": "Rome"}']

    with Session() as session:
        predictions = {name: answer(text) for name, text in zip("abc", texts, strict=True)}
        ranked = examine_case(case, "n", predictions, session)

    assert [group.systems for group in ranked.answers] == [["c"], ["a", "b"]]
    assert ranked.evidence[1]["text"] == "1 edit from gold to theirs: $.year: 1 → 2 (wrong-value)"


def test_rules_of_check_are_evidence_unless_they_are_silenced(texts):
    query = f"{NAMES} WHERE name = 'Fig'"
    spelled = "'Fig' is not in product.name, 'fig' is, 1 time: fix the gold, or the data"

    assert texts(gold(query)) == [
        (
            "the gold answer has no rows, so any query that returns nothing passes: "
            "fix the query, or write `allow_empty: true`"
        ),
        spelled,
    ]
    assert texts(f"{gold(query)}, check: {{ignore: {{gold-empty: so be it}}}}") == [spelled]


def test_a_source_that_does_not_answer_is_a_problem_and_no_evidence(rank):
    case = "  - {id: a, source: {sqlite: {script: none.sql}}, " + gold(NAMES) + "}\n"

    (ranked,) = rank(case, {"a": answers(a=NAMES)})

    assert "none.sql" in ranked.problem
    assert (ranked.evidence, ranked.answers, ranked.doubt) == ([], (), 0)


def test_the_ranking_is_of_the_golds_of_the_suite_whatever_was_decided(rank):
    suite = f"  - {{id: a, {gold(CHEAP)}}}\nreviews: r.jsonl\n"
    write(
        '{"suite": "s.queryeval.yaml", "case": "a", "decision": "wrong", "answers": [{"query": "SELECT 1"}], '
        '"reviewer": "anna", "at": "2026-11-23T10:00:00Z"}',
        "r.jsonl",
    )

    (ranked,) = rank(suite, {"a": answers(a=DEAR), "b": answers(a="SELECT 1")})

    assert [group.execution.query for group in ranked.answers if group.is_gold] == [CHEAP]
    assert ranked.case.review is None


def test_judgements_against_the_verdict_come_before_all_else(rank):
    cases = f"  - {{id: a, {gold(CHEAP)}}}\n  - {{id: b, {gold(CHEAP)}}}\n"
    predictions = {name: answers(a=DEAR) for name in "abcdefgh"}
    path = write(f"{HEAD}cases:\n{cases}")

    with Session() as session:
        ranking = rank_cases(
            examine_case(
                case,
                case.id,
                {name: answer(DEAR) for name in predictions} if case.id == "a" else {},
                session,
                verdict_contradictions=["ben judged the answer of s right, gold another"] if case.id == "b" else (),
            )
            for case in load_cases(path, require_prediction=False)
        )

    assert ranking[0].evidence[0] == {"kind": "audit", "text": "ben judged the answer of s right, gold another"}


def test_a_refuted_pass_is_evidence_as_long_as_the_gold_is_the_same(rank):
    case = f"  - {{id: a, {gold(CHEAP)}}}\n"
    refuted = SystemAnswer(prediction=QueryOrAnswer(query=f"{CHEAP} AND 1"), refuted_gold=CHEAP)
    second = SystemAnswer(prediction=QueryOrAnswer(query=f"{CHEAP} AND 1"), refuted_gold=DEAR)

    (ranked,) = rank(case, {"x": {"a": refuted}, "y": {"a": second}})

    assert [item["text"] for item in ranked.evidence] == [
        "the query of x gives gold's answer on the data, and another on a small database"
    ]


def test_a_case_that_many_systems_confirm_and_one_refutes_comes_before_one_without_evidence(rank):
    cases = f"  - {{id: a, {gold(CHEAP)}}}\n  - {{id: b, {gold(CHEAP)}}}\n"
    refuted = SystemAnswer(prediction=QueryOrAnswer(query=f"{CHEAP} AND 1"), refuted_gold=CHEAP)
    right = answer(CHEAP)

    ranking = rank(cases, {"x": {"a": answer("SELECT"), "b": refuted}, "y": {"a": right, "b": right}})

    assert [(ranked.case.id, bool(ranked.evidence)) for ranked in ranking] == [("b", True), ("a", False)]
    assert ranking[0].doubt < ranking[1].doubt


def test_systems_are_correlated_whose_wrong_answers_agree_more_than_by_chance(rank):
    cases = "".join(f"  - {{id: c{number}, {gold(NAMES)}}}\n" for number in range(20))

    def system(query):
        return {f"c{number}": answer(query.format(number=number)) for number in range(20)}

    twin, loner = system(CHEAP), system(f"{DEAR} LIMIT 1")
    predictions = {"a": twin, "b": twin, "c": loner, "d": system("SELECT {number}")}

    assert correlations(rank(cases, predictions)) == [{"systems": ["a", "b"], "cases": 20, "same": 20}]
    assert correlations(rank(cases, {"a": twin, "b": system(NAMES)})) == []
