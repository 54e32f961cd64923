"""`queryeval init` writes a suite that passes at once, and `queryeval schema` prints what editors check it by."""

import io
import json
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout, suppress
from pathlib import Path

import pytest
import yaml
from editor_schemas import objections

import pytest_queryeval
from pytest_queryeval.cli import main
from pytest_queryeval.metrics import METRICS

pytestmark = pytest.mark.usefixtures("working_folder")


def choices_of(option):
    """What the help says that an option takes."""
    with redirect_stdout(io.StringIO()) as output, suppress(SystemExit):
        main(["init", "--help"])
    return re.search(rf"--{option} {{([\w,]+)}}", output.getvalue())[1].split(",")


CASES = {"sql": 3, "sparql": 3, "json": 3, "sdmx": 2}
SUITE, SETTINGS = Path("queries/books.queryeval.yaml"), Path("queries/queryeval.yaml")


def init(*arguments):
    return main(["init", *arguments])


def refusal(capsys, *arguments):
    with pytest.raises(SystemExit) as stopped:
        init(*arguments)
    assert stopped.value.code == 2
    return capsys.readouterr().err


def stored(name):
    """The schema in the package."""
    return Path(pytest_queryeval.__file__).with_name(f"{name}.schema.json").read_text(encoding="utf-8")


def contents(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.process
@pytest.mark.parametrize("predictor", choices_of("predictor"))
@pytest.mark.parametrize("kind", choices_of("kind"))
def test_what_is_written_passes_at_once(pytester, kind, predictor):
    assert init("queries", "--kind", kind, "--predictor", predictor) == 0

    result = pytester.runpytest_inprocess("queries", "-W", "error")

    assert result.ret == 0
    result.assert_outcomes(passed=CASES[kind])
    result.stdout.fnmatch_lines(["*1 gate met*"])
    assert objections(SUITE) == objections(SETTINGS) == []


@pytest.mark.parametrize(
    ("predictor", "name"), [("python", "predict.py"), ("file", "answers.jsonl"), ("command", "predict.py")]
)
def test_the_files_to_edit_are_named(capsys, predictor, name):
    init("queries", "--predictor", predictor)

    todo = f"then edit {SUITE} (your questions) and queries/{name} (your system)"
    assert capsys.readouterr().out.splitlines()[-1] == todo


@pytest.mark.process
def test_a_start_from_the_shell(working_folder):
    command = [sys.executable, "-c", "import sys; from pytest_queryeval.cli import main; sys.exit(main())", "init", "q"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=300)

    assert "run it: pytest q" in done.stdout.splitlines()
    run = subprocess.run([sys.executable, "-m", "pytest", "q"], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout
    assert "3 passed" in run.stdout


def test_the_schemas_are_beside_the_files_that_name_them():
    init("queries")

    for path, name in ((SUITE, "suite"), (SETTINGS, "settings")):
        first, second, *_ = path.read_text(encoding="utf-8").splitlines()
        assert first == f"# yaml-language-server: $schema={name}.schema.json"
        assert second == f"# $schema: {name}.schema.json"
        assert (path.parent / f"{name}.schema.json").read_text(encoding="utf-8") == stored(name)


def test_files_that_exist_are_kept_and_missing_ones_are_written(working_folder, capsys):
    init("queries")
    capsys.readouterr()
    SUITE.write_text("kind: sql\n", encoding="utf-8")
    SETTINGS.unlink()
    before = contents(working_folder)

    assert init("queries") == 0

    assert contents(working_folder) == {**before, working_folder / SETTINGS: SETTINGS.read_bytes()}
    out = capsys.readouterr().out.splitlines()
    assert out[:2] == [f"file: {SETTINGS}", f"kept: {SUITE}, which exists"]


def test_a_folder_with_a_suite_gets_only_what_belongs_around_it(working_folder, capsys):
    Path("queries").mkdir()
    Path("queries/mine.queryeval.yaml").write_text("kind: sql\n", encoding="utf-8")

    assert init("queries") == 0

    names = {str(path.relative_to(working_folder)) for path in contents(working_folder)}
    schemas = {"queries/suite.schema.json", "queries/settings.schema.json"}
    assert names == {"queries/mine.queryeval.yaml", "pytest.ini", ".github/workflows/queries.yml", *schemas}
    assert capsys.readouterr().out.splitlines()[-1] == "run it: pytest queries"


@pytest.mark.parametrize("ci", ["github", "gitlab"])
def test_a_second_suite_keeps_the_workflow_of_the_first_one_and_says_what_to_add(working_folder, capsys, ci):
    init("first", "--ci", ci)
    before = contents(working_folder)

    assert init("second", "--kind", "json", "--ci", ci) == 0

    assert "which exists: add `pytest second` to it, or let --force add it" in capsys.readouterr().out
    assert {path: contents(working_folder)[path] for path in before} == before


@pytest.mark.parametrize("ci", ["github", "gitlab"])
def test_a_workflow_that_runs_another_suite_runs_a_forced_one_too_and_keeps_what_was_edited(working_folder, ci):
    init("first", "--ci", ci)
    (path,) = (path for path in (Path(".github/workflows/queries.yml"), Path(".gitlab-ci.yml")) if path.exists())
    edited = path.read_text(encoding="utf-8").replace("30", "45")
    path.write_text(edited, encoding="utf-8")

    statuses = [init("second", "--kind", "json", "--ci", ci, "--force") for _ in range(2)]

    assert statuses == [0, 0]
    both = "pytest first second --queryeval-report=reports"
    assert path.read_text(encoding="utf-8") == edited.replace("pytest first --queryeval-report=reports", both)


def test_force_replaces_the_workflow_of_the_same_suite_only(working_folder):
    init("first", "--ci", "gitlab")
    before = contents(working_folder)
    Path(".gitlab-ci.yml").write_text("mine: {script: [pytest first --queryeval-report=reports]}", encoding="utf-8")

    assert init("first", "--ci", "gitlab", "--force") == 0
    assert contents(working_folder) == before


def test_a_link_is_a_file_that_is_there_which_force_replaces_and_not_its_target(working_folder, capsys):
    Path("queries").mkdir()
    SUITE.symlink_to(working_folder / "elsewhere")

    assert init("queries") == 0
    assert f"kept: {SUITE}, which exists" in capsys.readouterr().out
    assert not Path("elsewhere").exists()
    Path("elsewhere").write_text("kept", encoding="utf-8")
    assert init("queries", "--kind", "json", "--force") == 0
    assert "kind: json" in SUITE.read_text(encoding="utf-8")
    assert Path("elsewhere").read_text(encoding="utf-8") == "kept"


def test_a_folder_that_cannot_be_made_is_one_error(capsys):
    Path("queries").write_text("", encoding="utf-8")

    assert refusal(capsys, "queries", "--ci", "none") == "queries: is a file: name a folder\n"


def test_the_workflow_and_the_pytest_ini_are_at_the_root_of_the_repository(working_folder, monkeypatch):
    Path(".git").mkdir()
    Path("evaluation").mkdir()
    monkeypatch.chdir("evaluation")

    init("suites", "--ci", "github")

    assert (working_folder / "pytest.ini").read_text(encoding="utf-8").startswith("[pytest]\n")

    workflow = yaml.safe_load((working_folder / ".github/workflows/queries.yml").read_text(encoding="utf-8"))
    commands = "".join(step.get("run", "") for step in workflow["jobs"]["queries"]["steps"])
    assert '\npytest evaluation/suites --queryeval-report=reports --queryeval-report=github "$@"\n' in commands
    assert 'pip install "pytest-queryeval[excel] @ git+URL"' in commands


@pytest.mark.process
def test_node_ids_are_the_same_wherever_pytest_is_started(pytester, monkeypatch):
    init("queries", "--ci", "none")

    reports = pytester.path / "a.json", pytester.path / "b.json"
    assert pytester.runpytest_inprocess("queries", f"--queryeval-report={reports[0]}").ret == 0
    monkeypatch.chdir("queries")
    assert pytester.runpytest_inprocess("books.queryeval.yaml", f"--queryeval-report={reports[1]}").ret == 0

    first, second = ([case["nodeid"] for case in json.loads(path.read_bytes())["cases"]] for path in reports)
    assert first == second
    assert {nodeid.partition("::")[0] for nodeid in first} == {"queries/books.queryeval.yaml"}


@pytest.mark.parametrize(
    ("name", "text", "is_written"),
    [
        ("pytest.ini", "[pytest]\naddopts = -q\n", False),
        ("pyproject.toml", "[tool.pytest.ini_options]\n", False),
        ("queries/tox.ini", "[pytest]\n", False),
        ("pyproject.toml", "[project]\nname = 'bot'\n", True),
    ],
)
def test_a_folder_that_configures_pytest_gets_no_second_file_that_does(working_folder, name, text, is_written):
    Path("queries").mkdir()
    Path(name).write_text(text, encoding="utf-8")

    init("queries")

    assert Path(name).read_text(encoding="utf-8") == text
    assert (name != "pytest.ini" and Path("pytest.ini").exists()) is is_written


def test_the_workflow_of_gitlab_and_none(working_folder):
    init("one", "--ci", "gitlab")
    init("two", "--ci", "none")

    [script] = yaml.safe_load(Path(".gitlab-ci.yml").read_text(encoding="utf-8"))["queries"]["script"]
    assert script == "pytest one --queryeval-report=reports"
    assert not Path(".github").exists()


@pytest.mark.parametrize("folder", ["a b", "a;b", "${{ github.token }}", "a'b", "ä", "a: b"])
def test_a_folder_whose_name_could_be_more_than_a_name_has_no_workflow(folder, working_folder, capsys):
    assert "add --ci none" in refusal(capsys, folder)
    assert contents(working_folder) == {}
    assert init(folder, "--ci", "none") == 0


@pytest.fixture
def answers(monkeypatch):
    """What the user types, line by line, on a terminal; the questions that were asked."""
    typed, calls = [], []

    def read(prompt):
        calls.append(prompt)
        if not typed:
            raise EOFError
        return typed.pop(0)

    monkeypatch.setattr("builtins.input", read)
    monkeypatch.setattr("sys.stdin", type("Terminal", (), {"isatty": lambda self: True})())
    return typed, calls


def test_a_terminal_is_asked(answers):
    typed, questions = answers
    typed += ["sdmx", "spreadsheet", "file", ""]

    assert init("queries") == 0
    assert len(questions) == 4
    assert "kind: sdmx" in SUITE.read_text(encoding="utf-8")
    assert "predictor: answers.jsonl" in SETTINGS.read_text(encoding="utf-8")
    assert Path(".github/workflows/queries.yml").exists()


@pytest.mark.parametrize("option", [["--kind", "json"], ["--predictor", "file"], ["--ci", "none"], ["--json"]])
def test_a_terminal_is_not_asked_where_an_option_says_something(option, answers):
    assert init("queries", *option) == 0
    assert answers[1] == []


def test_the_end_of_the_input_is_no_answer(working_folder, answers, capsys):
    assert "no answer: choose by --kind" in refusal(capsys, "queries")
    assert contents(working_folder) == {}


def test_json_lists_the_files(capsys):
    init("queries", "--json", "--ci", "none")

    output = json.loads(capsys.readouterr().out)
    assert output["run"] == "pytest queries"
    names = [os.path.join("queries", name) for name in os.listdir("queries")]  # noqa: PTH118, PTH208
    assert sorted(output["files"]) == sorted([*names, "pytest.ini"])


def test_schema_prints_the_schemas_of_the_package():
    program = (
        "import sys; from pytest_queryeval.cli import main\n"
        "for name in ('suite', 'settings', 'report'):\n"
        "    for options in ([], ['--json']): main(['schema', name, *options]); print('---')"
    )

    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)

    of_all = said.stdout.split("---\n")
    for number, name in enumerate(("suite", "settings", "report")):
        assert of_all[2 * number] == stored(name)
        assert json.loads(of_all[2 * number + 1]) == json.loads(stored(name))


def test_schema_has_what_a_conftest_registers(monkeypatch, capsys):
    monkeypatch.setattr(METRICS, "_members", dict(METRICS._members))
    Path("names.py").write_text("NAME = 'own'\n", encoding="utf-8")
    lines = (
        "from names import NAME",
        "from pytest_queryeval import METRICS",
        "METRICS.register(NAME, lambda a, b: 1.0)",
    )
    Path("conftest.py").write_text("\n".join(lines), encoding="utf-8")
    path = list(sys.path)

    main(["schema", "suite", "--conftest", "conftest.py"])

    assert "own" in json.loads(capsys.readouterr().out)["definitions"]["thresholds"]["properties"]
    assert sys.path == path


@pytest.mark.parametrize("text", ["1 / 0", "import no_such_module", "def"])
def test_a_conftest_that_fails_is_one_error(text, capsys):
    Path("conftest.py").write_text(f"{text}\n", encoding="utf-8")

    with pytest.raises(SystemExit) as stopped:
        main(["schema", "suite", "--conftest", "conftest.py"])

    assert stopped.value.code == 2
    assert capsys.readouterr().err.startswith("conftest.py: cannot be run: ")
