"""The wheel and the sdist hold what users need: the README's start works from an installed wheel."""

import re
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from documentation import page as page_of

pytestmark = [pytest.mark.process, pytest.mark.slow]

ROOT = Path(__file__).parent.parent
START = re.compile(r"^\*\*`([\w.]+)`\*\*[^\n]*\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def call(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, **options)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build both from the checkout, the wheel by way of the sdist as `make dist` does."""
    folder = tmp_path_factory.mktemp("dist")
    done = call(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_wheel_holds_the_package_alone_with_its_data(built):
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()

    tracked = call("git", "ls-files", "pytest_queryeval", cwd=ROOT).stdout.split()
    assert {name for name in names if ".dist-info/" not in name} >= set(tracked) > {"pytest_queryeval/py.typed"}
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"pytest_queryeval"}


def test_the_sdist_holds_the_tests_and_the_docs(built):
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert {"README.md", "LICENSE", "CHANGELOG.md", "Makefile", "docs/index.md", "tests/conftest.py"} <= names
    assert {"CONTRIBUTING.md", "SECURITY.md", ".github/workflows/ci.yml", ".pre-commit-config.yaml"} <= names
    assert {"examples/queryeval-cypher/README.md", "examples/queryeval-cypher/suite/rivers.cypher"} <= names
    assert not [name for name in names if name.startswith((".venv", ".git/", "dist/"))]


def test_the_first_suite_of_the_documentation_runs_from_the_wheel(built, tmp_path):
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env/bin/python"
    packages = sysconfig.get_path("purelib", vars={"base": str(tmp_path / "env")})
    # The dependencies are those of this environment; what is tested comes from the wheel.
    ours = "".join(f"{path}\n" for path in sys.path if path.endswith("site-packages"))
    (Path(packages) / "dependencies.pth").write_text(ours, encoding="utf-8")
    (wheel,) = built.glob("*.whl")
    installed = call(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel)
    assert installed.returncode == 0, installed.stderr
    folder = tmp_path / "start"
    folder.mkdir()
    for name, text in START.findall(page_of("index")):
        (folder / name).write_text(text, encoding="utf-8")

    origin = call(python, "-c", "import pytest_queryeval; print(pytest_queryeval.__file__)", cwd=folder)
    run = call(python, "-m", "pytest", "-p", "no:cacheprovider", cwd=folder)

    assert origin.stdout.startswith(packages)
    assert run.returncode == 1
    assert "1 failed, 1 passed" in run.stdout
    assert run.stdout.splitlines()[-1] == "queryeval: FAILED: 1 case failed"
