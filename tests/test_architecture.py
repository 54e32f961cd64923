"""The house as docs/developers/architecture.md describes it, read from the imports of every module."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from contextlib import suppress
from functools import cache
from graphlib import TopologicalSorter
from importlib import metadata
from itertools import chain
from pathlib import Path

import pytest
from documentation import page as page_of
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from yaml_tables import read_table

import pytest_queryeval
from pytest_queryeval.cli import main
from pytest_queryeval.metrics import METRICS

PACKAGE = "pytest_queryeval"
ROOT = Path(pytest_queryeval.__file__).parent

HOUSE = read_table("architecture.yaml")
LAYERS, OWNERS, CHILDREN = HOUSE["layers"], HOUSE["owners"], HOUSE["children"]
FEATURES_FROM_BELOW = HOUSE["features_from_below"]
SHARED_MODULES, SHARED_WITH_CHILDREN = HOUSE["shared_modules"], set(HOUSE["shared_with_children"])

MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix("__init__").rstrip("."): path
    for path in sorted(ROOT.rglob("*.py"))
}


@cache
def tree(module):
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def statements(nodes):
    """The statements and all within them: expressions import nothing, and are most of a tree."""
    for node in nodes:
        yield node
        for field in ("body", "orelse", "handlers", "finalbody", "cases"):
            if isinstance(inner := getattr(node, field, None), list):  # the body of a lambda is none
                yield from statements(inner)


def imported_by(nodes):
    """The full names that import statements name; `from a import b` gives both `a` and `a.b`."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute here"
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


@cache
def imports(module):
    return imported_by(statements(tree(module).body))


@cache
def imports_at_run_time(module):
    """What is imported, also within functions, but not for type checkers only."""
    nodes = list(statements(tree(module).body))
    typing = [node for node in nodes if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)]
    checked = {inner for node in typing for inner in statements(node.body)}
    return imported_by(node for node in nodes if node not in checked)


@cache
def imports_at_start(module):
    """What is imported as soon as the module is: neither within functions nor for type checkers only."""
    return imported_by(tree(module).body)


def ours(names):
    """Modules of the package among the names, without its name; the package itself is ''."""
    short = {name.removeprefix(PACKAGE).lstrip(".") for name in names if name.split(".")[0] == PACKAGE}
    return {name for name in short if name in MODULES and (name or PACKAGE in names)}


def layer_of(module):
    return LAYERS.index(module.split(".")[0])


def roots(names):
    return {name.split(".")[0] for name in names}


@cache
def packages_imported_by(module):
    return roots(imports(module))


def test_every_module_has_its_place_in_a_layer():
    assert {module.split(".")[0] for module in MODULES} == set(LAYERS)


def test_imports_point_down():
    upward = [
        (module, name)
        for module in MODULES
        for name in ours(imports(module)) - {""}
        if layer_of(name) > layer_of(module)
    ]

    assert upward == []


def test_no_import_goes_in_a_circle():
    graph = {module: ours(imports_at_run_time(module)) - {module, ""} for module in MODULES}

    TopologicalSorter(graph).prepare()


def test_only_the_plugin_imports_pytest():
    named = {module: roots(imports(module)) for module in MODULES}

    assert [module for module, names in named.items() if "_pytest" in names] == []
    assert {module.split(".")[0] for module, names in named.items() if "pytest" in names} == {"plugin"}


def test_the_plugin_imports_nothing_else_before_it_is_used():
    names = imports_at_start("plugin") | imports_at_start("plugin.stash")

    assert roots(names) - sys.stdlib_module_names == {"pytest", PACKAGE}
    assert ours(names) <= {"", "plugin", "plugin.stash"}


def test_options_are_added_without_any_other_module():
    names = imports_at_start("plugin.options") | imports_at_start("runs.option_table")

    assert roots(names) - sys.stdlib_module_names == {"pytest", PACKAGE}
    assert ours(names) == {"runs.option_table"}


def member_of(module):
    """The member of a folder that a module is, or is a part of: `html` for `reports.html.case_list`."""
    return module.split(".")[1]


def may_import(member, other):
    """Whether a member of a folder may import another one: itself, and features those below them."""
    return other == member or other in FEATURES_FROM_BELOW[: [*FEATURES_FROM_BELOW, member].index(member)]


@pytest.mark.parametrize("folder", SHARED_MODULES)
def test_members_of_a_folder_do_not_import_each_other(folder):
    members = {name for name in MODULES if name.startswith(f"{folder}.")}
    alone = members - {f"{folder}.{name}" for name in SHARED_MODULES[folder]}

    others = {
        name: {module for module in alone if not may_import(member_of(name), member_of(module))} for name in members
    }

    assert {name: imported for name in members if (imported := ours(imports(name)) & others[name])} == {}


def with_all_it_imports(module):
    """The module, and whatever of ours it imports, but for the folders that these are in."""
    modules, left = set(), {module}
    while left:
        modules |= left
        named = {module for name in left for module in ours(imports(name))} - modules
        left = {module for module in named if not (ROOT / module.replace(".", "/")).is_dir()}
    return modules


def folders_of(module):
    """The packages that an import of the module also imports, but for that of all."""
    parts = module.split(".")
    return [".".join(parts[:number]) for number in range(1, len(parts))]


def test_every_program_of_a_child_process_is_known():
    assert {name for name in MODULES if name.endswith(("_child", "_build"))} == CHILDREN.keys()
    assert MODULES.keys() >= SHARED_WITH_CHILDREN


@pytest.mark.parametrize("module", CHILDREN)
def test_what_runs_in_a_child_process_imports_little(module):
    modules = with_all_it_imports(module)
    packages = {name for module in modules for name in roots(imports(module))} - sys.stdlib_module_names - {PACKAGE}

    assert modules - {module} <= SHARED_WITH_CHILDREN
    assert packages == set(CHILDREN[module])
    assert all(len(tree(folder).body) == 1 for name in modules - {module} for folder in folders_of(name))


@pytest.mark.parametrize("heavy", OWNERS)
def test_heavy_modules_are_imported_by_their_owners_only(heavy):
    assert {name for name in MODULES if heavy in packages_imported_by(name)} == set(OWNERS[heavy])


def output_of(program, folder):
    """The last lines that a program of Python prints, which runs in a folder without other plugins of pytest."""
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": f"-q -p {PACKAGE}.plugin"}
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        cwd=folder,
        env=environment,
    )
    return [set(line.split()[1:]) for line in run.stdout.splitlines() if line.startswith("LOADED")]


def test_gates_without_a_baseline_load_no_statistics_and_nothing_of_comparisons(tmp_path):
    gate = {"metric": "f1", "no_regression": {"alpha": 0.05, "max_drop": 0.0}}
    program = f"""if True:
        import sys
        from {PACKAGE}.results.gates.rules import NO_REGRESSION
        NO_REGRESSION.measure({gate}, {{"before": [], "after": []}})
        print("LOADED", *sys.modules)"""

    (loaded,) = output_of(program, tmp_path)

    assert not roots(loaded) & {"numpy", "scipy"}
    assert not loaded & {f"{PACKAGE}.results.baseline.{name}" for name in ("comparison", "statistics")}


def test_to_collect_loads_no_parser_and_to_run_cases_that_pass_nothing_that_only_others_need(tmp_path):
    metrics = "metrics: [exact_set_match, exact_set_match_spider]\nthresholds: {}\n"
    suite = f"kind: sql\nsource: a.db\n{metrics}cases:\n  - {{id: a, gold: SELECT 1, predicted: SELECT 1}}\n"
    (tmp_path / "a.queryeval.yaml").write_text(suite, encoding="utf-8")
    table = "{columns: [n], rows: [[1]]}"
    case = f"  - {{id: a, gold_table: {table}, predicted_table: {table}}}"
    (tmp_path / "b.queryeval.yaml").write_text(f"kind: sql\nsource: a.db\ncases:\n{case}\n", encoding="utf-8")
    program = """if True:
        import sys, pytest
        for arguments in (["--collect-only", "a.queryeval.yaml"], ["b.queryeval.yaml"]):
            assert pytest.main(arguments) == 0
            print()
            print("LOADED", *sys.modules)"""

    collected, ran = output_of(program, tmp_path)

    ours = ("evaluation.runner", "features.recording", "languages.sparql", "reports.story", "runs.workers")
    unneeded = ("asyncio", "multiprocessing", *(f"{PACKAGE}.{name}" for name in ours))
    assert "yaml" in collected
    assert roots(collected) & (OWNERS.keys() - {"yaml"}) == set()
    assert [name for name in ran if name.startswith(unneeded)] == []


def pinned_versions():
    lines = (Path(__file__).parent.parent / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def test_constraints_have_a_version_of_each_package_that_pyproject_names():
    pyproject = (Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(pyproject)["project"]
    named = [*project["dependencies"], *chain.from_iterable(project["optional-dependencies"].values())]
    versions = pinned_versions()

    for requirement in map(Requirement, named):
        if requirement.name != "pytest-queryeval":
            version = versions[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(version), requirement


def installed_packages(*requirements):
    """Return the names of the installed packages of `requirements`, and of all that these bring."""
    waiting, read = list(requirements), {}
    while waiting:
        requirement = waiting.pop()
        name, extras = canonicalize_name(requirement.name), {"", *requirement.extras}
        if extras <= read.get(name, set()):
            continue
        read[name] = read.get(name, set()) | extras
        with suppress(metadata.PackageNotFoundError):
            brought = map(Requirement, metadata.requires(name) or [])
            waiting += [it for it in brought if not it.marker or any(it.marker.evaluate({"extra": e}) for e in extras)]
    return {name for name in read if any(metadata.distributions(name=name))}


def test_constraints_have_a_version_of_each_package_of_the_test_environment():
    brought_by_other_builds_of_torch = re.compile("nvidia-|cuda-|triton")
    packages = installed_packages(Requirement("pytest-queryeval[test]")) - {"pytest-queryeval"}

    unpinned = packages - pinned_versions().keys()

    assert {name for name in unpinned if not brought_by_other_builds_of_torch.match(name)} == set()


def test_helpers_of_tests_are_imported_from_modules_of_their_own():
    """Several folders have a `conftest`: which of them an import finds depends on the tests that are run."""
    naming = [path for path in Path(__file__).parent.rglob("*.py") if b"conftest" in path.read_bytes()]
    imported = {path.name: imported_by(statements(ast.parse(path.read_bytes()).body)) for path in naming}

    assert [name for name, names in imported.items() if "conftest" in roots(names)] == []


TESTS = Path(__file__).parent
WHITE_BOX = re.compile("# white box: .+")
EXTENDING = page_of("extending")
FOR_EXTENSIONS = set(re.findall(rf"{PACKAGE}\.([\w.]*\w)", EXTENDING))


def is_public(module):
    """Whether a module is a folder, a type of the core, or one that docs/developers/extending.md names."""
    folder, *inner = module.split(".")
    if module in FOR_EXTENSIONS:
        return True
    if folder == "core":
        return not inner or (inner[0] in HOUSE["public_core"] and len(inner) == 1)
    return len(inner) <= (folder == "features")


def private_modules(node):
    """The modules within folders that an import statement names."""
    if isinstance(node, ast.Import):
        named = {alias.name for alias in node.names}
    else:
        of_package = {f"{node.module}.{alias.name}" for alias in node.names}
        named = {name if name.removeprefix(f"{PACKAGE}.") in MODULES else node.module for name in of_package}
    return {name for name in ours(named) if not is_public(name)}


def test_tests_import_folders_and_say_why_if_they_import_a_module_within_one():
    unexplained = [
        f"{path.relative_to(TESTS)}:{node.lineno}: {name}"
        for path in sorted(TESTS.rglob("*.py"))
        for text in [path.read_text(encoding="utf-8")]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        and not WHITE_BOX.search("".join(text.splitlines()[node.lineno - 1 : node.end_lineno]))
        for name in private_modules(node)
    ]

    assert unexplained == []


def test_nothing_prints():
    calls = [
        f"{module}:{node.lineno}"
        for module, path in MODULES.items()
        if "print" in path.read_text(encoding="utf-8")
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]

    assert calls == []


def words_in_strings(module):
    """The words in the texts of a module, in which it may register another one; not those of docstrings."""
    nodes = list(ast.walk(tree(module)))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and id(node) not in docstrings]
    return {word for text in texts if isinstance(text, str) for word in re.findall(r"\w+", text)}


def test_every_module_is_imported_or_registered():
    imported = {name for module in MODULES for name in ours(imports(module)) - {module}}
    words = {module: words_in_strings(module) for module in MODULES}
    entry_points = (ROOT.parent / "pyproject.toml").read_text(encoding="utf-8")
    unused = [
        module
        for module, path in MODULES.items()
        if path.name not in ("__init__.py", "__main__.py")
        and module not in imported
        and f"{PACKAGE}.{module}:" not in entry_points
        and not any(module.rpartition(".")[2] in words[other] for other in MODULES.keys() - {module})
    ]

    assert unused == ["testing"]  # for packages that add engines


def test_every_name_of_a_module_is_used():
    """A gate rule, an importer or a section that nobody registers would be dead without any other sign."""
    entry_points = (ROOT.parent / "pyproject.toml").read_text(encoding="utf-8")
    used = Counter(re.findall(r"\w+", entry_points + "".join(path.read_text("utf-8") for path in MODULES.values())))
    defined = {
        name
        for module in MODULES
        for node in tree(module).body
        for name in (
            [node.name]
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
            else [it.id for it in ast.walk(node) if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store)]
        )
    }

    assert len(defined) > 5_000
    unused = {name for name in defined - {*METRICS.available()} if used[name] == 1}
    assert {name for name in unused if not name.startswith("pytest_")} == set()


def test_every_option_is_read(pytestconfig, capsys):
    """The options of pytest and of all commands are attributes of what a module is given."""
    given, by_other_means = (
        {"arguments", "choices", "options", "option_values", "self"},
        {"from", "junit_gates", "junit_properties", "strength"},
    )
    attributes = [node for module in MODULES for node in ast.walk(tree(module)) if isinstance(node, ast.Attribute)]
    read = {it.attr for it in attributes if isinstance(it.ctx, ast.Load) and ast.unparse(it.value) in given}
    options = [name.partition("queryeval_")[2] for name in (*pytestconfig._parser._inidict, *vars(pytestconfig.option))]
    commands = re.findall(r"^    ([a-z]+) ", usage(capsys), re.MULTILINE)
    for command in commands:
        options += re.findall(r"^  (?:-\w, )?--([a-z-]+)", usage(capsys, command), re.MULTILINE)

    assert {"evaluate", "check"} <= {*commands}
    assert {"report", "trials", "no-run"} <= {*options}
    assert {name for name in options if name.replace("-", "_") not in read} - by_other_means <= {"", "help"}


def usage(capsys, *command):
    with suppress(SystemExit):
        main([*command, "--help"])
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "page",
    [ROOT.parent / "docs/developers/architecture.md", *sorted(ROOT.glob("features/*/README.md"))],
    ids=lambda page: f"{page.parent.name}/{page.name}",
)
def test_every_file_that_is_described_exists(page):
    """A path may be shortened at its start, as in a table on one feature."""
    folders = (ROOT, *(ROOT.parent / name for name in ("benchmarks", "docs", "tests")))
    paths = {f"/{path.relative_to(ROOT.parent)}" for folder in folders for path in folder.rglob("*.*")}
    described = set(re.findall(r"`([\w/]+\.(?:py|js|jinja))`", page.read_text(encoding="utf-8")))

    assert {name for name in described if not any(path.endswith(f"/{name}") for path in paths)} == set()
