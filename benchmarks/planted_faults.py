"""How many small faults the tests find: each is planted into a copy of the package, and the tests about its place run.

Run from the project's root: python -m benchmarks.planted_faults [--places comparison] [--faults 60] [--only 3 17]

A fault is a comparison that is swapped, a condition that is dropped, a number that is one greater or less, or a function
that returns early. There are equally many of each, drawn from the whole package, or from the folders of --places. Each
run draws others, and prints the --seed that draws the same again. The test files named after the module or its folder,
and those that import the module, run first, then those that import a module which imports it, and so on, until a test
fails or --cpu seconds (600) of processor time are over; --whole runs all other tests behind them. A test that
passes when it runs again, or fails without the fault, too, finds nothing. With --verdicts FILE, each verdict is appended
to the file, and faults that have one there are not planted again. The last lines are the faults that survived: each lacks
a test, or changes nothing that anyone can see.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random

ROOT = Path(__file__).parent.parent
PACKAGE = "pytest_queryeval"
COPIED = (PACKAGE, "tests", "example_suite", "docs", "benchmarks")
SWAPS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+::.+?|\S+\.py)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True)
class Fault:
    module: Path  # below the package's folder
    line: int
    before: str
    after: str
    around: tuple[bytes, bytes]  # what is before and behind it in the module

    @property
    def source(self) -> str:
        """The whole module, with the fault."""
        return self.after.encode().join(self.around).decode()

    def __str__(self) -> str:
        return f"{self.module}:{self.line}  {' '.join(self.before.split())[:70]}  →  {self.after[:70]}"


def swapped_comparisons(tree: ast.Module, random: Random) -> Iterator[tuple[ast.AST, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in SWAPS:
            swapped = ast.Compare(node.left, [SWAPS[type(node.ops[0])]()], node.comparators)
            yield node, f"({ast.unparse(swapped)})"


def dropped_conditions(tree: ast.Module, random: Random) -> Iterator[tuple[ast.AST, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.BoolOp):
            dropped = random.randrange(len(node.values))
            operands = [value for number, value in enumerate(node.values) if number != dropped]
            remaining = operands[0] if len(operands) == 1 else ast.BoolOp(node.op, operands)
            yield node, f"({ast.unparse(remaining)})"
        elif isinstance(node, ast.comprehension):
            yield from ((condition, "True") for condition in node.ifs)
        elif isinstance(node, ast.If) and not node.orelse and "TYPE_CHECKING" not in ast.unparse(node.test):
            yield node.test, random.choice(("True", "False"))


def changed_numbers(tree: ast.Module, random: Random) -> Iterator[tuple[ast.AST, str]]:
    in_texts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) is int and id(node) not in in_texts:
            yield node, f"({node.value + random.choice((-1, 1))})"


def early_returns(tree: ast.Module, random: Random) -> Iterator[tuple[ast.AST, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and len(node.body) > 2:
            statement = random.choice(node.body[1:])
            if ast.unparse(statement) not in ("return", "return None"):
                yield statement, "return None"


KINDS: tuple[Callable[[ast.Module, Random], Iterator[tuple[ast.AST, str]]], ...] = (
    swapped_comparisons,
    dropped_conditions,
    changed_numbers,
    early_returns,
)


def faults_of(module: Path, kind: Callable[..., Iterator[tuple[ast.AST, str]]], random: Random) -> Iterator[Fault]:
    source = (ROOT / PACKAGE / module).read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node, after in kind(ast.parse(source), random):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        yield Fault(module, node.lineno, source[start:end].decode(), after, (source[:start], source[end:]))


def compiles(fault: Fault) -> bool:
    """Return whether a module with the fault is Python: a number of a pattern, say, can have no parentheses."""
    try:
        compile(fault.source, str(fault.module), "exec")
    except SyntaxError:
        return False
    return True


def planted_faults(seed: int, number: int, places: Sequence[str]) -> list[Fault]:
    random = Random(seed)
    modules = sorted(path for place in places for path in (ROOT / PACKAGE / place).rglob("*.py"))
    faults: list[Fault] = []
    for kind in KINDS:
        candidates = [it for path in modules for it in faults_of(path.relative_to(ROOT / PACKAGE), kind, random)]
        random.shuffle(candidates)
        faults += islice(filter(compiles, candidates), -(-number // len(KINDS)))
    return faults[:number]


@cache
def imports_of(path: Path) -> set[str]:
    """Return the names of the package's modules that a file imports, at any place of it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name for name in names if name.startswith(PACKAGE)}


def dotted(module: Path) -> str:
    return ".".join((PACKAGE, *module.with_suffix("").parts)).removesuffix(".__init__")


def related_tests(fault: Fault) -> Iterator[list[str]]:
    """Yield the test files about the module of a fault, then those that import one which imports it, and so on.

    Those named after the module or its folder, and those that import the module, come first. A test file imports what the conftest.py next to it does; of the plugin, which pytest imports, all tests come second.
    A module whose name stands in the text of another, as in a registry or for a child process, is imported there, too.
    """
    imports = {path: imports_of(path) for path in (ROOT / PACKAGE).rglob("*.py")}
    fixture_imports = {path.parent: imports_of(path) for path in (ROOT / "tests").glob("*/conftest.py")}
    test_imports = {
        path: imports_of(path) | fixture_imports.get(path.parent, set())
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
    }
    reached: set[str] = set()
    modules, subjects = {dotted(fault.module)}, (fault.module.stem, fault.module.parent.name)
    while modules:
        tests = [path for path in test_imports if not reached and any(name in path.stem for name in subjects if name)]
        tests += [path for path, names in test_imports.items() if names & modules and path not in tests]
        if reached and fault.module.parts[0] == "plugin":
            tests += [path for path in test_imports if path.parent.name == "plugin" and path not in tests]
        for path in tests:
            del test_imports[path]
        yield [str(path.relative_to(ROOT)) for path in tests]
        reached |= modules
        stems = "|".join(name.rpartition(".")[2] for name in modules)
        mentions = re.compile(rf"""["']({stems})\.py["']|\.({stems}):[\w]|from ({stems}) import""")
        modules = {
            dotted(path.relative_to(ROOT / PACKAGE))
            for path, names in imports.items()
            if names & modules or mentions.search(path.read_text(encoding="utf-8"))
        } - reached


def processor_seconds() -> float:
    """Return the processor time of all processes that this one has waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def failing_test(copy: Path, arguments: list[str], seconds: float) -> str | None:
    """Return the first test that fails in a copy; None if none does, "…" if the processor time was over before."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", "--tb=no"]
    # Without bytecode, each run would compile all modules again.
    environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "", "COLUMNS": "1000"}
    limit = max(int(seconds), 1)
    process = subprocess.Popen(
        [*command, *arguments],
        cwd=copy,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit)),
    )
    try:
        output, _ = process.communicate(timeout=10 * limit)
    except subprocess.TimeoutExpired:  # some tests wait, for what a fault keeps away perhaps
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return "…"
    if process.returncode < 0:
        return "…"
    if process.returncode in (0, 5):  # 5: nothing to run
        return None
    failure = FAILED.search(output)
    return failure[1] if failure else output[-300:]


def replace(path: Path, source: str) -> None:
    """Write a module, and forget its bytecode, which a change of one sign within a second would leave in use."""
    path.write_text(source, encoding="utf-8")
    shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)


def verdict_on(fault: Fault, copy: Path, seconds: float, *, whole: bool) -> str:
    """Plant the fault, run its tests, and take it out again; return the test that fails, or that none does."""
    end = processor_seconds() + seconds
    for tests in (*related_tests(fault), *([["tests"]] if whole else [])):
        deselected: list[str] = []
        while tests:
            options = ["-m", "not slow", *(f"--deselect={test}" for test in deselected)]
            test = failing_test_with(fault, copy, [*options, *tests], end - processor_seconds())
            if test is None:
                break
            if test == "…":
                return "NOT FOUND IN TIME"
            # One that fails by chance, or without the fault, too, finds nothing.
            if "::" not in test or (
                failing_test_with(fault, copy, [test], 120) is not None and failing_test(copy, [test], 120) is None
            ):
                return f"found by {test}"
            deselected.append(test)
    return "SURVIVES"


def failing_test_with(fault: Fault, copy: Path, arguments: list[str], seconds: float) -> str | None:
    path = copy / PACKAGE / fault.module
    original = path.read_text(encoding="utf-8")
    replace(path, fault.source)
    try:
        return failing_test(copy, arguments, seconds)
    finally:
        replace(path, original)


def read_verdicts(path: Path | None) -> dict[str, str]:
    if path is None or not path.exists():
        return {}
    return dict(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, help="draw the faults of an earlier run")
    parser.add_argument("--places", nargs="+", metavar="FOLDER", default=[""], help="folders of the package")
    parser.add_argument("--faults", type=int, default=60)
    parser.add_argument("--only", type=int, nargs="+", metavar="NUMBER", help="the faults to plant, from 1")
    parser.add_argument("--cpu", type=float, default=600, metavar="SECONDS", help="processor time for each fault")
    parser.add_argument("--whole", action="store_true", help="run all tests behind those about the fault's place")
    parser.add_argument("--verdicts", type=Path, metavar="FILE", help="append the verdicts; go on behind those there")
    parser.add_argument("--list", action="store_true", help="print the faults, and run nothing")
    options = parser.parse_args()
    seed = Random().randrange(1_000_000) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    faults = dict(enumerate(planted_faults(seed, options.faults, options.places), 1))
    chosen = {number: faults[number] for number in options.only or faults}
    if options.list:
        sys.exit("\n".join(f"{number:3}  {fault}" for number, fault in chosen.items()))

    verdicts = read_verdicts(options.verdicts)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in COPIED:
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        for path in (*ROOT.glob("*.*"), ROOT / "Makefile", ROOT / "LICENSE"):
            if path.is_file():
                shutil.copy(path, copy)
        for number, fault in chosen.items():
            if str(fault) in verdicts:
                continue
            start = processor_seconds()
            verdict = verdicts[str(fault)] = verdict_on(fault, copy, options.cpu, whole=options.whole)
            print(f"{number:3}  {fault}\n     {verdict} ({processor_seconds() - start:.0f} s)", flush=True)
            if options.verdicts:
                with options.verdicts.open("a", encoding="utf-8") as lines:
                    print(json.dumps([str(fault), verdict], ensure_ascii=False), file=lines)
    survivors = {number: fault for number, fault in chosen.items() if not verdicts[str(fault)].startswith("found")}
    print(f"\n{len(chosen) - len(survivors)} of {len(chosen)} faults found")
    for number, fault in survivors.items():
        print(f"survived: {number:3}  {fault}")


if __name__ == "__main__":
    main()
