"""How many small faults the tests find: each is planted into a copy of the package, and the tests about its place run.

Run from the project's root: python -m benchmarks.planted_faults [--seed 1] [--faults 60] [--only 3 17] [--whole]

A fault is a comparison that is swapped, a condition that is dropped, a number that is one greater or less, or a function
that returns early; there are equally many of each, in the folders of PLACES, and the same ones for the same seed. The
test files that import the module of a fault run first, then those that import a module which imports it, until a test
fails or --seconds (600) are over; --whole runs all other tests behind them. A test that fails without the fault, too,
finds nothing. The last lines are the faults that survived: each lacks a test, or changes nothing that anyone can see.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from random import Random

ROOT = Path(__file__).parent.parent
PACKAGE = "pytest_queryeval"
PLACES = ("comparison", "results", "evaluation", "sandbox", "plugin")
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
    source: str  # of the whole module, with the fault

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
        faulty = source[:start] + after.encode() + source[end:]
        try:
            compile(faulty, str(module), "exec")
        except SyntaxError:  # a number of a pattern, or a statement that a parenthesis breaks
            continue
        yield Fault(module, node.lineno, source[start:end].decode(), after, faulty.decode())


def planted_faults(seed: int, number: int) -> list[Fault]:
    random = Random(seed)
    faults: list[Fault] = []
    for kind in KINDS:
        of_places = []
        for place in PLACES:
            modules = sorted((ROOT / PACKAGE / place).rglob("*.py"))
            found = [it for path in modules for it in faults_of(path.relative_to(ROOT / PACKAGE), kind, random)]
            of_places.append(random.sample(found, len(found)))
        in_turn = [fault for turn in zip_longest(*of_places) for fault in turn if fault is not None]
        faults += in_turn[: -(-number // len(KINDS))]
    return faults[:number]


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


def related_tests(fault: Fault) -> list[str]:
    """Return the test files to run for a fault, the nearest first."""
    name, stem = dotted(fault.module), fault.module.stem
    importers = {
        dotted(path.relative_to(ROOT / PACKAGE)) for path in (ROOT / PACKAGE).rglob("*.py") if name in imports_of(path)
    }
    near, further = [], []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        imports = imports_of(path)
        if name in imports or stem in path.stem:
            near.append(path)
        elif imports & importers or (fault.module.parts[0] == "plugin" and path.parent.name == "plugin"):
            further.append(path)
    return [str(path.relative_to(ROOT)) for path in (*near, *further)]


def failing_test(copy: Path, arguments: list[str], seconds: float) -> str | None:
    """Return the first test that fails in a copy; None if none does, "…" if time was over before."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", "--tb=no"]
    environment = os.environ | {"PYTHONPATH": str(copy), "COLUMNS": "1000"}
    process = subprocess.Popen(
        [*command, *arguments],
        cwd=copy,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=max(seconds, 1))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        return "…"
    if process.returncode in (0, 5):  # 5: nothing to run
        return None
    failed = FAILED.search(output)
    return failed[1] if failed else output[-300:]


def replace(path: Path, source: str) -> None:
    """Write a module, and forget its bytecode, which a change of one sign within a second would leave in use."""
    path.write_text(source, encoding="utf-8")
    shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)


def verdict_on(fault: Fault, copy: Path, seconds: float, *, whole: bool) -> str:
    """Plant the fault, run its tests, and take it out again; return the test that found it, or "" and why not."""
    end = time.monotonic() + seconds
    path = copy / PACKAGE / fault.module
    ignored = []
    while True:
        tests = [*related_tests(fault), *(["tests"] if whole else [])]
        options = ["-m", "not slow", *(f"--deselect={test}" for test in ignored)]
        original = path.read_text(encoding="utf-8")
        replace(path, fault.source)
        try:
            test = failing_test(copy, [*options, *tests], end - time.monotonic()) if tests else None
        finally:
            replace(path, original)
        if test in (None, "…") or "::" not in test:
            return {None: "SURVIVES", "…": "NOT FOUND IN TIME"}.get(test, f"found by {test}")
        if failing_test(copy, [test], 120) is None:
            return f"found by {test}"
        ignored.append(test)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", type=int, default=60)
    parser.add_argument("--only", type=int, nargs="+", metavar="NUMBER", help="the faults to plant, from 1")
    parser.add_argument("--seconds", type=float, default=600, help="for the tests of each fault")
    parser.add_argument("--whole", action="store_true", help="run all tests behind those about the fault's place")
    parser.add_argument("--list", action="store_true", help="print the faults, and run nothing")
    options = parser.parse_args()
    faults = dict(enumerate(planted_faults(options.seed, options.faults), 1))
    chosen = {number: faults[number] for number in options.only or faults}
    if options.list:
        sys.exit("\n".join(f"{number:3}  {fault}" for number, fault in chosen.items()))

    survivors = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in COPIED:
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        for path in (*ROOT.glob("*.*"), ROOT / "Makefile", ROOT / "LICENSE"):
            if path.is_file():
                shutil.copy(path, copy)
        for number, fault in chosen.items():
            start = time.monotonic()
            verdict = verdict_on(fault, copy, options.seconds, whole=options.whole)
            print(f"{number:3}  {fault}\n     {verdict} ({time.monotonic() - start:.0f} s)", flush=True)
            if not verdict.startswith("found"):
                survivors.append((number, fault))
    print(f"\n{len(chosen) - len(survivors)} of {len(chosen)} faults found")
    for number, fault in survivors:
        print(f"survived: {number:3}  {fault}")


if __name__ == "__main__":
    main()
