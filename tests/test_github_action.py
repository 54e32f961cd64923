"""The GitHub action and the hook of pre-commit: their files are valid, and their steps run as the services run them."""

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
import yaml
from documentation import page as page_of

pytestmark = [pytest.mark.process, pytest.mark.feature("check", "ci", "excel", "page")]

ROOT = Path(__file__).parent.parent
ACTION_FILE, HOOKS_FILE = ROOT / "action.yml", ROOT / ".pre-commit-hooks.yaml"
ACTION = yaml.safe_load(ACTION_FILE.read_text(encoding="utf-8"))
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
(HOOK,) = yaml.safe_load(HOOKS_FILE.read_text(encoding="utf-8"))
DOCS = ROOT / "docs"
PAGE = page_of("ci")
WORKFLOW = (DOCS / "ci/github-action.yml").read_text(encoding="utf-8")
(HOOK_CONFIGURATION,) = re.findall(r"^```yaml\n(# \.pre-commit.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
WORKFLOW_STEPS = {step["name"]: step for step in yaml.safe_load(WORKFLOW)["jobs"]["queries"]["steps"] if "name" in step}
INPUT = re.compile(r"\$\{\{ inputs\.([a-z-]+) \}\}")
BY_EVENT = re.compile(r"\$\{\{ github\.event_name == '(\w+)' && '([^']*)' \|\| '([^']*)' \}\}")
BASH = ("bash", "--noprofile", "--norc", "-eo", "pipefail")  # `shell: bash` of GitHub
GATES = "on_miss: xfail\ngates:\n  - {metric: execution_accuracy, min: 0.6}\n  - {max_regressions: 0}\n"
REPORT, BASELINE = "reports/report.json", "baseline/report.json"
CASE = "  - {{id: double-{0}, question: What is twice {0}?, gold: SELECT {0} * n FROM two, predicted: '{1}'}}\n"


def suite(predicted):
    """A suite with three cases, one of which has this prediction."""
    predictions = ("SELECT 2 * n FROM two", predicted, "SELECT 8")
    cases = "".join(CASE.format(number, text) for number, text in zip((2, 3, 4), predictions, strict=True))
    return f"kind: sql\nsource: {{sqlite: {{script: two.sql}}}}\ncases:\n{cases}"


RIGHT, WRONG = suite("SELECT 6"), suite("SELECT 5")


@pytest.fixture
def project(tmp_path):
    """A checkout with suites, as the page describes it."""
    queries = tmp_path / "queries"
    queries.mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (tmp_path / "requirements.txt").write_text("python-dotenv\n", encoding="utf-8")
    (queries / "queryeval.yaml").write_text(GATES, encoding="utf-8")
    (queries / "two.sql").write_text("CREATE TABLE two (n INTEGER); INSERT INTO two VALUES (2);", encoding="utf-8")
    (queries / "doubles.queryeval.yaml").write_text(RIGHT, encoding="utf-8")
    return tmp_path


def environment(programs):
    """The variables of this machine, without those of a service or of the environment that runs this test."""
    prefixes = ("GITHUB_", "CI", "PYTEST_", "VIRTUAL_ENV", "PYTHONPATH", "GIT_", "PRE_COMMIT")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
    without_plugins = {"PYTEST_ADDOPTS": os.environ["PYTEST_ADDOPTS"]}  # of the tests, which take long to import
    return variables | without_plugins | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}


def run_step(name, project, programs=None, **inputs):
    """Run a step of the action in the folder of a project, by the programs of an environment."""
    step = STEPS[name]
    values = {key.replace("-", "_"): setting["default"] for key, setting in ACTION["inputs"].items()} | inputs

    def value_of(text):
        return INPUT.sub(lambda match: values[match[1].replace("-", "_")], text)

    variables = {
        "GITHUB_ACTION_PATH": str(ROOT),
        "GITHUB_STEP_SUMMARY": str(project / "summary.md"),
        "GITHUB_WORKSPACE": str(project),
    }
    variables |= {key: value_of(text) for key, text in step["env"].items()}
    return subprocess.run(
        [*BASH, "-c", step["run"]],
        cwd=project / value_of(step["working-directory"]),
        env=environment(programs or Path(sys.executable).parent) | variables,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def inputs_of(event):
    """The inputs that the workflow of the page gives to the action."""
    values = WORKFLOW_STEPS["Evaluate"]["with"]
    return {key: BY_EVENT.sub(lambda match: match[2 if match[1] == event else 3], values[key]) for key in values}


def report_of(project):
    return json.loads((project / REPORT).read_text(encoding="utf-8"))


def run_program(*command, folder=ROOT, **variables):
    return subprocess.run(
        command,
        cwd=folder,
        env=environment(Path(sys.executable).parent) | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )


def commit_all(folder):
    """Make a folder a repository of git with one commit, and return its name."""
    who = ("-c", "user.name=name", "-c", "user.email=name@example.org", "-c", "commit.gpgsign=false")
    for arguments in (["init", "-q"], ["add", "--all"], [*who, "commit", "-q", "--no-verify", "-m", "All"]):
        subprocess.run(["git", *arguments], cwd=folder, env=environment("/usr/bin"), check=True, capture_output=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, check=True, capture_output=True, text=True)
    return head.stdout.strip()


@pytest.fixture(scope="module")
def package_index():
    """Skip a test where pip finds no package."""
    dry_run = ("-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps")
    attempt = run_program(sys.executable, *dry_run, "hatchling")
    if attempt.returncode != 0:
        pytest.skip("there is no package index")


def schema_objections(schema, *files):
    result = run_program(sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *files)
    return "" if result.returncode == 0 else result.stdout


def test_the_action_is_one_by_the_schema_of_actions():
    assert schema_objections("github-actions", ACTION_FILE) == ""


def test_the_schema_of_actions_objects_to_a_step_without_a_shell(tmp_path):
    (tmp_path / "action.yml").write_text(ACTION_FILE.read_text(encoding="utf-8").replace("shell: bash", ""), "utf-8")

    assert "action.yml" in schema_objections("github-actions", tmp_path / "action.yml")


def test_workflows_of_the_documentation_are_valid_by_the_schema_of_workflows():
    names = ("github-actions", "github-action", "agent")
    files = [ROOT / "pytest_queryeval/features/starter/files/github.yml", *(DOCS / f"ci/{name}.yml" for name in names)]

    assert schema_objections("github-workflows", *files) == ""


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_inputs_reach_scripts_by_variables_only(step):
    parsed = subprocess.run(["bash", "-n"], input=step["run"], capture_output=True, text=True, timeout=60, check=False)

    assert parsed.stderr == ""
    assert "${{" not in step["run"]
    assert [text for text in step["env"].values() if not INPUT.fullmatch(text)] == []


def test_each_input_is_used_and_on_the_page_with_its_default():
    used = {name for step in STEPS.values() for text in map(str, (step["env"], step)) for name in INPUT.findall(text)}
    rows = re.findall(r"^\| `([a-z-]+)` \|(?: `([^`]+)`)? \|", PAGE.partition("## The GitHub action")[2], re.MULTILINE)

    assert dict(rows) == {name: setting["default"] for name, setting in ACTION["inputs"].items()}
    assert used == set(ACTION["inputs"])


def test_the_page_restores_the_report_that_the_main_branch_has_kept():
    fetch, keep = WORKFLOW_STEPS["Fetch the baseline"], WORKFLOW_STEPS["Keep the baseline"]

    assert fetch["with"]["path"] == keep["with"]["path"] == inputs_of("pull_request")["baseline"] == BASELINE
    assert keep["with"]["key"].startswith(fetch["with"]["restore-keys"])
    assert inputs_of("push")["baseline"] == ""
    assert set(inputs_of("push")) <= set(ACTION["inputs"])


def test_a_pull_request_is_compared_with_the_report_of_the_main_branch(project):
    before = run_step("Evaluate", project, **inputs_of("push"))
    subprocess.run([*BASH, "-c", WORKFLOW_STEPS["Copy the baseline"]["run"]], cwd=project, check=True)
    (project / "queries/doubles.queryeval.yaml").write_text(WRONG, encoding="utf-8")

    after = run_step("Evaluate", project, **inputs_of("pull_request"))

    assert (before.returncode, after.returncode) == (0, 1), before.stdout + after.stdout
    assert report_of(project)["baseline"]["regressions"] == ["queries/doubles.queryeval.yaml::double-3"]
    assert "::error file=queries/queryeval.yaml,title=gate missed::" in after.stdout
    summary = (project / "summary.md").read_text(encoding="utf-8")
    assert re.findall(r"^\*\*(PASSED|FAILED)", summary, re.MULTILINE) == ["PASSED", "FAILED"]


def test_without_the_report_of_the_main_branch_a_pull_request_has_a_warning(project):
    result = run_step("Evaluate", project, **inputs_of("pull_request"))

    assert result.returncode == 0, result.stdout
    assert result.stdout.startswith(f"::warning title=No baseline::{BASELINE} is no file, so gates")
    assert [gate["ok"] for gate in report_of(project)["gates"]] == [True, None]


@pytest.mark.parametrize("extras", ["excel,exel", "excel duckdb", "excel,"])
def test_an_extra_that_does_not_exist_is_an_error_before_anything_is_installed(project, extras):
    result = run_step("Install", project, extras=extras)

    (name,) = {*extras.split(",")} - {"excel"}
    message = f"::error title=Not installed::no extra {name!r}: the input extras has names of duckdb, sqlalchemy, "
    assert (result.returncode, result.stdout, result.stderr[: len(message)]) == (1, "", message)
    assert result.stderr.count("\n") == 1


def test_requirements_that_cannot_be_installed_are_an_error_that_names_the_input(project):
    result = run_step("Install", project, requirements="none.txt", extras="")

    assert result.returncode == 1
    assert "\n::error title=Not installed::" in f"\n{result.stdout}"
    assert "requirements is a file relative to working-directory" in result.stdout


@pytest.mark.parametrize(
    ("suites", "status", "reason"),
    [("querys 100%", 4, "file or directory not found: querys 100%25"), ("empty", 5, "the suites have no case")],
)
def test_a_run_without_a_case_is_an_error_that_says_why_and_names_the_inputs(project, suites, status, reason):
    (project / "empty").mkdir()

    result = run_step("Evaluate", project, suites=suites)

    assert result.returncode == status
    assert f"\n::error title=Nothing was evaluated::{reason}" in result.stdout
    assert result.stdout.endswith(
        "(inputs suites and arguments have one value a line, and paths are relative to working-directory)\n"
    )


def test_inputs_are_arguments_whatever_they_say_and_paths_are_those_of_the_working_directory(project):
    hostile = "$(touch made) `touch made` ; touch made # \" '"
    service = project / "service"
    shutil.copytree(project, service, ignore=shutil.ignore_patterns("service"))
    (service / "queries").rename(service / hostile)

    result = run_step(
        "Evaluate",
        project,
        working_directory="service",
        suites=f"{hostile}/doubles.queryeval.yaml::double-2\n{hostile}/doubles.queryeval.yaml::double-4\n",
        arguments=f"--queryeval-name={hostile}\n",
        baseline=f"{hostile}\n::error::made",
        reports="reports",
    )

    assert result.returncode == 0, result.stdout + result.stderr
    assert list(project.rglob("made")) == []
    assert "\n::error" not in result.stdout
    assert (report_of(service)["name"], report_of(service)["totals"]["passed"]) == (hostile, 2)


@pytest.mark.slow
def test_the_action_works_in_an_environment_without_packages(project, package_index):
    venv.create(project / "environment", with_pip=True)
    programs = project / "environment/bin"

    installed = run_step("Install", project, programs, **inputs_of("push"))
    evaluated = run_step("Evaluate", project, programs, **inputs_of("push"))

    assert installed.returncode == 0, installed.stdout + installed.stderr
    assert evaluated.returncode == 0, evaluated.stdout + evaluated.stderr
    assert {"report.html", "report.xlsx", "report.md"} <= {path.name for path in (project / "reports").iterdir()}


def run_pre_commit(project):
    home = project / ".git/pre-commit-home"
    return run_program(sys.executable, "-m", "pre_commit", "run", folder=project, PRE_COMMIT_HOME=str(home))


def run_hook(project, configuration):
    """Commit a project with a configuration of pre-commit, change a suite, and run its hooks on the change."""
    (project / ".pre-commit-config.yaml").write_text(yaml.safe_dump(configuration), encoding="utf-8")
    commit_all(project)
    (project / "notes.txt").write_text("", encoding="utf-8")
    subprocess.run(["git", "add", "--all"], cwd=project, check=True)
    without_suites = run_pre_commit(project)
    (project / "queries/doubles.queryeval.yaml").write_text(RIGHT.replace("twice 3", "twice 2"), encoding="utf-8")
    subprocess.run(["git", "add", "--all"], cwd=project, check=True)
    return without_suites, run_pre_commit(project)


def test_the_hook_is_one_by_pre_commit():
    assert run_program(sys.executable, "-m", "pre_commit", "validate-manifest", HOOKS_FILE).returncode == 0


def test_the_configuration_on_the_page_names_the_hook(tmp_path):
    (tmp_path / ".pre-commit-config.yaml").write_text(HOOK_CONFIGURATION, encoding="utf-8")

    validate = ("-m", "pre_commit", "validate-config", tmp_path / ".pre-commit-config.yaml")
    assert run_program(sys.executable, *validate).returncode == 0
    (repository,) = yaml.safe_load(HOOK_CONFIGURATION)["repos"]
    assert [hook["id"] for hook in repository["hooks"]] == [HOOK["id"]]


@pytest.mark.parametrize("path", ["a.queryeval.yaml", "b/a.queryeval.yml", "b/a.queryeval.jsonl", "b/queryeval.yaml"])
def test_the_hook_runs_after_a_change_of_suites_and_settings(path):
    assert re.search(HOOK["files"], path)
    assert not re.search(HOOK["files"], f"{path}.txt")


def test_the_hook_stops_a_commit_by_a_suite_only(project):
    hook = HOOK | {"language": "system", "args": ["queries", "--strict"]}

    without_suites, with_suite = run_hook(project, {"repos": [{"repo": "local", "hooks": [hook]}]})

    assert without_suites.returncode == 0, without_suites.stdout
    assert "no files to check" in without_suites.stdout
    assert with_suite.returncode == 1
    assert "queries/doubles.queryeval.yaml:5: warning [duplicate-question]" in with_suite.stdout


@pytest.mark.slow
def test_pre_commit_installs_the_hook_from_the_repository(project, tmp_path_factory, package_index):
    repository = tmp_path_factory.mktemp("repository")
    for name in ("pyproject.toml", "README.md", "LICENSE", HOOKS_FILE.name):
        shutil.copy(ROOT / name, repository)
    shutil.copytree(ROOT / "pytest_queryeval", repository / "pytest_queryeval", ignore=shutil.ignore_patterns("*.pyc"))
    configuration = yaml.safe_load(HOOK_CONFIGURATION)
    configuration["repos"][0] |= {"repo": str(repository), "rev": commit_all(repository)}
    configuration["repos"][0]["hooks"][0] |= {"args": ["queries", "--strict"], "additional_dependencies": [".[excel]"]}

    _, with_suite = run_hook(project, configuration)

    assert "queries/doubles.queryeval.yaml:5: warning [duplicate-question]" in with_suite.stdout
