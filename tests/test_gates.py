"""Gates: those of `gates.yaml`, their rules against the definitions for random reports, and what is no gate."""

import re
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_parts import UNEVALUATED, merge, part
from samples import FINGERPRINT, entry
from signed_differences import p_value
from yaml_tables import read_tables

from pytest_queryeval import METRICS
from pytest_queryeval.core.errors import QueryEvalError, SuiteError
from pytest_queryeval.core.gates import GateRule
from pytest_queryeval.core.groups import GROUPS
from pytest_queryeval.suites import load_suite

pytestmark = pytest.mark.feature("report_files")

ROWS, MISTAKES = read_tables("gates.yaml")
FIRST_LINE = 4
SETTINGS = "kind: sql\nsource: a.db\ngates:\n"
SUITE = "cases:\n  - {id: a, gold: x, predicted: y}\n"


def required(*gates):
    """What gates require that a folder states, each in YAML."""
    with TemporaryDirectory() as folder:
        (Path(folder) / "queryeval.yaml").write_text(SETTINGS + "".join(f"  - {gate}\n" for gate in gates))
        suite = Path(folder) / "s.queryeval.yaml"
        suite.write_text(SUITE)
        return [gate.required for gate in load_suite(suite, root=Path(folder)).folders[0].gates]


def metric_of(gate):
    return gate.get("metric") or gate.get("no_regression", {}).get("metric", "soft_f1")


def cases_of(written, metric, folder):
    """The cases of a row below a folder."""
    cases = []
    for item in written:
        fields = item if isinstance(item, dict) else {"outcome": item} if isinstance(item, str) else {"score": item}
        fields = {"path": f"{folder}/s.queryeval.yaml", **fields}
        fingerprint = FINGERPRINT | {
            "metrics": fields.pop("requests", [metric] if metric in METRICS else []),
            "gold_answers": fields.pop("gold_answers", None),
        }
        if "score" in fields:
            score = fields.pop("score")
            fields = {"scores": {metric: score}, "outcome": "passed" if score else "failed", **fields}
        if "costs" in fields:
            calls = [called(cost) for cost in fields.pop("costs")]
            fields |= calls[0] | {"trials": calls if calls[1:] else []}
        for _ in range(fields.pop("times", 1)):
            cases.append(entry(id=f"c{len(cases)}", fingerprint=fingerprint, **fields))
    return cases


def called(cost):
    """A trial whose call states its cost; None states nothing."""
    execution = {"query": "q", "error": None, "columns": None, "row_count": None, "sample": [], "seconds": 0.0}
    prediction = {"source": "p", "seconds": 1.0, "metadata": {} if cost is None else {"cost": cost}}
    return {"passed": True, "scores": {}, "violations": [], "predicted": execution, "prediction": prediction}


def gate_lines(merged):
    return [line.removeprefix("gate ") for line in merged.lines if line.startswith("gate ")]


@pytest.fixture(scope="module")
def results():
    """The gates of all rows, evaluated in one merge: each row is a folder."""
    gates, cases, earlier, unreadable = [], [], [], []
    for number, (row, gate) in enumerate(zip(ROWS, required(*(row["gate"] for row in ROWS)), strict=True)):
        folder, metric = f"row{number}", metric_of(row["gate"])
        own_cases = cases_of(row["cases"], metric, folder)
        decided = row.get("decided", {})
        decision = (
            {"ok": decided["ok"], "decided": {name: decided[name] for name in ("after", "of")}} if decided else {}
        )
        gates.append(gate | {"folder": folder, "cases": row.get("of", 0)} | decision)
        cases += own_cases
        earlier += cases_of(row.get("baseline", []), metric, folder)
        unreadable += [f"{folder}/{row['unreadable']}"] if "unreadable" in row else []
    parts = part(*cases, gates=gates, unreadable_files=unreadable)
    return merge(parts, baseline=part(*earlier)), merge(parts)


def line_of(merged, number):
    """The line of a row, whose folder is left out of what is printed of any gate."""
    folder = re.compile(rf" in row{number}(?=\b)")
    line = next(line for line in gate_lines(merged) if folder.search(line))
    return re.sub(r"(?<= since )\S+", "BASELINE", folder.sub("", line)).replace(f"row{number}/", "FOLDER/")


@pytest.mark.parametrize("number", range(len(ROWS)), ids=lambda number: ROWS[number]["line"][:60])
def test_a_gate_is_judged_and_says_so(results, number):
    assert fnmatchcase(line_of(results[0], number).replace("[", "("), ROWS[number]["line"].replace("[", "("))


def test_gates_that_compare_need_a_baseline(results):
    numbers = [number for number, row in enumerate(ROWS) if "baseline" in row]

    lines = [line_of(results[1], number) for number in numbers]

    assert numbers
    assert {line.rpartition(": ")[2] for line in lines} == {"no baseline was given"}
    assert all(line.startswith("not evaluated: ") for line in lines)
    assert all(
        gate["value"] is None for gate in results[1].report["gates"] if gate["reason"] == "no baseline was given"
    )


def test_a_rule_that_is_not_known_here_is_kept_and_not_evaluated():
    unknown = UNEVALUATED | {
        "type": "max_seconds",
        "folder": "",
        "metric": "pass_rate",
        "where": {},
        "settings": {"p": 9},
    }
    merged = merge(part(entry(), gates=[unknown | {"min": None, "max": None}]))

    (gate,) = merged.report["gates"]
    assert (gate["ok"], gate["settings"]) == (None, {"p": 9})
    assert gate_lines(merged) == [
        "not evaluated: max_seconds of pass_rate: unknown rule 'max_seconds': install the package that defines it"
    ]


def test_a_rule_of_an_earlier_version_is_refused():
    with pytest.raises(QueryEvalError, match="rule Old has `evidence`, as earlier versions did: write `observe`"):
        type("Old", (GateRule,), {"evidence": lambda self, gate: None})


# Properties, each against the definition.

SHARES = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
LIMITS = {"type": "limits", "folder": "", "metric": "soft_f1", "where": {}, "min": None, "max": None}


def scored(values, folder=".", **fields):
    path = f"{folder}/s.queryeval.yaml"
    return [
        entry(id=f"c{number}", path=path, scores={"soft_f1": value}, **fields) for number, value in enumerate(values)
    ]


@given(
    st.lists(st.none() | SHARES, max_size=4),
    st.integers(1, 2),
    st.sampled_from([(0.5, None), (None, 0.5), (0.25, 0.75), (0.26, None), (None, 0.99)]),
)
def test_a_gate_is_decided_without_the_rest_of_its_cases_if_any_rest_gives_the_same_result(scores, rest, limits):
    rests = list(product((None, 0.0, 0.25, 0.5, 0.75, 1.0), repeat=rest))
    cases, gates = scored(scores, "early"), [LIMITS | {"folder": "early", "cases": len(scores) + rest}]
    for number, own in enumerate(rests):
        cases += scored([*scores, *own], f"whole{number}")
        gates.append(LIMITS | {"folder": f"whole{number}"})

    early, *whole = merge(
        part(*cases, gates=[gate | dict(zip(("min", "max"), limits, strict=True)) for gate in gates])
    ).report["gates"]

    results = {gate["ok"] for gate in whole if gate["value"] is not None}
    is_decided = len(results) == 1 and early["value"] is not None
    assert early["ok"] is (results.pop() if is_decided else None)


def is_below(path, folder):
    """Whether a path is below a folder, both relative to the root, which `..` leads above."""
    up, place = folder.split("/").count(".."), path.split("/")
    if up:
        rest = [step for step in folder.split("/") if step != ".."]
        return not path.startswith("/") and (
            place.count("..") <= up if not rest else place[: up + len(rest)] == folder.split("/")
        )
    steps = [step for step in folder.split("/") if step != "."] if folder else []
    return place[: len(steps)] == steps and (bool(steps) or place[0] not in ("..", ""))


def fits(where, values):
    if where.get("not") and fits(where["not"], values):
        return False
    return all(value in values[group] for group, value in where.items() if group != "not")


CONDITIONS = st.dictionaries(st.sampled_from(GROUPS.names()), st.sampled_from("abc"), max_size=3)
WHERES = CONDITIONS | st.builds(lambda where, excluded: where | {"not": excluded}, CONDITIONS, CONDITIONS)
FOLDERS = ("", ".", "music", "music/deep", "musicals", "..", "../..", "../q", "/elsewhere")
PATHS = (
    *("s.queryeval.yaml", "music/s.queryeval.yaml", "music/deep/s.queryeval.yaml", "musicals/s.queryeval.yaml"),
    *("../s.queryeval.yaml", "../q/s.queryeval.yaml", "../../s.queryeval.yaml", "/elsewhere/s.queryeval.yaml"),
)
VALUES = st.fixed_dictionaries({group: st.lists(st.sampled_from("abc"), max_size=2) for group in GROUPS.names()})


@given(
    st.lists(st.tuples(st.sampled_from(FOLDERS), WHERES), min_size=1, max_size=8),
    st.lists(st.tuples(st.sampled_from(PATHS), VALUES), max_size=8),
)
def test_a_gate_is_about_the_cases_below_its_folder_that_fit_its_where(scopes, places):
    gates = [LIMITS | {"folder": folder, "where": where, "min": n / 10} for n, (folder, where) in enumerate(scopes)]
    cases = [
        entry(id=str(n), path=path, groups=values, scores={"soft_f1": 1.0}) for n, (path, values) in enumerate(places)
    ]

    results = merge(part(*cases, gates=gates)).report["gates"]

    numbers = {
        n / 10: sum(is_below(path, folder) and fits(where, values) for path, values in places)
        for n, (folder, where) in enumerate(scopes)
    }
    assert {gate["min"]: gate["n"] for gate in results} == numbers


@given(
    st.lists(st.tuples(st.none() | SHARES, st.none() | SHARES), max_size=9),
    st.sampled_from([0.01, 0.05, 0.2, 0.5]),
    st.sampled_from([0.0, 0.1, 0.25]),
)
def test_a_drop_misses_a_gate_if_it_is_too_large_and_no_chance(scores, alpha, max_drop):
    rule = {"alpha": alpha, "max_drop": max_drop}
    gate = LIMITS | {"type": "no_regression", "no_regression": rule, "better": "higher"}
    before, after = (scored(own) for own in ([one for one, _ in scores], [two for _, two in scores]))

    (result,) = merge(part(*after, gates=[gate]), baseline=part(*before)).report["gates"]

    pairs = [pair for pair in scores if None not in pair]
    differences = [two - one for one, two in pairs]
    assert result["n"] == len(pairs)
    if not pairs:
        assert (result["ok"], result["value"]) == (False, None)
        return
    drop, p = -sum(differences) / len(pairs), p_value(differences, "lower")
    is_missed = drop > max_drop + 1e-9 and p <= alpha
    can_be_missed = 0.5 ** sum(pair != (0, 0) for pair in pairs) <= alpha
    can_be_missed &= not max_drop or sum(one for one, _ in pairs) / len(pairs) > max_drop
    assert result["ok"] is (False if is_missed else True if can_be_missed else None)
    assert (result["value"], result["p"]) == pytest.approx((-drop, p))
    assert result["after"] - result["before"] == pytest.approx(-drop)


# Settings


@pytest.fixture(scope="module")
def problems():
    """What is wrong with the gates of all mistakes, which are lines of one file."""
    with pytest.raises(SuiteError) as caught:
        required(*(mistake for mistake, _, _ in MISTAKES))
    places = (line.partition(": ") for line in str(caught.value).split("\n"))
    return {int(place.rpartition(":")[2]): problem for place, _, problem in places}


@pytest.mark.parametrize("number", range(len(MISTAKES)), ids=lambda number: MISTAKES[number][0][:60])
def test_what_is_no_gate_is_refused_with_a_remedy(problems, number):
    _, message, remedy = MISTAKES[number]

    assert problems[number + FIRST_LINE] == message
    assert required(remedy)


def test_gates_of_two_folders_are_read_with_their_folders_and_defaults(tmp_path):
    (tmp_path / "queryeval.yaml").write_text(f"{SETTINGS}  - {{no_regression: {{metric: soft_f1}}}}\n")
    (tmp_path / "a").mkdir()
    (tmp_path / "a/queryeval.yaml").write_text(
        "gates: [{metric: pass_rate, where: {tag: 012, not: {kind: sparql}}, min: 0.6, max: 0.9}]\n"
    )
    (tmp_path / "a/s.queryeval.yaml").write_text(SUITE)

    top, low = load_suite(tmp_path / "a/s.queryeval.yaml", root=tmp_path).folders

    assert [(folder.path, folder.gates[0].folder) for folder in (top, low)] == [
        (tmp_path, tmp_path),
        (tmp_path / "a", tmp_path / "a"),
    ]
    rule = {"type": "no_regression", "no_regression": {"alpha": 0.05, "max_drop": 0.0}, "better": "higher"}
    assert top.gates[0].required == LIMITS | {"cases": None} | rule
    where = {"tag": "012", "not": {"kind": "sparql"}}
    limits = {"metric": "pass_rate", "where": where, "min": 0.6, "max": 0.9}
    assert low.gates[0].required == LIMITS | {"cases": None} | limits
