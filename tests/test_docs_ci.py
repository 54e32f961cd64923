"""The files for CI services are tried: their shell commands run as the service would run them, in a small project."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from documentation import page as page_of

import pytest_queryeval

pytestmark = [pytest.mark.process, pytest.mark.feature("ci", "evaluate", "page", "recording", "review")]

DOCS = Path(__file__).parent.parent / "docs"
GATING = page_of("ci")
GITHUB = yaml.safe_load((DOCS / "ci/github-actions.yml").read_text(encoding="utf-8"))
GITLAB = yaml.safe_load((DOCS / "ci/gitlab-ci.yml").read_text(encoding="utf-8"))
STARTER = Path(pytest_queryeval.__file__).parent / "features/starter/files"
STARTERS = {
    name: yaml.safe_load((STARTER / f"{name}.yml").read_text(encoding="utf-8").replace("FOLDER", "queries"))
    for name in ("github", "gitlab")
}
STARTER_STEPS = {step["name"]: step for step in STARTERS["github"]["jobs"]["queries"]["steps"] if "name" in step}
STEPS = {step["name"]: step for step in GITHUB["jobs"]["queries"]["steps"] if "name" in step}
JOB = GITLAB["queries"]
EVALUATE = STEPS["Evaluate"]["run"]
SCRIPT = "\n".join(JOB["script"])
EVERY_COMMAND = [
    *(step["run"] for step in (*STEPS.values(), *STARTER_STEPS.values()) if "run" in step),
    *(line for job in (JOB, STARTERS["gitlab"]["queries"]) for line in (*job["before_script"], *job["script"])),
]
REPORTS = {f"report.{suffix}" for suffix in ("json", "md", "csv", "codequality", "html", "xlsx")} | {"junit.xml"}
SETTINGS, RECORD, NEW_GOLDS = "# queries/queryeval.yaml\n", "record=recorded\n", "=baseline.json\n"
CASES = range(12)
GOOD = """
def predict(case):
    return f"SELECT {case.id.removeprefix('double-')} * 2"
"""
WORSE = """
def predict(case):
    number = int(case.id.removeprefix("double-"))
    return f"SELECT {number} * {2 + number % 2}"
"""
# The runs 3, 2 and 1 on main, of which only those in a file have a report that did not expire.
GH = """#!/bin/sh
echo "$@" >> asked.txt
case "$1 $2" in
  "run list") printf '3\\n2\\n1\\n' ;;
  "run download") grep -qx "$3" kept.txt && mkdir baseline && cp main.json baseline/report.json ;;
esac
"""
GONE = """
def predict(case):
    raise AssertionError("nobody is to be asked")
"""


def block(language, part):
    """The block of the page on gating that has a part; the first one where several have."""
    blocks = [text for text in re.findall(rf"^```{language}\n(.*?)^```$", GATING, re.M | re.S) if part in text]
    return blocks[0]


def make_project(folder):
    """The layout that the files expect, with the gates of the page on gating."""
    suite = folder / "queries"
    suite.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (suite / "queryeval.yaml").write_text(block("yaml", SETTINGS), encoding="utf-8")
    (suite / "empty.sql").write_text("CREATE TABLE t (a INTEGER);", encoding="utf-8")
    change_system(folder, GOOD)
    write_golds(folder, "{} + {}")
    return folder


@pytest.fixture
def project(tmp_path):
    return make_project(tmp_path)


def write_golds(project, form):
    head = "kind: sql\nsource: {sqlite: {script: empty.sql}}\npredictor: predict.py:predict\ncases:\n"
    cases = [
        f"  - {{id: double-{number}, question: What is twice {number}?, gold: SELECT {form.format(number, number)}}}\n"
        for number in CASES
    ]
    (project / "queries/doubles.queryeval.yaml").write_text(head + "".join(cases), encoding="utf-8")


def change_system(project, code):
    (project / "queries/predict.py").write_text(code, encoding="utf-8")


def run(project, command, shell=("bash", "-e")):
    """Run a command in the shell of a service, with its variables and none of the service that runs this test."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "CI_", "PYTEST_XDIST"))
    }
    path = os.pathsep.join((str(project / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]))
    values = {"PATH": path, "GITHUB_STEP_SUMMARY": str(project / "summary.md"), "MODEL_API_KEY": "0000", "CI": "true"}
    file = project / "step.sh"
    file.write_text(command, encoding="utf-8")
    return subprocess.run(
        [*shell, file], cwd=project, env=environment | values, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.fixture(scope="module")
def baseline(tmp_path_factory):
    """The report of a run of the good system, as a service keeps it between two runs."""
    project = make_project(tmp_path_factory.mktemp("before"))
    run(project, block("sh", "queries/baseline.json"))
    return project / "queries/baseline.json"


@pytest.fixture(scope="module")
def unchanged(baseline, tmp_path_factory):
    """The project and what the job of GitLab said of a system that did not change."""
    project = make_project(tmp_path_factory.mktemp("gitlab"))
    shutil.copy(baseline, project / "queries/baseline.json")
    return project, run(project, SCRIPT, ("bash", "-eo", "pipefail"))


@pytest.fixture(scope="module")
def worse(baseline, tmp_path_factory):
    """The project and what the job of GitHub said of a system that got worse than the baseline that it fetched."""
    project = make_project(tmp_path_factory.mktemp("github"))
    change_system(project, WORSE)
    fetch_baseline(project, baseline, "1\n")
    return project, run(project, EVALUATE)


def verdicts(project):
    report = json.loads((project / "reports/report.json").read_text(encoding="utf-8"))
    return [gate["ok"] for gate in report["gates"]]


def test_every_command_is_one_of_a_shell():
    for command in EVERY_COMMAND:
        result = subprocess.run(["bash", "-n"], input=command, capture_output=True, text=True, timeout=300, check=False)

        assert result.stderr == "", command
        assert "${{" not in command  # what a service writes into a script could be anybody's text


def test_both_files_install_what_the_project_names_and_keep_the_reports_of_runs_that_failed():
    keep = STEPS["Keep the reports"]

    assert STEPS["Install"]["run"] == "pip install -r requirements.txt"
    assert JOB["before_script"] == ["pip install -r requirements.txt"]
    assert (keep["if"], keep["with"]["path"]) == ("always()", "reports")
    assert (JOB["artifacts"]["when"], JOB["artifacts"]["paths"]) == ("always", ["reports/"])


def test_the_baseline_is_fetched_from_where_it_was_kept():
    fetch, entries = STEPS["Fetch the baseline"], STEPS["Keep the reports"]["with"]
    workflow = (DOCS / "ci/github-actions.yml").read_text(encoding="utf-8").partition(".github/workflows/")[2]

    assert f"--name {entries['name']} --dir baseline" in fetch["run"]
    assert f"--workflow {workflow.partition(':')[0]} " in fetch["run"]
    assert fetch["if"] == "github.event_name == 'pull_request'"
    assert GITHUB[True]["push"]["branches"] == ["main"]  # YAML reads `on` as true


def test_the_file_that_init_writes_fetches_the_baseline_in_the_same_way():
    assert STARTER_STEPS["Fetch the baseline"] == STEPS["Fetch the baseline"]
    assert STARTERS["github"]["permissions"] == GITHUB["permissions"]
    assert STARTER_STEPS["Keep the reports"]["with"].items() <= STEPS["Keep the reports"]["with"].items()
    assert (STARTER_STEPS["Evaluate"]["run"], STARTER_STEPS["Keep the reports"]["if"]) == (EVALUATE, "always()")


def fetch_baseline(project, baseline, kept):
    """Run the step that fetches the baseline, where the reports of the runs `kept` did not expire."""
    (project / "bin").mkdir()
    (project / "bin/gh").write_text(GH, encoding="utf-8")
    (project / "bin/gh").chmod(0o755)
    (project / "kept.txt").write_text(kept, encoding="utf-8")
    shutil.copy(baseline, project / "main.json")
    return run(project, STEPS["Fetch the baseline"]["run"])


@pytest.mark.parametrize(("kept", "asked"), [("3\n2\n", 1), ("1\n", 3), ("", 3)])
def test_the_baseline_is_the_last_report_of_main_that_is_left(project, baseline, kept, asked):
    fetched = fetch_baseline(project, baseline, kept)

    calls = (project / "asked.txt").read_text(encoding="utf-8").splitlines()
    assert "--status completed" in calls[0]  # failed ones too
    assert (fetched.returncode, len(calls)) == (0, 1 + asked)
    assert ("::warning title=No baseline::" in fetched.stdout) is (not kept)
    assert [path.name for path in project.glob("baseline/*")] == ["report.json"][: len(kept)]


def test_the_main_branch_runs_without_a_baseline_and_does_not_evaluate_its_gates(project):
    fetched, result = run(project, STEPS["Fetch the baseline"]["run"]), run(project, EVALUATE)

    assert fetched.stdout.startswith("::warning title=No baseline::")  # the list of runs cannot be read
    assert result.returncode == 0, result.stdout
    assert verdicts(project) == [True, None, None]


def issues(project):
    """Where the findings are that GitLab shows."""
    text = (project / JOB["artifacts"]["reports"]["codequality"]).read_text(encoding="utf-8")
    return [issue["location"]["path"] for issue in json.loads(text)]


def test_a_system_that_did_not_change_meets_all_gates_and_its_reports_are_where_gitlab_looks_for_them(unchanged):
    project, result = unchanged

    assert result.returncode == 0, result.stdout
    assert verdicts(project) == [True, True, True]
    assert {path.name for path in (project / "reports").iterdir()} == REPORTS
    cases, gates = ElementTree.parse(project / JOB["artifacts"]["reports"]["junit"]).getroot()
    assert (len(cases.findall("testcase")), gates.get("name")) == (len(CASES), "queryeval.gates")
    assert issues(project) == []
    assert STARTERS["gitlab"]["queries"]["artifacts"]["reports"] == JOB["artifacts"]["reports"]


def test_a_worse_system_fails_the_job_which_has_its_reports_and_a_summary_with_the_broken_cases(worse):
    project, result = worse

    assert result.returncode == 1
    assert verdicts(project) == [False, False, False]
    assert {path.name for path in (project / "reports").iterdir()} == REPORTS
    assert "6 regressions" in result.stdout
    assert issues(project) == ["queries/doubles.queryeval.yaml"] * 6
    summary = (project / "summary.md").read_text(encoding="utf-8")
    heading, _, verdict, *_ = summary.split("\n")
    assert (heading.endswith(" in `queries`"), verdict.partition(",")[0]) == (True, "**FAILED: 12 cases: 6 passed")
    assert "queries/doubles.queryeval.yaml::double-11" in summary


def test_gitlab_without_a_baseline_stops_and_says_so(project):
    result = run(project, SCRIPT, ("bash", "-eo", "pipefail"))

    assert result.returncode == 4
    assert "queries/baseline.json" in result.stderr


def test_new_golds_score_the_answers_that_were_recorded_and_nobody_is_asked(project):
    run(project, block("sh", RECORD))
    change_system(project, GONE)
    write_golds(project, "{} * 3 - {}")

    result = run(project, block("sh", NEW_GOLDS))

    assert result.returncode == 0, result.stdout
    assert json.loads((project / "baseline.json").read_text(encoding="utf-8"))["totals"]["passed"] == len(CASES)


def test_pictures_are_small_and_of_two_widths():
    pictures = {path.name: path.read_bytes() for path in (DOCS / "pictures").glob("*.png")}

    widths = {int.from_bytes(content[16:20]) for content in pictures.values()}
    assert widths == {1000, 1400}
    assert [name for name, content in pictures.items() if len(content) > 150_000] == []


def test_every_picture_is_shown_somewhere():
    pages = [DOCS.parent / "README.md", *DOCS.rglob("*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)

    assert [path.name for path in (DOCS / "pictures").glob("*.png") if f"pictures/{path.name})" not in text] == []
