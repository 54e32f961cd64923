"""The documentation names everything that a suite can name, and says of it what the code does."""

import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
import yaml
from documentation import page as page_of
from editor_schemas import schema

from pytest_queryeval import score_pairs
from pytest_queryeval.cli import COMMANDS, main
from pytest_queryeval.core.cause import CauseLabel
from pytest_queryeval.core.errors import CHECK_RULES
from pytest_queryeval.core.groups import GROUPS
from pytest_queryeval.core.model import FailureKind, Outcome
from pytest_queryeval.core.table import DEFAULT_ABS, DEFAULT_REL, Policy
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.metrics import METRICS
from pytest_queryeval.predictors import PREDICTORS
from pytest_queryeval.suites import KEYS

# Members of all features are looked at.
pytestmark = pytest.mark.feature(
    *("abstention", "command_predictor", "database_servers", "dbt", "duckdb", "embeddings", "http_engine"),
    *("http_predictor", "json", "scale", "sdmx", "sparql_endpoint"),
)

DOCS = Path(__file__).parent.parent / "docs"
PAGES = {name: page_of(name) for name in ("suites", "metrics", "equality", "outcomes", "json")}
OF_METRICS = "\n".join(  # the cards and tables of metrics, on their page and on those of their kinds
    [
        PAGES["metrics"].partition("\n## Metrics and ")[0],
        *(page_of(name).partition("\n## Metrics\n")[2].partition("\n## ")[0] for name in ("json", "sdmx", "published")),
        "",
    ]
)
COMPARE = schema("suite")["definitions"]["compare"]["properties"]
ROW = re.compile(r"^\| (`\w+`(?:, `\w+`)*) \| (.+) \|$", re.MULTILINE)


def rows(text):
    """The cells behind the first one of each row, by each name in that; of several rows the first."""
    found = reversed(ROW.findall(text))
    return {name: rest.split(" | ") for names, rest in found for name in re.findall(r"\w+", names)}


def test_every_label_of_a_cause_is_documented():
    first_cells = re.findall(r"^\| (`[a-z-]+`(?:, `[a-z-]+`)*) \| .+\|$", page_of("causes"), re.MULTILINE)
    labels = re.findall(r"[a-z-]+", " ".join(first_cells))

    assert {*labels} - {"--queryeval-cause", "auto", "full", "off"} == {*get_args(CauseLabel)}


@pytest.mark.parametrize("group", GROUPS.names())
def test_what_gates_can_ask_for_is_documented(group):
    assert f"`{group}`" in PAGES["suites"].partition("A gate is")[2]


@pytest.mark.parametrize("key", schema("settings")["definitions"]["gates"]["items"]["properties"])
def test_every_key_of_gates_is_documented(key):
    section = PAGES["suites"].partition("\n## Gates\n")[2].partition("\n## ")[0]

    assert re.search(rf"\b{key}:", section)


def cards():
    """What pages of metrics have below each heading, by the heading."""
    return dict(re.findall(r"^### (.+)\n((?:(?!##).*\n)*)", OF_METRICS, re.MULTILINE))


def test_every_metric_has_a_card_or_a_row_with_formula_and_empty_case():
    described = {name for names in cards() for name in names.split(", ")}
    described |= {*rows(OF_METRICS)}

    assert described & {*METRICS.names()} == {*METRICS.names()}
    for text in cards().values():
        assert re.findall(r"^- (Formula|Example|Not for|Empty)\b", text, re.MULTILINE)[:1] == ["Formula"]
        assert all(f"\n- {part}" in text for part in ("Example", "Not for: ", "Empty: "))


def test_no_metric_is_documented_that_does_not_exist():
    for name in rows(OF_METRICS):
        assert name in METRICS


def examples_of_metrics():
    """The examples of cards that show gold and predicted as rows, queries or JSON, with the score."""
    for names, text in cards().items():
        for of, gold, pairs in re.findall(
            r"^- Example(?: of `(.+?)`)?: gold `([^`]+)`:((?: .+\n)+)", text, re.MULTILINE
        ):
            for predicted, score in re.findall(r"`([^`]+)`\s([\d.]*\d)", pairs):
                yield of or names.partition(",")[0], gold, predicted, float(score)


@pytest.mark.parametrize(("metric", "gold", "predicted", "score"), [*examples_of_metrics()])
def test_an_example_of_a_metric_has_its_score(metric, gold, predicted, score):
    def read(text):
        if not text.startswith("["):
            return yaml.safe_load(text)
        rows = yaml.safe_load(f"[{text}]")
        return {"columns": [f"c{place}" for place in range(len(rows[0]))], "rows": rows}

    kind = "json" if gold.startswith("{") else "sql"
    (pair,) = score_pairs([(read(gold), read(predicted))], kind=kind, metrics=[metric])

    assert pair.scores == {metric: pytest.approx(score, abs=0.0005)}


@pytest.mark.parametrize("name", COMPARE)
def test_every_key_of_the_policy_is_documented_with_its_default(name):
    default = (rows(PAGES["json"]) | rows(PAGES["equality"]))[name][0].strip("`")
    expected = {
        "numbers": f"{{rel: {DEFAULT_REL:.0e}, abs: {DEFAULT_ABS:.0e}}}",
        "nulls": "equal",
        "gold_columns": "[]",
        "ignore": "[]",
        "paths": "{}",
        "json": "{}",
    }

    assert default.replace("e-0", "e-") == str(expected.get(name) or getattr(Policy(), name, "")).lower().replace(
        "e-0", "e-"
    )


@pytest.mark.parametrize("engine", ["rdf", "endpoint"])
def test_every_setting_of_a_sparql_source_is_documented(engine):
    text = page_of("sparql").partition(f": `{engine}`")[2].partition("\n## ")[0]
    settings = ENGINES[engine].settings

    assert [name for name in settings if f"`{name}`" not in text] == []


@pytest.mark.parametrize(("command", "heading"), [("import", "## Formats"), ("export", "## Exporting predictions")])
def test_every_format_of_import_and_export_is_documented(command, heading, capsys):
    arguments = ["x", "x", "-o", "x"] if command == "import" else ["x", "-f", "x"]
    with pytest.raises(SystemExit):
        main([command, *arguments])
    formats = re.findall(r"'([\w-]+)'", capsys.readouterr().err.partition("choose from")[2].partition(")")[0])
    section = page_of("import").partition(f"\n{heading}\n")[2].partition("\n## ")[0]

    assert formats
    assert set(formats) == set(re.findall(r"^\| `([\w-]+)` \|", section, re.MULTILINE))


def test_every_outcome_and_failure_and_the_exit_statuses_of_every_command_are_documented():
    named = re.findall(r"^\| `?(\w+)`? \|", PAGES["outcomes"], re.MULTILINE)

    assert {*get_args(Outcome), *get_args(FailureKind), *COMMANDS} <= set(named)


def test_every_rule_of_check_is_documented_under_its_level():
    errors, warnings = page_of("golds").partition("\n## Errors\n")[2].split("\n## Warnings\n")
    documented = [
        dict.fromkeys(re.findall(r"^\| `([a-z-]+)` \|", section, re.MULTILINE), level)
        for level, section in (("error", errors), ("warning", warnings))
    ]

    assert documented[0] | documented[1] == CHECK_RULES


def test_the_generated_page_has_every_key_and_every_setting_in_tables_that_are_whole(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(DOCS), *sys.path])
    page = importlib.import_module("reference").keys()

    settings = [
        name
        for registry in (ENGINES, PREDICTORS)
        for member in registry.names()
        for name in registry[member].settings or ()
    ]
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in page.splitlines() if line.startswith("|")]
    assert {f"`{name}`" for name in (*KEYS, *COMPARE, *settings)} <= {cells[0].strip() for cells in rows}
    assert {len(cells) for cells in rows} == {2, 3, 5}
    assert all(cell.strip() for cells in rows for cell in cells)


@pytest.mark.process
def test_the_search_of_the_site_does_not_find_internal_pages(tmp_path):
    settings = f"settings = runpy.run_path({str(DOCS / 'conf.py')!r})\n"
    hook = "def setup(app):\n    app.connect('env-updated', settings['leave_out_of_search'])\n"
    (tmp_path / "conf.py").write_text(f"import runpy\n\n{settings}html_theme = 'basic'\nroot_doc = 'index'\n{hook}")
    (tmp_path / "developers").mkdir()
    pages = {"index": "", "suites": "seagull", "developers/architecture": "heron"}
    for page, word in pages.items():
        (tmp_path / f"{page}.rst").write_text(f":orphan:\n\n{page}\n{'=' * len(page)}\n\n{word}\n")

    build = [sys.executable, "-m", "sphinx", "-q", "-b", "html", str(tmp_path), str(tmp_path / "site")]
    subprocess.run(build, check=True, capture_output=True, timeout=300)

    index = (tmp_path / "site" / "searchindex.js").read_text()
    assert "seagul" in index
    assert "heron" not in index
