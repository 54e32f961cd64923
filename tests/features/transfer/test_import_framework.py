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

pytestmark = pytest.mark.usefixtures("working_folder")

COMMAND = "pytest_queryeval.features.transfer.importers.command"


def case(id_="a", **keys):
    return {"id": id_, "question": "?", "gold": {"x": 1}, **keys}


def run(*cases, name="set.jsonl", options=()):
    """Import cases; return the status."""
    Path(name).write_text("".join(f"{json.dumps(case)}\n" for case in cases), encoding="utf-8")
    return main(["import", "jsonl", name, "--kind", "json", "-o", "out", *options])


def read_back(path="out"):
    return load_cases(path, root=Path("out"))


def files():
    return {path.name: path.read_bytes() for path in Path("out").iterdir()}


def test_cases_become_a_suite_that_collects_with_a_predictor_to_be_written(capsys):
    assert run(case("a"), case("b", evidence="so")) == 0

    assert [(case.id, case.evidence) for case in read_back()] == [("a", ""), ("b", "so")]
    assert files().keys() == {
        *("set.queryeval.yaml", "queryeval.yaml", "predict.py"),
        *("suite.schema.json", "settings.schema.json"),
    }
    assert "write your predictor here" in Path("out/predict.py").read_text()
    assert capsys.readouterr().out.splitlines()[:2] == ["suite: out/set.queryeval.yaml", "2 cases, 0 skipped"]


def test_files_name_the_schemas_that_they_keep():
    Path("out").mkdir()
    Path("out/suite.schema.json").write_text("somebody else's")
    of = case(evidence="-- a\n# b", tags=["x"], metadata={"a": [1]})

    run(of, options=["--map", "metadata=metadata"])
    assert Path("out/suite.schema.json").read_text() == "somebody else's"
    run(of, options=["--map", "metadata=metadata", "--force"])

    for name, schema in (("set.queryeval.yaml", "suite.schema.json"), ("queryeval.yaml", "settings.schema.json")):
        text = Path("out", name).read_text()
        assert text.startswith(f"# yaml-language-server: $schema={schema}\n")
        Draft7Validator(json.loads(Path("out", schema).read_text())).validate(yaml.safe_load(text))


def test_predictions_are_a_file_under_the_ids_of_the_suite():
    Path("p.jsonl").write_text('{"id": "a b", "predicted": "1", "trial": 2}\n')

    run(case("a b"), options=["--predictions", "p.jsonl"])

    assert json.loads(files()["predictions.jsonl"]) == {"id": "a-b", "predicted": "1", "trial": 2}
    assert read_back()[0].settings.predictor.settings == {"path": "predictions.jsonl"}
    assert "predict.py" not in files()


def test_ids_keep_their_text_as_far_as_they_can():
    ids = ["a", "a", "a-2", "weiß 1", "x::y", "../up", "", "\x1b[31m", "i" * 5_000, "i" * 5_001]

    run(*map(case, ids))

    own = [case.id for case in read_back()]
    assert own[:6] + own[7:8] == ["a", "a-2", "a-2-2", "weiß-1", "x--y", "../up", "--31m"]
    assert len(set(own)) == len(ids)
    assert max(map(len, own)) <= 210
    originals = [case.metadata.get("original_id", case.id) for case in read_back()]
    assert originals[:6] + originals[7:] == ids[:6] + ids[7:]


def test_many_cases_are_lines_in_several_files(monkeypatch):
    monkeypatch.setattr(f"{COMMAND}.MAX_YAML_CASES", 3)
    monkeypatch.setattr(f"{COMMAND}.MAX_SUITE_BYTES", 200)

    run(*(case(str(number)) for number in range(10)))

    suites = [name for name in files() if name.endswith(".jsonl")]
    assert len(suites) > 2
    assert all(re.fullmatch(r"set-\d{3}\.queryeval\.jsonl", name) for name in suites)
    assert all(len(files()[name]) <= 200 for name in suites)
    assert [case.id for case in read_back()] == [str(number) for number in range(10)]
    for name, limit in {"MAX_YAML_CASES": 10, "MAX_SUITE_BYTES": 10_000, "MAX_LOADED_BYTES": 1_000}.items():
        monkeypatch.setattr(f"{COMMAND}.{name}", limit)
    run(case("a", gold=["x" * 990]), case("b"), options=["--force"])
    assert [name for name in files() if "set" in name and "settings" not in name] == ["set-001.queryeval.jsonl"]


def nested(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


def test_what_the_loader_would_refuse_is_skipped_with_its_reason(capsys):
    golds = {
        "empty": ("", "its right answer cannot be read: not JSON: a value is missing"),
        "blank": (" \n", "its right answer cannot be read: not JSON: a value is missing"),
        "deep": (nested(90), "deeper than 90 levels"),
        "surrogate": ("\ud800", "half of a surrogate pair"),
        "surrogate-key": ({"\udfff": 1}, "half of a surrogate pair"),
        "large": ("x" * 2**22, "4 MiB"),
    }

    assert run(*(case(id_, gold=gold) for id_, (gold, _) in golds.items()), case("good", gold=nested(89))) == 1

    said = dict(zip(golds, re.findall(r"^skipped [^:]+: (.*)$", capsys.readouterr().out, re.MULTILINE), strict=True))
    assert [id_ for id_, (_, reason) in golds.items() if reason not in said[id_]] == []
    assert [case.id for case in read_back()] == ["good"]


def test_nothing_is_overwritten_without_force_or_by_an_import_that_fails_and_a_predictor_never(capsys):
    run(case("old"))
    Path("out/predict.py").write_text("def predict(case): return '1'\n")
    Path("out/set-7.queryeval.jsonl").write_text("of an earlier import")
    Path("out/other.queryeval.yaml").write_text("somebody else's")

    Path("file").write_text("mine")
    Path("earlier").mkdir()
    Path("earlier/set-7.queryeval.jsonl").write_text("of an earlier import")
    for options, said in (
        (("-o", "earlier"), "set-7.queryeval.jsonl: already exists"),
        ((), "queryeval.yaml: already exists: write elsewhere, or replace it"),
        (("-o", "file", "--force"), "file: cannot be written: "),
        (("--force", "--predictions", "none.jsonl"), "none.jsonl: no such file"),
    ):
        with pytest.raises(SystemExit):
            run(case("new", predicted="1"), options=options)
        assert said in capsys.readouterr().err
    assert read_back("out/set.queryeval.yaml")[0].id == "old"

    run(case("new"), options=["--force"])
    assert read_back("out/set.queryeval.yaml")[0].id == "new"
    assert Path("out/predict.py").read_text() == "def predict(case): return '1'\n"
    assert "set-7.queryeval.jsonl" not in files()
    assert "other.queryeval.yaml" in files()


def test_a_name_that_leads_elsewhere_stays_in_the_folder():
    run(case(), name="..up\n.jsonl")

    assert len([name for name in files() if name.endswith(".queryeval.yaml")]) == 1


ODD = [
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
]
TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from([*ODD, "\ufeffa\nb"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.long
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(gold=TEXTS.filter(str.strip), question=TEXTS.filter(str.strip), more=VALUES, many=st.booleans())
def test_a_suite_reads_back_what_was_imported(gold, question, more, many):
    record = {"id": "a", "kind": "sql", "question": question, "gold": f"SELECT 1 FROM {gold}", "more": more}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{COMMAND}.MAX_YAML_CASES", 0 if many else 10)
        run(record, options=["--source", "a.sqlite", "--map", "metadata=more", "--force"])

    (case,) = read_back()
    assert (case.question, case.golds[0].query, case.metadata.get("more")) == (question, f"SELECT 1 FROM {gold}", more)


def test_the_lines_for_people_go_to_standard_error_beside_json(capsys):
    status = run(case("::error::x"), {"id": "##vso[x]\x1b[31m"}, case("c", gold="no JSON"), options=["--json"])
    out, err = capsys.readouterr()

    output = json.loads(out)
    assert (status, output["suites"], output["cases"]) == (1, ["out/set.queryeval.yaml"], 1)
    assert [entry["id"] for entry in output["skipped"]] == ["##vso[x]\x1b[31m", "c"]
    assert "name the field with --map gold=FIELD (it has id)" in output["skipped"][0]["reason"]
    assert "its right answer cannot be read: not JSON" in output["skipped"][1]["reason"]
    assert out.count("\n") == 1
    assert "##" not in out + err
    assert "\x1b" not in out + err
    assert err.splitlines()[:2] == ["suite: out/set.queryeval.yaml", "1 case, 2 skipped"]


def test_every_command_has_an_example_and_json_in_its_help(capsys):
    for command in ("import", "export", "merge", "compare", "render"):
        with pytest.raises(SystemExit) as stop:
            main([command, "--help"])
        text = capsys.readouterr().out
        assert stop.value.code == 0
        assert f"example: queryeval {command} " in text
        assert "--json" in text
