"""Every setting that is declared, in every kind and at every level: it has an effect, or it is reported.

`EXAMPLES` has a value for each key, each key of `compare` and each option of a metric or a kind, in a suite in which
its effect can be seen. A suite with it and one without it are evaluated and checked. What they say has to differ, or to
name the setting. A new key, option or run option without an example fails.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import pytest
from editor_schemas import schema
from features.sdmx import sdmx_messages

from pytest_queryeval import plugin
from pytest_queryeval.cli import main
from pytest_queryeval.languages import KINDS
from pytest_queryeval.metrics import METRICS

FEATURES = (
    *("check", "evaluate", "json", "sdmx", "writes", "review", "duckdb", "embeddings", "challenge", "sparql_endpoint"),
)
pytestmark = [pytest.mark.feature(*FEATURES), pytest.mark.long]

PREFIX = "PREFIX : <http://e/> "
DIGITS = " ".join(f"VALUES ?{name} {{ 0 1 2 3 4 5 6 7 8 9 }}" for name in "abcdefghijkl")
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
FILES = {
    "shop.sql": "CREATE TABLE t (a INTEGER, b TEXT); INSERT INTO t VALUES (1, 'x'), (2, 'y');",
    "other.sql": "CREATE TABLE t (a, b); INSERT INTO t VALUES (7, 'z');",
    "g.ttl": "@prefix : <http://e/> . :x :a 1 . :y :a 2 .",
    "h.ttl": "@prefix : <http://e/> . :z :a 7 .",
    "any.json": '{"type": "object", "required": ["needed"]}',
    "slow.json": '{"type": "object", "properties": {"x": {"pattern": "^(a+)+$"}}}',
    "tables.json": json.dumps(
        [{"db_id": "shop", "table_names_original": ["special"], "column_names_original": [[-1, "*"], [0, "c"]]}]
    ),
    "p.py": "def fixed(case):\n    return ANSWERS[case.kind]\n"
    "def by_schema(case):\n    return ANSWERS[case.kind] if 'special' in (case.schema or '') else 'no'\n"
    "def by_metadata(case):\n    return ANSWERS[case.kind] if case.metadata or case.evidence else 'no'\n"
    "turn = [0]\ndef in_turn(case):\n    turn[0] += 1\n    return ANSWERS[case.kind] if turn[0] % 2 else 'no'\n",
}


def selection(name: str = "P", **dimensions: str) -> list[dict[str, Any]]:
    """An answer of the kind sdmx, with one term of each dimension."""
    values = [{"dimension_name": name, "values": [{"id": id_}]} for name, id_ in dimensions.items()]
    return [{"dataset_id": f"A:{name}", "dimensions": values}]


WRONG: Mapping[str, Any] = {  # answers that are nearly right
    "sql": {"gold": "SELECT a FROM t", "predicted": "SELECT a + 1 FROM t"},
    "sparql": {"gold": f"{PREFIX}SELECT ?n {{ ?x :a ?n }}", "predicted": f"{PREFIX}SELECT ?x {{ ?x :a ?n }}"},
    "json": {"gold": {"x": [1, 2], "y": {"z": 1}}, "predicted": {"x": [2, 1], "w": {}}},
    "sdmx": {"gold": selection(X="1"), "predicted": selection(X="2")},
}
GOLDS = {kind: answers["gold"] for kind, answers in WRONG.items()}
RIGHT = {kind: {"gold": gold, "predicted": gold} for kind, gold in GOLDS.items()}
SOURCES = {"sql": {"sqlite": {"script": "shop.sql"}}, "sparql": {"rdf": "g.ttl"}}
OTHERS = {"sql": {"sqlite": {"script": "other.sql"}}, "sparql": {"rdf": "h.ttl"}}


SUITE, FOLDER = schema("suite"), schema("settings")
OF_CASES = SUITE["definitions"]["case"]
COMPARE = SUITE["definitions"]["compare"]["properties"]
LEVELS = {
    "folder": set(FOLDER["properties"]),
    "file": set(SUITE["properties"]),
    "case": {*OF_CASES["else"]["else"]["properties"], *({"conversation"} & OF_CASES["then"]["properties"].keys())},
}


class ByKind(dict):
    """Values by kind; the one under "" is that of the others, by default none."""

    def of(self, kind: str) -> Any:
        return self.get(kind, self.get("", {}))


class Example(NamedTuple):
    """A value of a setting, and a suite in which it has an effect; by kind where they differ."""

    value: Any
    case: Any = WRONG
    top: Any = ByKind()
    """Other settings of the suite; None for a key that it does not have."""
    otherwise: Any = None
    """The value without the setting; None leaves it out."""


def tables(gold: list, predicted: list, width: int = 1, *, are_documents: bool = False) -> ByKind:
    """Stated answers of the kinds that have tables, as documents too; the others are right."""
    columns = [["a", "b", "c"][:width]]
    case = {
        "gold_table": {"columns": columns[0], "rows": gold},
        "predicted_table": {"columns": ["a", "b", "c"][: len(predicted[0])], "rows": predicted},
    }
    documents = {"gold": gold, "predicted": predicted} if are_documents else RIGHT["json"]
    return ByKind(sql=case, sparql=case, json=documents, sdmx=RIGHT["sdmx"])


def asked(function: str, **more: Any) -> dict[str, Any]:
    """A suite whose system is a function of p.py."""
    return {"predictor": f"p.py:{function}", **more}


ANSWERED = ByKind({kind: {"predicted": gold} for kind, gold in GOLDS.items()})
UNPREDICTED = ByKind({kind: {"gold": gold} for kind, gold in GOLDS.items()})
RDF_TYPES = ByKind(WRONG, sparql={"gold": "SELECT (1 AS ?n) {}", "predicted": "SELECT (1.0 AS ?n) {}"})
DATE_TIME = "<http://www.w3.org/2001/XMLSchema#dateTime>"
DATES = ByKind(
    WRONG,
    sql={"gold": "SELECT DATE '2024-01-01' AS d", "predicted": "SELECT '2024-01-01' AS d"},
    sparql={
        "gold": f'SELECT ?d {{ BIND ("2024-01-01T00:00:00Z"^^{DATE_TIME} AS ?d) }}',
        "predicted": f'SELECT ?d {{ BIND ("2024-01-01T01:00:00+01:00"^^{DATE_TIME} AS ?d) }}',
    },
)
JSON_METRICS = {"json": {"metrics": ["structural_similarity", "semantic_similarity", "overall_similarity"]}}
OF_JSON = ByKind({kind: {"metrics": ["valid_query"]} for kind in GOLDS}, json=JSON_METRICS["json"])
SIMILAR = ByKind(
    WRONG,
    json={
        "gold": {"x": [{"k": 1}, {"k": 2}], "y": {"z": True, "n": 1}, "m": 1},
        "predicted": {"x": [{"k": 1}], "y": {"z": 2, "w": 3}, "w": 1},
    },
)
TIMED = ByKind({kind: {"metrics": ["ves", "r_ves", "r_ves_bird"]} for kind in ("sql", "sparql")})
SDMX_DATASETS = ByKind(
    WRONG,
    sdmx={
        "gold": [*selection("P", X="1"), *selection("Q", Y="2")],
        "predicted": [*selection("P", X="1", Y="2"), *selection("R", Y="3")],
    },
)
SDMX_METRICS = ByKind(sdmx={"metrics": ["macro_f1", "macro_precision", "macro_recall", "precision[Y]", "recall[Y]"]})
ORDER = tables([[1], [2]], [[2], [1]])


def options() -> dict[str, Example]:
    """The options of metrics and kinds; a kind has those of its metrics."""
    values: dict[str, Any] = {
        "at": "$.y",
        "depth": "all",
        "lists": "set",
        "value_text": "json",
        "beta": 1.0,
        "alpha": 0.9,
    }
    values |= {"embedding_model": "another", "iterations": 3, "by_dataset": True, "macro": "terms"}
    examples = {}
    for owner in (*METRICS.available(), *KINDS.available()):
        names = sorted(METRICS[owner].options if owner in METRICS else KINDS[owner].options)
        for name in names:
            scene = {
                "iterations": (ByKind(RIGHT), TIMED),
                "by_dataset": (SDMX_DATASETS, SDMX_METRICS),
                "macro": (SDMX_DATASETS, SDMX_METRICS),
            }
            case, top = scene.get(name, (SIMILAR, OF_JSON))
            metric = {"precision": "precision[Y]", "recall": "recall[Y]"}.get(owner, owner)
            with_depth = {"depth": "all"} if name == "lists" else {}
            value, otherwise = {**with_depth, name: values.get(name)}, {metric: with_depth} if with_depth else None
            example = Example({metric: value}, case, top, otherwise)
            examples[f"options.{owner}.{name}"] = OTHER_OPTIONS.get(name, example)
    return examples


OTHER_OPTIONS = {
    "dialect": Example(
        {"sql": {"dialect": "mysql"}},
        ByKind(WRONG, sql={"gold": 'SELECT "a" FROM t', "predicted": "SELECT 'a' FROM t"}),
        ByKind(sql={"source": None, "metrics": ["exact_set_match"], "thresholds": {}}),
    )
}
FILED = ByKind(sql="gold.sql", sparql="gold.rq", json="gold.json", sdmx="gold.txt")
EXAMPLES: dict[str, Example] = {
    "kind": Example(ByKind({kind: kind for kind in GOLDS}), top={"kind": None}),
    "source": Example(ByKind(SOURCES, json="a.db", sdmx="a.db"), top={"source": None}),
    "gold_source": Example(ByKind(OTHERS, json="a.db", sdmx="a.db")),
    "sources": Example(
        ByKind({kind: {"shop": source} for kind, source in SOURCES.items()}, **{"": {"shop": SOURCES["sql"]}}),
        top=ByKind(sql={"source": "shop"}, sparql={"source": "shop"}),
    ),
    "predictor": Example("p.py:fixed", UNPREDICTED),
    "metrics": Example(["valid_query"]),
    "thresholds": Example({}),
    "on_miss": Example("xfail"),
    "check": Example({"ignore": {"duplicate-question": "on purpose"}}, top={"twice": True}),
    "timeout": Example(
        0.2,
        ByKind(
            WRONG,
            sql={"gold": "SELECT 1", "predicted": ENDLESS},
            sparql={"gold": GOLDS["sparql"], "predicted": f"SELECT (COUNT(*) AS ?n) {{ {DIGITS} }}"},
            json={"gold": {"x": "a"}, "predicted": {"x": "a" * 40 + "!"}},
        ),
        ByKind(json={"json_schema": "slow.json"}),
        otherwise=0.3,
    ),
    "max_rows": Example(1),
    "trials": Example(2, UNPREDICTED, asked("fixed")),
    "trials_rule": Example("any", UNPREDICTED, asked("in_turn", trials=2)),
    "tags": Example(["nightly"]),
    "requires": Example("snowflake"),
    "report_rows": Example(0),
    "env_file": Example(
        ByKind({kind: f"{kind}.env" for kind in GOLDS}),
        UNPREDICTED,
        ByKind({kind: {"predictor": f"${{SCRIPT_{kind.upper()}}}.py:fixed"} for kind in GOLDS}),
    ),
    "gates": Example([{"metric": "pass_rate", "min": 0.9}]),
    "cases": Example("more/*.yaml"),
    "id": Example("another", otherwise="a"),
    "question": Example("Which, then?", otherwise="Which?"),
    "evidence": Example("a hint"),
    "difficulty": Example("hard"),
    "metadata": Example({"x": 1}, UNPREDICTED, asked("by_metadata")),
    "skip": Example("later"),
    "xfail": Example("hard"),
    "allow_empty": Example(
        True,
        ByKind(
            WRONG,
            sql={"gold": "SELECT a FROM t WHERE a > 9", "predicted": "SELECT 1"},
            sparql={"gold": f"{PREFIX}SELECT ?n {{ ?x :b ?n }}", "predicted": "SELECT (1 AS ?n) {}"},
        ),
    ),
    "answerable": Example(False, ANSWERED),
    "expect": Example({"rows": 9}),
    "parametrize": Example(
        {"year": [2023, 2024]}, ByKind({kind: {**WRONG[kind], "question": "{year}"} for kind in GOLDS})
    ),
    "gold": Example(ByKind(GOLDS), ANSWERED),
    "gold_any": Example(
        ByKind({kind: [answers["gold"], answers["predicted"]] for kind, answers in WRONG.items()}),
        ByKind({kind: {"predicted": answers["predicted"]} for kind, answers in WRONG.items()}),
    ),
    "gold_table": Example({"columns": ["a"], "rows": [[1]]}, ANSWERED),
    "gold_file": Example(FILED, ANSWERED),
    "predicted": Example(ByKind(GOLDS), UNPREDICTED),
    "predicted_table": Example({"columns": ["a"], "rows": [[1]]}, UNPREDICTED),
    "predicted_file": Example(FILED, UNPREDICTED),
    "db_schema": Example("tables.json", UNPREDICTED, asked("by_schema")),
    "conversation": Example([{"role": "user", "content": "Which?"}], UNPREDICTED, asked("fixed", question=None)),
    "json_schema": Example("any.json"),
    "structure": Example(
        "shop.xml", ByKind(WRONG, sdmx={"gold": "data/SHOP,SALES/TEA.A", "predicted": "data/SHOP,SALES/NO.A"})
    ),
    "reviews": Example("r.jsonl"),
    "writes": Example(True, ByKind(WRONG, sql={"gold": "DELETE FROM t", "predicted": "DELETE FROM t"})),
    "scope": Example({"tables": ["u"]}),
    "compare.numbers": Example({"numbers": {"abs": 1}}, tables([[1.0]], [[1.5]], are_documents=True)),
    "compare.text_numbers": Example(
        ByKind(sparql={"text_numbers": False}, **{"": {"text_numbers": True}}), tables([[5]], [["5"]])
    ),
    "compare.case": Example({"case": "ignore"}, tables([["A"]], [["a"]], are_documents=True)),
    "compare.whitespace": Example({"whitespace": "ignore"}, tables([["a  b"]], [["a b"]], are_documents=True)),
    "compare.dates": Example({"dates": "strict"}, DATES, ByKind(sql={"source": {"duckdb": {"script": "shop.sql"}}})),
    "compare.duplicates": Example({"duplicates": "ignore"}, tables([[1]], [[1], [1]])),
    "compare.row_order": Example({"row_order": "strict"}, ORDER),
    "compare.choices": Example(
        {"choices": "first"},
        ByKind(
            WRONG,
            sql={
                "gold": "SELECT a FROM (SELECT a FROM t ORDER BY 1 = 1 LIMIT 1)",
                "predicted": "SELECT a FROM (SELECT a FROM t ORDER BY a DESC LIMIT 1)",
            },
            sparql={
                "gold": f"{PREFIX}SELECT ?n {{ {{ SELECT ?n {{ ?x :a ?n }} ORDER BY (1 = 1) LIMIT 1 }} }}",
                "predicted": f"{PREFIX}SELECT ?n {{ {{ SELECT ?n {{ ?x :a ?n }} ORDER BY DESC(?n) LIMIT 1 }} }}",
            },
        ),
    ),
    "compare.columns": Example({"columns": "positional"}, tables([[1, 2]], [[2, 1]], width=2)),
    "compare.extra_columns": Example({"extra_columns": "allow"}, tables([[1]], [[1, 9]])),
    "compare.gold_columns": Example({"gold_columns": ["a"]}, tables([[1, 9]], [[1]], width=2)),
    "compare.rdf_terms": Example({"rdf_terms": "strict"}, RDF_TYPES),
    "compare.lists": Example({"lists": "any"}),
    "compare.extra_keys": Example({"extra_keys": "allow"}),
    "compare.ignore": Example({"ignore": ["$.x"]}),
    "compare.paths": Example({"paths": {"$.x": {"lists": "any"}}}),
    "compare.json": Example({"json": {"lists": "any"}}),
    **options(),
}
ONLY_DEFAULT = {"compare.nulls"}  # has one value, which states the rule


def declared() -> set[str]:
    """Every setting of suites by its path, except the mappings that only hold others."""
    keys = set().union(*LEVELS.values()) - {"compare", "options"}
    of_metrics = {
        f"options.{name}.{option}" for name, metric in METRICS.available().items() for option in metric.options
    }
    of_kinds = {f"options.{name}.{option}" for name, kind in KINDS.available().items() for option in kind.options}
    return keys | {f"compare.{name}" for name in COMPARE} | of_metrics | of_kinds


def test_every_setting_has_an_example():
    assert declared() - ONLY_DEFAULT == EXAMPLES.keys()


def test_every_run_option_and_setting_of_pytest_is_tested():
    parser = pytest.Parser(_ispytest=True)
    plugin.pytest_addoption(parser)
    names = [*(option.names()[0] for option in parser.getgroup("queryeval").options), *parser._inidict]
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).with_name("plugin").glob("test_*.py"))

    assert len(names) > 20
    assert [name for name in names if name not in tests] == []


class Meaning:
    """An embedder whose cosines depend on the model and on the texts."""

    def __init__(self, model: str, *, tell: Callable[[str], None]) -> None:
        self._model = model

    def prepare(self, texts: Any) -> None:
        pass

    def close(self) -> None:
        pass

    def similarities(self, pairs: Any) -> list[float]:
        return [crc32(f"{self._model}|{a}|{b}".encode()) % 97 / 97 for a, b in pairs]


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("matrix"))
        patch.setattr("pytest_queryeval.suites.variables._is_installed", lambda name: "snowflake" not in name)
        patch.setattr("pytest_queryeval.features.embeddings.Embedder", Meaning)
        answers = {kind: gold if isinstance(gold, str) else json.dumps(gold) for kind, gold in GOLDS.items()}
        golds = {"gold.sql": GOLDS["sql"], "gold.rq": GOLDS["sparql"]}
        golds |= {"gold.json": json.dumps(GOLDS["json"]), "gold.txt": json.dumps(GOLDS["sdmx"])}
        decision = {"suite": "s.queryeval.yaml", "case": "a", "decision": "wrong", "reviewer": "ann"}
        files = {**FILES, **golds, "p.py": f"ANSWERS = {answers!r}\n{FILES['p.py']}"}
        files["r.jsonl"] = json.dumps(decision | {"at": "2026-01-01T00:00:00Z"}) + "\n"
        files |= {f"{kind}.env": f"SCRIPT_{kind.upper()}=p\n" for kind in GOLDS}
        for name, text in files.items():
            Path(name).write_text(text, encoding="utf-8")
        Path("shop.xml").write_bytes(sdmx_messages.shop())
        Path("more").mkdir()
        yield


def of_kind(value: Any, kind: str) -> Any:
    return value.of(kind) if isinstance(value, ByKind) else value.get(kind, value) if value is WRONG else value


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_setting_has_an_effect_or_is_reported(name, say):
    example, (key, *_) = EXAMPLES[name], name.split(".")
    silent = []
    for kind in KINDS.available():
        for level in [level for level, keys in LEVELS.items() if key in keys]:
            without, with_it = (
                suite_of(example, kind, key, level, of_kind(value, kind))
                for value in (example.otherwise, example.value)
            )
            if any(say(command, *without) != say(command, *with_it) for command in COMMANDS):
                continue
            said = [say(command, *with_it) for command in COMMANDS]
            if f"`{name.replace('.', ': ')}" not in str(said):
                silent.append((kind, level, said))
    assert silent == []


def suite_of(example: Example, kind: str, key: str, level: str, value: Any) -> tuple[str, str, str]:
    """The texts of a suite with a value at a level, or without it; of its folder; and of another file with cases."""
    case = {"id": "a", "question": "Which?", **of_kind(example.case, kind)}
    top = {"kind": kind, "source": SOURCES.get(kind), "thresholds": None, **of_kind(example.top, kind)}
    number = 2 if top.pop("twice", False) else 1
    if "question" in top:
        del top["question"], case["question"]
    levels: dict[str, dict[str, Any]] = {"folder": {}, "file": top, "case": case}
    if value is not None:
        levels[level][key] = value
    suite = {"cases": [case, {**case, "id": "b"}][:number]}
    suite |= {name: setting for name, setting in top.items() if setting is not None}
    folder = json.dumps(levels["folder"]) if levels["folder"] else ""
    return json.dumps(suite), folder, json.dumps({**case, "id": "more"})


EVALUATE, CHECK = ("evaluate", ".", "--report=r.json"), ("check", ".", "--no-run", "--json")
COMMANDS = CHECK, EVALUATE


@pytest.fixture
def say(capsys):
    """A function that returns what a command says of a suite; it is run once."""

    def call_once(command, *texts):
        if (command, *texts) not in SAID:
            for name, text in zip(("s.queryeval.yaml", "queryeval.yaml", "more/c.yaml"), texts, strict=True):
                Path(name).write_text(text, encoding="utf-8")
            Path("r.json").unlink(missing_ok=True)
            status, text = call(command, capsys)
            report = plain(json.loads(Path("r.json").read_text())) if Path("r.json").exists() else text
            SAID[command, *texts] = f"{status} {report}"
        return SAID[command, *texts]

    return call_once


SAID: dict[tuple[Any, ...], str] = {}


def call(arguments: Sequence[str], capsys: Any) -> tuple[Any, ...]:
    """The status of a command, and its output if it refuses what it reads."""
    try:
        status: Any = main(arguments)
    except SystemExit as ended:
        status = ended.code
    captured = capsys.readouterr()
    text = captured.out if arguments[0] == "check" or status == 2 else ""
    return status, re.sub(r":\d+", "", f"{text}{captured.err if status == 2 else ''}")


def plain(report: Any) -> Any:
    """A report without times, lines and fingerprints, which would differ by the setting alone."""
    if isinstance(report, dict):
        left_out = {"fingerprint", "line", "seconds", "created", "started", "duration"}
        return {
            name: plain(value)
            for name, value in report.items()
            if name not in left_out and not name.endswith("_seconds")
        }
    return [plain(item) for item in report] if isinstance(report, list) else report
