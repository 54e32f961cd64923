"""The files for GitHub and for contributors: their form is valid, and what they call, ask for and link to exists."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
GITHUB = ROOT / ".github"
FORMS = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in GITHUB.glob("ISSUE_TEMPLATE/*.yml")}
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in GITHUB.glob("workflows/*.yml")}
JOBS = {(name, job): content for name, workflow in WORKFLOWS.items() for job, content in workflow["jobs"].items()}
SCRIPTS = [
    pytest.param(step["run"], id=f"{workflow}-{step['name']}")
    for (workflow, _), job in JOBS.items()
    for step in job["steps"]
    if "run" in step
]
SCHEMAS = {
    "vendor.github-workflows": "workflows/*.yml",
    "vendor.github-issue-forms": "ISSUE_TEMPLATE/[!c]*.yml",
    "vendor.github-issue-config": "ISSUE_TEMPLATE/config.yml",
}


def program(*command):
    return subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False
    )


@pytest.mark.process
@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_for_github_have_the_form_that_github_defines(schema):
    files = sorted(GITHUB.glob(SCHEMAS[schema]))

    checked = program(sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *files)

    assert checked.returncode == 0, checked.stdout


@pytest.mark.process
def test_the_configuration_of_pre_commit_is_one_and_its_tools_are_those_of_make_lint():
    checked = program(sys.executable, "-m", "pre_commit", "validate-config", ".pre-commit-config.yaml")
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    lint = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\nlint:")[2].partition("\n\n")[0]

    assert checked.returncode == 0, checked.stdout
    tools = {hook["entry"].split(" -")[0].replace(".venv-test", "$(TEST)") for hook in repository["hooks"]}
    assert {re.sub(r" (--check )?\.$", "", line) for line in lint.split("\n\t")[1:]} == tools


@pytest.mark.process
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_step_is_a_script_whose_files_and_targets_of_make_exist(script):
    parsed = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, timeout=300, check=False)
    targets = re.findall(r"^make ([\w-]+)", script, re.MULTILINE)
    files = re.findall(r"(?:^| )(\.ci/\w+|example_suite|pyproject\.toml)\b", script, re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")

    assert parsed.stderr == ""
    assert "${{" not in script  # what GitHub writes into a script could be anybody's text
    assert {*targets} <= {*re.findall(r"^([\w-]+):", makefile, re.MULTILINE)}
    assert [name for name in files if not (ROOT / name).exists()] == []
    assert all(os.access(ROOT / name, os.X_OK) for name in files if name.startswith(".ci/"))


def test_only_the_job_that_publishes_may_do_more_than_read():
    assert {str(workflow["permissions"]) for workflow in WORKFLOWS.values()} == {"{'contents': 'read'}"}
    more = {name: job["permissions"] for name, job in JOBS.items() if "permissions" in job}
    assert more == {("release", "publish"): {"id-token": "write"}}


def test_every_python_that_the_package_claims_is_tried_and_its_failure_is_one():
    classifiers = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    claimed = set(re.findall(r":: (3\.\d+)\"", classifiers))
    tried = JOBS["ci", "plugin"]["strategy"]["matrix"]["include"]

    assert {it["python"] for it in tried if it["claimed"]} | {"3.11"} == claimed
    assert {"macos-latest", "ubuntu-latest"} == {it["os"] for it in tried}


@pytest.mark.parametrize("name", ["bug", "wrong-verdict"])
def test_a_form_asks_for_the_report_and_the_version_and_warns_of_secrets(name):
    fields = {field.get("id"): field for field in FORMS[name]["body"]}

    assert "report.json" in fields["report"]["attributes"]["label"]
    assert fields["version"]["validations"]["required"]
    assert fields["secrets"]["attributes"]["options"][0]["required"]


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "README.md", "SECURITY.md"])
def test_a_page_at_the_top_links_to_files_that_exist(page):
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / page).read_text(encoding="utf-8"))

    assert links
    assert [link for link in links if not (ROOT / link).is_file()] == []


def test_pages_that_files_for_github_name_exist():
    texts = [path.read_text(encoding="utf-8") for path in GITHUB.rglob("*.*") if path.is_file()]
    named = set(re.findall(r"\b(?:docs/)?[\w/-]+\.md\b", " ".join(texts)))

    assert {"SECURITY.md", "docs/how-to/results.md"} <= named
    assert [name for name in named if not (ROOT / name).is_file()] == []
