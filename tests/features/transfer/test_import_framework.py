"""What all formats of `queryeval import` share: files, ids, what is skipped, the console script."""

import json
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from pytest_queryeval import load_cases
from pytest_queryeval.cli import main
from pytest_queryeval.core.errors import QueryEvalError
from pytest_queryeval.documents.document import file_at
from pytest_queryeval.documents.values import json_value
from pytest_queryeval.documents.yaml_nodes import parse_yaml, to_yaml
from pytest_queryeval.features.transfer.importers import Import, ImportedCase, SkippedRecord
from pytest_queryeval.features.transfer.importers import command as import_command
from pytest_queryeval.features.transfer.importers.command import write_suites


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def imported(*cases, kind="json", **settings):
    return Import(name="set", settings={"kind": kind}, cases=cases, **settings)


def case(id_="a", **keys):
    return ImportedCase(id=id_, keys={"question": "?", "gold": {"x": 1}, **keys})


def read_back(folder):
    return load_cases(folder, root=folder)


def lines(path, *records):
    Path(path).write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    return str(path)


def run_json(capsys, *arguments):
    status = main([*arguments, "--json"])
    out = capsys.readouterr().out
    return status, json.loads(out)


def test_cases_become_a_suite_that_collects_with_a_predictor_to_be_written(folder):
    written = write_suites(imported(case("a"), case("b", evidence="so")), folder / "out", force=False)

    cases = read_back(folder / "out")
    assert (written.suites, written.cases, written.skipped) == (["set.queryeval.yaml"], 2, [])
    assert [(case.id, case.evidence) for case in cases] == [("a", ""), ("b", "so")]
    assert {path.name for path in (folder / "out").iterdir()} == {
        *("set.queryeval.yaml", "queryeval.yaml", "predict.py"),
        *("suite.schema.json", "settings.schema.json"),
    }
    assert "write your predictor here" in (folder / "out/predict.py").read_text()


def test_files_name_the_schemas_that_they_keep(folder):
    out = folder / "out"
    out.mkdir()
    (out / "suite.schema.json").write_text("somebody else's")

    write_suites(imported(case(evidence="-- a\n# b", tags=["x"], metadata={"a": [1]})), out, force=False)
    assert (out / "suite.schema.json").read_text() == "somebody else's"
    write_suites(imported(case(evidence="-- a\n# b", tags=["x"], metadata={"a": [1]})), out, force=True)

    for name, schema in (("set.queryeval.yaml", "suite.schema.json"), ("queryeval.yaml", "settings.schema.json")):
        text = (out / name).read_text()
        assert text.startswith(f"# yaml-language-server: $schema={schema}\n")
        Draft7Validator(json.loads((out / schema).read_text())).validate(yaml.safe_load(text))


def test_predictions_are_a_file_under_the_ids_of_the_suite(folder):
    answers = ImportedCase(id="a b", keys={"gold": 1}, predictions=({"predicted": "1", "trial": 2},))

    write_suites(imported(answers, has_predictions=True), folder / "out", force=False)

    assert json.loads((folder / "out/predictions.jsonl").read_text()) == {"id": "a-b", "predicted": "1", "trial": 2}
    assert read_back(folder / "out")[0].settings.predictor.settings == {"path": "predictions.jsonl"}
    assert not (folder / "out/predict.py").exists()


def test_ids_keep_their_text_as_far_as_they_can(folder):
    ids = ["a", "a", "a-2", "weiß 1", "x::y", "../up", "", "\x1b[31m", "i" * 5_000, "i" * 5_001]

    write_suites(imported(*map(case, ids)), folder / "out", force=False)

    cases = read_back(folder / "out")
    own = [case.id for case in cases]
    assert own[:8] == ["a", "a-2", "a-2-2", "weiß-1", "x--y", "../up", "-", "--31m"]
    assert len(set(own)) == len(ids)
    assert max(map(len, own)) <= 210
    assert [case.metadata.get("original_id", case.id) for case in cases] == ids


def test_a_million_equal_ids_cost_no_search(folder):
    ids = import_command._Ids()

    assert [ids.new("x") for _ in range(100_000)][-1] == "x-100000"


def test_many_cases_are_lines_in_several_files(folder, monkeypatch):
    monkeypatch.setattr(import_command, "MAX_YAML_CASES", 3)
    monkeypatch.setattr(import_command, "MAX_SUITE_BYTES", 200)

    written = write_suites(imported(*(case(str(number)) for number in range(10))), folder / "out", force=False)

    assert len(written.suites) > 2
    assert all(re.fullmatch(r"set-\d{3}\.queryeval\.jsonl", name) for name in written.suites)
    assert all((folder / "out" / name).stat().st_size <= 200 for name in written.suites)
    assert [case.id for case in read_back(folder / "out")] == [str(number) for number in range(10)]


def test_yaml_that_would_be_too_large_is_lines(folder, monkeypatch):
    monkeypatch.setattr(import_command, "MAX_LOADED_BYTES", 1_000)

    written = write_suites(imported(case("a", gold=["x" * 990]), case("b")), folder / "out", force=False)

    assert written.suites == ["set-001.queryeval.jsonl"]
    assert [case.id for case in read_back(folder / "out")] == ["a", "b"]
    assert not (folder / "out/set.queryeval.yaml").exists()


def test_a_file_in_the_place_of_the_folder_is_refused(folder):
    (folder / "out").write_text("mine")

    with pytest.raises(QueryEvalError, match="out: cannot be written: "):
        write_suites(imported(case()), folder / "out", force=True)


def deep(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("gold", "reason"),
    [
        ("", "its right answer is empty"),
        (" \n", "its right answer is empty"),
        (deep(95), "nested deeper than 90 levels"),
        ("\ud800", "a text holds half of a surrogate pair, which is not a character"),
        ({"\udfff": 1}, "a text holds half of a surrogate pair, which is not a character"),
        (10**5000, "a number has too many digits"),
        ("x" * 2**22, "it is larger than 4 MiB"),
    ],
    ids=["empty", "blank", "deep", "surrogate", "surrogate-key", "digits", "large"],
)
def test_what_the_loader_would_refuse_is_skipped_with_its_reason(folder, gold, reason):
    written = write_suites(imported(case("bad", gold=gold), case("good", gold=deep(85))), folder / "out", force=False)

    assert (written.cases, written.skipped) == (1, [SkippedRecord("bad", reason)])
    assert [case.id for case in read_back(folder / "out")] == ["good"]


def test_nothing_is_overwritten_without_force_and_a_predictor_never(folder):
    out = folder / "out"
    write_suites(imported(case("old")), out, force=False)
    (out / "predict.py").write_text("def predict(case): return '1'\n")
    (out / "set-7.queryeval.jsonl").write_text("of an earlier import")
    (out / "other.queryeval.yaml").write_text("somebody else's")

    with pytest.raises(QueryEvalError, match=r"queryeval\.yaml: already exists: write elsewhere, or replace it"):
        write_suites(imported(case("new")), out, force=False)
    assert read_back(out / "set.queryeval.yaml")[0].id == "old"

    write_suites(imported(case("new")), out, force=True)
    assert read_back(out / "set.queryeval.yaml")[0].id == "new"
    assert (out / "predict.py").read_text() == "def predict(case): return '1'\n"
    assert not (out / "set-7.queryeval.jsonl").exists()
    assert (out / "other.queryeval.yaml").exists()


def test_an_import_that_fails_leaves_the_earlier_one(folder):
    def failing():
        yield case("new")
        raise QueryEvalError("the source ends here")

    write_suites(imported(case("old")), folder / "out", force=False)
    before = {path: path.read_bytes() for path in (folder / "out").iterdir()}

    with pytest.raises(QueryEvalError, match="ends here"):
        write_suites(Import(name="set", settings={}, cases=failing()), folder / "out", force=True)

    assert {path: path.read_bytes() for path in (folder / "out").iterdir()} == before


def test_a_name_that_leads_elsewhere_stays_in_the_folder(folder):
    written = write_suites(
        Import(name="../../up\n", settings={"kind": "json"}, cases=[case()]), folder / "out", force=False
    )

    assert [(folder / "out" / name).resolve().parent for name in written.suites] == [folder / "out"]


TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(
    [
        "- a: b",
        "null",
        "~",
        "1e5",
        "0x10",
        "on",
        "12:30",
        "a #b",
        "--",
        "|\n x",
        "a\n\n",
        " x\ny ",
        "\ta\n",
        "\x85a\n",
        "﻿a\nb",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_what_is_written_as_yaml_is_read_back_equal(value):
    root = parse_yaml(to_yaml({"value": value}), file_at("x.yaml")).root

    assert json_value(root) == {"value": value}


@pytest.mark.long
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    gold=TEXTS.filter(str.strip),
    question=TEXTS,
    metadata=st.dictionaries(TEXTS, VALUES, max_size=3),
    many=st.booleans(),
)
def test_a_suite_reads_back_what_was_imported(tmp_path_factory, gold, question, metadata, many):
    folder = tmp_path_factory.mktemp("suites")
    sql = ImportedCase(id="a", keys={"question": question, "gold": gold, "metadata": metadata, "source": "db"})
    settings = {"kind": "sql", "sources": {"db": "a.sqlite"}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_command, "MAX_YAML_CASES", 0 if many else 10)
        write_suites(Import(name="set", settings=settings, cases=[sql]), folder, force=False)

    (case,) = read_back(folder)
    assert (case.question, case.golds[0].query, dict(case.metadata)) == (question, gold, metadata)


def test_the_command_prints_one_object_and_a_status_that_tells_what_was_skipped(folder, capsys):
    source = lines("q.jsonl", {"id": "a", "gold": {"x": 1}}, {"id": "b"}, {"id": "c", "gold": "no JSON"})

    status, output = run_json(capsys, "import", "jsonl", source, "--kind", "json", "-o", "out")

    assert status == 1
    assert output["suites"] == ["out/q.queryeval.yaml"]
    assert output["cases"] == 1
    assert [entry["id"] for entry in output["skipped"]] == ["b", "c"]
    assert "name the field with --map gold=FIELD (it has id)" in output["skipped"][0]["reason"]
    assert "its right answer cannot be read: not JSON" in output["skipped"][1]["reason"]


def test_the_lines_for_people_go_to_standard_error_beside_json(folder, capsys):
    source = lines("q.jsonl", {"id": "::error::x", "gold": 1}, {"id": "##vso[x]\x1b[31m"})

    main(["import", "jsonl", source, "--kind", "json", "-o", "out", "--json"])
    out, err = capsys.readouterr()

    assert json.loads(out)["skipped"][0]["id"] == "##vso[x]\x1b[31m"
    assert out.count("\n") == 1
    assert "##" not in out + err
    assert "\x1b" not in out + err
    assert err.splitlines()[:2] == ["suite: out/q.queryeval.yaml", "1 case, 1 skipped"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["jsonl", "none.jsonl"], "none.jsonl: no such file"),
        (["jsonl", "."], "is not a file"),
        (["jsonl", "bad.json"], "bad.json:1:2: not JSON: "),
        (["jsonl", "object.json"], "object.json: expected a list of objects"),
        (["jsonl", "empty.jsonl"], "empty.jsonl: has no case: name a file with questions"),
        (["jsonl", "one.jsonl", "--map", "glod=x"], "unknown key 'glod': did you mean 'gold'?"),
        (["jsonl", "one.jsonl", "--map", "metadata=a,gold"], "'gold' is an answer, which predictors must not see"),
        (["jsonl", "one.jsonl", "--map", "gold=b", "--map", "metadata=b"], "'b' is an answer"),
        (["jsonl", "one.jsonl", "--map", "gold=b", "--map", "metadata=gold"], "'gold' is an answer"),
        (["jsonl", "one.jsonl", "--map", "evidence=glod"], "--map: no record has a field 'glod': did you mean 'gold'?"),
        (["jsonl", "one.jsonl", "--map", "metadata=topic"], "--map: no record has a field 'topic': choose from gold"),
        (["jsonl", "one.jsonl", "--databases", "none"], "none: is not a folder: --databases names the one"),
        (["jsonl", "one.jsonl", "--predictions", "none.jsonl"], "none.jsonl: no such file"),
        (["jsonl", "one.jsonl", "--predictions", "x.xml"], "x.xml: predictions are read from .jsonl"),
        (
            ["jsonl", "one.jsonl", "--predictions", "p.csv?headerrow=3"],
            "p.csv?headerrow=3: unknown setting 'headerrow': did you mean 'header_row'?",
        ),
        (
            ["spider", "one.jsonl", "--map", "gold=x", "--kind", "sql"],
            "the format names its fields itself, so leave it out",
        ),
        (["spider", "one.jsonl"], "--kind json: cases of this format are of the kind 'sql': leave it out"),
        (
            ["jsonl", "one.jsonl", "--language", "de"],
            "--language de: questions of this format are in one language: leave it out",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_call_that_cannot_be_served_ends_with_2_and_one_line(folder, capsys, arguments, message):
    lines("one.jsonl", {"gold": 1})
    Path("bad.json").write_text("{not}")
    Path("object.json").write_text("{}")
    Path("empty.jsonl").write_text("\n")

    with pytest.raises(SystemExit) as stop:
        main(["import", "--kind", "json", *arguments, "-o", "out"])

    out, err = capsys.readouterr()
    assert (stop.value.code, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert not [path for path in Path("out").glob("*") if path.is_file()]


def test_every_command_has_an_example_and_json_in_its_help(capsys):
    for command in ("import", "export", "merge", "compare", "render"):
        with pytest.raises(SystemExit) as stop:
            main([command, "--help"])
        text = capsys.readouterr().out
        assert stop.value.code == 0
        assert f"example: queryeval {command} " in text
        assert "--json" in text
