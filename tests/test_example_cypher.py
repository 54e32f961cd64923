"""examples/queryeval-cypher is what its README says: a small package that uses public extension points only."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from documentation import page as page_of
from test_walkthroughs import shows

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "examples/queryeval-cypher"
README = (EXAMPLE / "README.md").read_text(encoding="utf-8")
MODULES = {path.name: path.read_text(encoding="utf-8") for path in sorted((EXAMPLE / "queryeval_cypher").glob("*.py"))}
MAX_LINES = 400
ROW = re.compile(r"^\| (?P<modules>`pytest_queryeval\..*?) \| (?P<names>`.*?) \|$", re.MULTILINE)


def documented_names():
    """The names of each module that extending.md lists for engines in a child process and for languages."""
    page = page_of("extending")
    names = {}
    for row in ROW.finditer(page.partition("## An engine in a child process\n")[2].partition("\n## ")[0]):
        for module in re.findall(r"`([\w.]+)`", row["modules"]):
            names[f"pytest_queryeval.{module.removeprefix('pytest_queryeval.')}"] = set(
                re.findall(r"`(\w+)`", row["names"])
            )
    return names


def test_the_package_has_few_lines():
    lines = sum(not line.isspace() and bool(line) for text in MODULES.values() for line in text.splitlines())

    assert lines <= MAX_LINES
    for page in (README, page_of("extending")):
        assert f"package of {round(lines, -1)} lines" in page


def test_the_package_imports_documented_names_only():
    documented, api = documented_names(), page_of("python")
    nodes = [node for source in MODULES.values() for node in ast.walk(ast.parse(source))]
    imported = {
        (node.module, alias.name)
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module.startswith("pytest_queryeval")
        for alias in node.names
    } - {("pytest_queryeval.sandbox", "driver")}
    imported |= {
        ("pytest_queryeval.sandbox.driver", node.attr)
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "driver"
    }

    assert len(imported) > 30
    assert {(module, name) for module, name in imported if name not in documented.get(module, ())} == set()
    public = re.compile(r":: (?:pytest_queryeval\.)?([\w.]+)$", re.MULTILINE).findall(api)
    names = {f"{module}.{name}".removeprefix("pytest_queryeval.") for module, name in imported}
    assert {name for name in names if name not in public and name.rpartition(".")[2] not in public} == set()


def test_code_in_the_tutorial_is_that_of_the_package():
    passages = re.findall(r"^```(?:python|toml)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    files = [*MODULES.values(), (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8")]

    assert len(passages) == 7
    assert [passage for passage in passages if not any(passage in text for text in files)] == []


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Install the package next to this one, and run programs that see it."""
    pytest.importorskip("ladybug", reason="pip install ladybug")
    packages = tmp_path_factory.mktemp("packages")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    options = ["--no-deps", "--no-build-isolation", "--target", str(packages)]
    installed = subprocess.run([*command, *options, str(EXAMPLE)], capture_output=True, text=True, timeout=300)
    assert installed.returncode == 0, installed.stderr
    paths = os.pathsep.join(filter(None, (str(packages), os.environ.get("PYTHONPATH"))))
    environment = {name: value for name, value in os.environ.items() if name not in ("CI", "BUILD_NUMBER")}
    environment |= {"PYTHONPATH": paths, "COLUMNS": "80"}
    environment["PYTEST_ADDOPTS"] = f"{os.environ['PYTEST_ADDOPTS']} -p no:cacheprovider"

    def run(*arguments, cwd=ROOT):
        command = [sys.executable, "-m", *arguments]
        return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=600)

    return run


@pytest.mark.process
def test_the_suite_prints_what_the_tutorial_shows(run):
    result = run("pytest", "examples/queryeval-cypher/suite")

    text = README.partition("$ pytest examples/queryeval-cypher/suite\n")[2].partition("```")[0]
    assert result.returncode == 0, result.stdout + result.stderr
    assert shows(text, result.stdout), result.stdout


@pytest.mark.process
def test_mistakes_get_the_messages_that_the_tutorial_shows(run, tmp_path):
    script = (EXAMPLE / "suite/rivers.cypher").read_text(encoding="utf-8")
    (tmp_path / "rivers.cypher").write_text(script, encoding="utf-8")
    (tmp_path / "s.queryeval.yaml").write_text(
        "kind: cypher\nsource: {ladybug: {script: rivers.cypher}}\ncases:\n"
        "  - {id: unknown, gold: 'MATCH (r:River) RETURN r.nmae', predicted: RETURN 1}\n"
        "  - {id: writes, gold: RETURN 1, predicted: 'MATCH (r:River) SET r.km = 1 RETURN r.km'}\n",
        encoding="utf-8",
    )

    output = run("pytest", cwd=tmp_path).stdout
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
    without_package = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)

    text = README.partition("## Mistakes")[2].partition("```text\n")[2].partition("```")[0].splitlines()
    assert [line for line in text[:2] if line not in output] == [], output
    assert text[2] in without_package.stdout, without_package.stdout


@pytest.mark.process
@pytest.mark.long
def test_the_tests_of_the_package_pass(run):
    result = run("pytest", "examples/queryeval-cypher/tests")

    assert result.returncode == 0, result.stdout + result.stderr
    assert " passed in " in result.stdout
