"""Reports of as many cases as wanted, of every kind and outcome, the same in every run."""

import random

from samples import FINGERPRINT, HEAD

from pytest_queryeval.results.aggregation import TOTAL_OF, aggregate  # white box: cases that no suite gives
from pytest_queryeval.results.baseline.comparison import compare_reports  # white box: reports of such cases
from pytest_queryeval.results.gates import evaluate_gates  # white box: gates on such cases

KINDS = ("sql", "sparql", "json", "sdmx")
LEVELS = ("easy", "medium", "hard", "extra")
TAGS = ("aviation", "billing", "catalogue", "nightly", "regression")
NOUNS = ("flights", "invoices", "sensors", "rivers", "books", "riders", "plots", "singers")
PLACES = ("Bergen", "Como", "Delft", "Évora", "Graz", "Lund", "Nîmes", "Turku")
METRICS = {
    "sql": ("execution_accuracy", "row_matching_f1", "valid_query"),
    "sparql": ("execution_accuracy", "entity_set_f1", "valid_query"),
    "json": ("json_equal", "path_f1", "valid_query"),
    "sdmx": ("macro_precision", "macro_recall"),
}
SHARES = (80, 9, 3, 1, 3, 3, 1)
THIRD_WRONG = (63, 24, 5, 1, 3, 3, 1)  # three of ten cases failed, missed a threshold or are in error
# Texts that would act if a report took them for anything but text.
HOSTILE = (
    "<script>window.taken = 1</script>",
    '"><img src=x onerror="window.taken=1">',
    "javascript:window.taken=1",
    "</script><script>window.taken=1</script>",
    "</title></style><svg onload=window.taken=1>",
    "{{7*7}}{% for a in b %}",
    "<!--<script>",
    "=cmd|' /C calc'!A0",
    "[link](javascript:window.taken=1) | `code`",
    "a\u202eb\u200bc\x1b[31md\x00e\ufeff",
    "' onmouseover='window.taken=1",
    "&lt;b&gt; &amp;",
)
LONG = " ".join(f"word{number}" for number in range(180))  # so that the end of what is left of it says how much is


def make_report(size, *, hostile=False, shares=SHARES, **about):
    """A report of `size` small cases; with `hostile`, every text of a case is one that would like to act.

    `shares` of a hundred cases have the first outcomes of `TOTAL_OF`, in its order.
    """
    chance = random.Random(7)
    cases = [make_case(number, chance, shares) for number in range(size)]
    if hostile:
        cases = [_with_text(case, HOSTILE[number % len(HOSTILE)], number) for number, case in enumerate(cases)]
    return report_of(cases, **about)


def report_of(cases, **about):
    """A report of these cases, with a gate that is met, one that is missed, and one that is not evaluated."""
    gates = [
        make_gate(metric="pass_rate", min=0.5),
        make_gate(metric="execution_accuracy", where={"difficulty": "hard"}, min=0.95),
        make_gate(metric="execution_accuracy", folder="elsewhere", cases=1),
    ]
    defaults = HEAD | {
        "created": "2025-03-01T09:30:00+00:00",
        "environment": {"python": "3.12.1", "pytest": "8.3.0", "engines": {"sqlite": "3.45.1"}},
        "predictor": {"sources": ["inline"]},
    }
    return aggregate(cases, gates=[evaluate_gate(gate, cases) for gate in gates], about=defaults | about)


def plain_report(*cases, gates=(), **about):
    """A report of these cases; gates are given with their results."""
    return aggregate(cases, gates=gates, about=HEAD | {"created": "2025-01-01"} | about)


def with_baseline(report, earlier):
    """The report with an earlier one as its baseline."""
    return report | {"baseline": compare_reports(earlier, report, path="main.json")}


def make_compared(size):
    """A report with a baseline of as many cases: one fixed, one broken, one that asks for less, and one for another.

    The broken one has a hostile name, and the engine is another one.
    """
    before, after = make_report(size)["cases"], make_report(size)["cases"]
    places = {outcome: [n for n, case in enumerate(after) if case["outcome"] == outcome] for outcome in TOTAL_OF}
    fixed, (broken, eased, gone) = places["failed"][0], places["passed"][:3]
    for cases in (before, after):
        cases[broken]["nodeid"] = f"suite/a.yaml::{HOSTILE[0]}"
    metric = next(iter(after[broken]["scores"]))
    after[broken] |= {"outcome": "failed", "scores": after[broken]["scores"] | {metric: 0.0}}
    after[fixed] |= {"outcome": "passed"}
    after[eased]["fingerprint"]["thresholds"] = {}
    after[gone] |= {"nodeid": "suite/new.yaml::new"}
    older = {"python": "3.12.1", "pytest": "8.3.0", "engines": {"sqlite": "3.44.0"}}
    baseline = report_of(before, created="2025-02-01T00:00:00+00:00", environment=older)
    return report_of(after, baseline=compare_reports(baseline, report_of(after), path="main/report.json"))


def make_long(size, shares=SHARES, **about):
    """A report of cases all texts of which are long, of as many levels and nearly as many gates."""
    chance = random.Random(7)
    cases = [_with_text(make_case(number, chance, shares), f"{number} {LONG}", number) for number in range(size)]
    report = report_of(cases, **about)
    gates = [make_gate(folder=f"suite/{LONG}", where={"difficulty": case["difficulty"]}) for case in cases[5:]]
    return report | {"gates": [evaluate_gate(gate, cases) for gate in gates]}


def make_gate(**changes):
    gate = {"type": "limits", "folder": "suite", "metric": "pass_rate", "where": {}, "min": 0.5, "max": None}
    return gate | {"cases": 0} | changes


def evaluate_gate(gate, cases, *, decision=None, **how):
    """The gate with its result; `decision` is an early one."""
    (statistics,) = evaluate_gates([gate], cases, decide=lambda _: decision, **how)
    return statistics


def make_case(number, chance, shares=SHARES):
    """One case as report.json has it; kinds and outcomes take turns, all else is drawn."""
    kind, outcome = KINDS[number % len(KINDS)], _outcome(number, chance, shares)
    path = f"suite/{kind}/part{number // 500}.queryeval.yaml"
    ident = f"{chance.choice(NOUNS)}-{number}"
    missed = outcome in ("failed", "missed", "xfailed")
    case = {
        "id": ident,
        "nodeid": f"{path}::{ident}",
        "path": path,
        "line": 4 + 7 * (number % 500),
        "kind": kind,
        "tags": chance.sample(TAGS, chance.randint(0, 2)),
        "difficulty": chance.choice(LEVELS) if kind == "sql" else None,
        "source": f"{kind}.db",
        "evidence": "",
        "question": f"How many {chance.choice(NOUNS)} are there in {chance.choice(PLACES)} since {1950 + number % 70}?",
        "outcome": outcome,
        "scores": {},
        "violations": [],
        "gold": None,
        "predicted": None,
        "scoring": None,
        "depends_on_tie": False,
        "difference": None,
        "cause": None,
        "prediction": None,
        "trials": [],
        "details": {},
        "message": "",
        "fingerprint": _fingerprint(METRICS[kind][0], chance),
    }
    if outcome == "skipped":
        return case | {"message": "the database is not here"}
    if outcome == "error":
        return case | {"message": f"{path}:{case['line']}: the source does not open"}
    return case | _answers(kind, number, missed, chance)


def _fingerprint(metric, chance):
    return FINGERPRINT | {
        "answers": "stated",
        "metrics": [metric],
        "thresholds": {metric: {"min": 1.0, "max": None}},
        "golds": f"{chance.getrandbits(64):016x}",
        "limits": {"timeout": 30.0, "max_rows": 100_000},
        "source": None,
    }


def _outcome(number, chance, shares):
    every = tuple(TOTAL_OF)[: len(shares)]
    return every[number] if number < len(every) else chance.choices(every, shares)[0]


def _answers(kind, number, missed, chance):
    metric = METRICS[kind][0]
    scores = dict.fromkeys(METRICS[kind], 1.0)
    if missed:
        scores |= {metric: 0.0, METRICS[kind][1]: round(chance.random(), 3)}
    gold, predicted = _sides(kind, number, missed, chance)
    return {
        "scores": scores,
        "violations": [{"metric": metric, "min": 1.0, "max": None, "value": 0.0}] if missed else [],
        "gold": gold | {"index": 0},
        "predicted": predicted | {"error": None},
        "difference": _difference(kind, gold, predicted) if missed else None,
        "cause": _cause(kind, gold, number) if missed and kind != "sparql" else None,
        "prediction": {"source": "inline", "seconds": chance.lognormvariate(0, 0.8), "metadata": {"tokens": number}},
        "details": _details(kind, number, missed),
        "message": f"{metric} 0.000 (needs at least 1)" if missed else "",
    }


def _sides(kind, number, missed, chance):
    year, noun, place = 1950 + number % 70, chance.choice(NOUNS), chance.choice(PLACES)
    second = year + missed
    texts = {
        "sql": f"SELECT name, count(*) FROM {noun} WHERE year > {{}} AND city = '{place}' GROUP BY name",
        "sparql": f"SELECT ?{noun} WHERE {{{{ ?{noun} :in :{place} ; :year ?y FILTER(?y > {{}}) }}}}",
        "json": f'{{{{"find": "{noun}", "place": "{place}", "since": {{}}}}}}',
        "sdmx": f"FLOWS:{place.upper()}\n  PERIOD: {{}}\n  SERIES: {noun.upper()}",
    }
    rows = [[f"{chance.choice(PLACES)}", chance.randint(1, 99)] for _ in range(3)]
    wrong = [*rows[:1], [rows[1][0], rows[1][1] + 1]] if missed else rows
    return tuple(
        {
            "query": texts[kind].format(since),
            "columns": ["name", "count(*)"] if kind in ("sql", "sparql") else None,
            "row_count": len(table) if kind in ("sql", "sparql") else None,
            "sample": table if kind in ("sql", "sparql") else [],
            "seconds": chance.lognormvariate(-7, 0.5),
        }
        for since, table in ((year, rows), (second, wrong))
    )


def _cause(kind, gold, number):
    year = 1950 + number % 70
    if kind == "sql":
        edit = {"label": "wrong-value", "clause": "WHERE", "change": f"year > {year + 1} → year > {year}"}
        return {"edits": [edit], "repaired_query": gold["query"]}
    label, clause = ("wrong-value", "$.since") if kind == "json" else ("wrong-code", "PERIOD")
    return {"edits": [{"label": label, "clause": clause, "change": "1951 → 1950"}], "repaired_query": None}


def _difference(kind, gold, predicted):
    if kind == "json":
        changed = {"gold": ["$.since", "1950"], "predicted": ["$.since", "1951"]}
        return {"summary": "1 have another value", "missing": [], "extra": [], "changed": [changed], "repeated": []}
    if kind == "sdmx":
        terms = {"missing": [["PERIOD", "1950", None]], "extra": [["PERIOD", "1951", "Year 1951"]]}
        return {"summary": "gold has 2 terms, predicted has 2 terms", "changed": [], "repeated": [], **terms}
    return {
        "summary": "gold has 3 rows of 2 columns, predicted has 2 rows of 2 columns",
        "missing": gold["sample"][2:],
        "extra": [],
        "changed": [{"gold": gold["sample"][1], "predicted": predicted["sample"][1]}],
        "repeated": [],
    }


def _details(kind, number, missed):
    if kind == "sdmx":
        return {"indicator_selection": "PERIOD\n[recall: 1.00, precision: 1.00]\nTrue Positives [1]\n  * 1950"}
    if kind == "json" and missed:
        return {"violations": ["$.since: 1951 is not a year of the list"]}
    return {"notes": ["order: gold's LIMIT cuts through rows that tie"]} if number % 50 == 0 else {}


def _with_text(case, text, number):
    """A case with one text in all places but for those that the report's own code chooses."""
    ident = f"{text}{number}"
    case |= {
        "id": ident,
        "path": f"suite/{text}.yaml",
        "nodeid": f"suite/{text}.yaml::{ident}",
        "tags": [text],
        "difficulty": text,
        "source": text,
        "question": text,
        "message": text,
        "scores": case["scores"] | {f"recall[{text}]": 1 / (number + 1)},
        "details": {"notes": [text], "violations": [text], "indicator_selection": text, text: text},
    }
    if case["prediction"]:
        case["prediction"] |= {"source": text, "metadata": {text: text, "url": "javascript:window.taken=1"}}
        sample = {"columns": [text, "b"], "row_count": 2, "sample": [[text, None], [1, text]]}
        case["gold"] |= {"query": f"SELECT '{text}'", **sample}
        case["predicted"] |= {"query": f"SELECT {text}", "error": {"kind": "invalid", "message": text}, **sample}
        case["difference"] = {
            "summary": text,
            "missing": [[text, None]],
            "extra": [[1, text]],
            "changed": [],
            "repeated": [],
        }
        edit = {"label": "wrong-value", "clause": text, "change": text}
        case["cause"] = {"edits": [edit], "repaired_query": text}
        trial = {"passed": False, "scores": {text: 0.5}, "violations": [], "prediction": case["prediction"]}
        case["trials"] = [trial | {"predicted": {"query": text, "error": None, "seconds": 0.5}}] * 2
    return case
