"""Annotations of GitHub Actions, read as its runner reads workflow commands."""

import pytest
from report_maker import HOSTILE, evaluate_gate, make_gate, plain_report
from samples import entry

from pytest_queryeval.features.ci import MAX_ERRORS, annotation_lines

COMMANDS = [
    "::error title=x::taken",
    "##[error]taken",
    "\n::set-output name=a::b",
    "a\r\n::stop-commands::x",
    "a,line=9::x",
]


def parsed(line):
    """The name, properties and message of a command, as GitHub's runner takes a line apart."""
    assert line.isprintable()
    assert line.startswith("::")
    head, _, message = line[2:].partition("::")
    name, _, attributes = head.partition(" ")
    unescaped = {}
    for part in attributes.split(","):
        key, _, value = part.partition("=")
        for code, sign in (("%3A", ":"), ("%2C", ","), ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
            value = value.replace(code, sign)
        unescaped[key] = value
    return name, unescaped, message.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    return tmp_path


def annotations(root, *cases, gates=()):
    defaults = [case | {"message": case["message"] or "f1 0.000"} for case in cases]
    report = plain_report(*defaults, gates=[evaluate_gate(gate, defaults) for gate in gates])
    return [parsed(line) for line in annotation_lines(report, root)]


def failed(number=1, **changes):
    made = {"path": "s/a.queryeval.yaml", "id": f"bad-{number}", "line": number, "outcome": "failed"} | changes
    return entry(**made) | {"nodeid": f"{made['path']}::{made['id']}"}


def test_a_failed_case_is_an_error_at_its_line_of_the_repository(workspace):
    lines = annotations(workspace / "backend", failed(7, message="f1 0.000: missing 1 of 2 rows\nand more"), entry())

    place = {"file": "backend/s/a.queryeval.yaml", "line": "7", "title": "failed: s/a.queryeval.yaml::bad-7"}
    assert lines == [("error", place, "f1 0.000: missing 1 of 2 rows")]
    assert "line" not in annotations(workspace, failed(line=0))[0][1]  # it is not known


def test_the_workspace_may_have_another_name_by_a_link(workspace, tmp_path_factory, monkeypatch):
    link = tmp_path_factory.mktemp("links") / "workspace"
    link.symlink_to(workspace)
    monkeypatch.setenv("GITHUB_WORKSPACE", str(link))

    assert annotations(workspace, failed())[0][1]["file"] == "s/a.queryeval.yaml"


@pytest.mark.parametrize("path", ["../elsewhere/a.queryeval.yaml", "/elsewhere/a.queryeval.yaml", "s/\x1b[2J.yaml"])
def test_a_file_outside_the_repository_and_one_of_a_hostile_name_are_not_named(workspace, path):
    ((_, properties, _),) = annotations(workspace, failed(path=path))

    assert properties.keys() == {"title"}


def test_without_a_workspace_paths_are_those_of_the_run(tmp_path, monkeypatch):
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)

    assert annotations(tmp_path, failed())[0][1]["file"] == "s/a.queryeval.yaml"


def test_errors_and_failed_cases_are_annotated_and_no_others(workspace):
    cases = [
        failed(n, outcome=outcome) for n, outcome in enumerate(("missed", "error", "xfailed", "skipped", "failed"))
    ]

    titles = [properties["title"].partition(":")[0] for _, properties, _ in annotations(workspace, *cases)]

    assert sorted(titles) == ["error", "failed"]


def test_a_missed_gate_comes_first(workspace):
    missed, met = make_gate(folder="s", metric="pass_rate", min=0.5), make_gate(folder="s", metric="pass_rate", min=0)

    (name, properties, message), *rest = annotations(workspace, failed(), gates=[met, missed])

    assert (name, properties) == ("error", {"file": "s/queryeval.yaml", "title": "gate missed"})
    assert message.startswith("pass_rate in s is ")
    assert len(rest) == 1


@pytest.mark.parametrize("gates", [0, 1, MAX_ERRORS + 2])
def test_ten_errors_and_a_count_of_the_rest(workspace, gates):
    """GitHub shows ten errors and ten warnings of a step: an eleventh error would not be seen."""
    number = MAX_ERRORS + 5

    lines = annotations(workspace, *map(failed, range(1, number + 1)), gates=[make_gate(folder="s")] * gates)

    assert [name for name, *_ in lines] == ["error"] * MAX_ERRORS + ["warning"]
    assert lines[-1][2].startswith(f"{number + gates - MAX_ERRORS} more missed gates and failed cases")
    assert len(annotations(workspace, *map(failed, range(MAX_ERRORS)))) == MAX_ERRORS  # needs no count


@pytest.mark.parametrize("hostile", [*COMMANDS, *HOSTILE, "100 % a%0A::error::b"])
def test_no_text_becomes_another_command_or_property(workspace, hostile):
    part = hostile.replace("\0", "")  # which no path has
    case = failed(3, id=hostile, message=hostile, path=f"s/{part}.queryeval.yaml")

    for name, properties, message in annotations(workspace, case, gates=[make_gate(folder=part, metric=hostile)]):
        assert name == "error"
        assert properties.keys() <= {"file", "line", "title"}
        assert properties.get("line", "3") == "3"
        assert "##[" not in message
        assert "\n" not in message


def test_long_texts_are_cut(workspace):
    ((_, properties, message),) = annotations(workspace, failed(id="n" * 10_000, message="m" * 10_000))

    assert len(properties["title"]) < 150
    assert len(message) <= 500
