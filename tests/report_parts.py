"""Reports of any cases, without a suite: parts as shards write them, and what `queryeval merge` makes of these."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from samples import HEAD

from pytest_queryeval.cli import main

TOTALS = ("cases", "passed", "failed", "missed", "errors", "skipped", "xfailed", "xpassed", "not_run")
GROUPS = ("kind", "difficulty", "tag", "file", "source")
UNCOUNTED = {
    "totals": dict.fromkeys(TOTALS, 0),
    "ties": 0,
    "accidental": 0,
    "metrics": {},
    "measures": {},
    "causes": {},
    "groups": {group: {} for group in GROUPS},
}
UNEVALUATED = {"cases": 0, "value": None, "n": 0, "errors": 0, "ran": 0, "ok": None, "reason": "gates are off"}


class Merged(NamedTuple):
    """The report of several parts, and what the command returned and printed."""

    report: dict
    status: int
    lines: list[str]


def part(*cases, gates=(), **about):
    """A report of cases that are not counted yet, with gates that were not evaluated; each case has its own node id."""
    named = {}
    for case in cases:
        nodeid = case["nodeid"]
        while nodeid in named:
            nodeid += "'"
        named[nodeid] = case | {"nodeid": nodeid}
    gates = [UNEVALUATED | gate for gate in gates]
    return {"schema": 2, **HEAD, **UNCOUNTED, "gates": gates, "cases": list(named.values())} | about


def merge(*parts, baseline=None):
    """Merge the parts, and compare them with a baseline."""
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"part{number}.json" for number in range(1, len(parts) + 1)]
        for path, content in zip(paths, parts, strict=True):
            path.write_text(json.dumps(content))
        options = ["-o", f"{folder}/all.json"]
        if baseline is not None:
            (Path(folder) / "base.json").write_text(json.dumps(baseline))
            options += ["--baseline", f"{folder}/base.json"]
        with redirect_stdout(io.StringIO()) as output, redirect_stderr(output):
            status = main(["merge", *map(str, paths), *options])
        report = json.loads((Path(folder) / "all.json").read_bytes())
    return Merged(report, status, output.getvalue().splitlines())


def report_of(*cases, **about):
    """The report of one part of these cases."""
    return merge(part(*cases, **about)).report


class Printed(NamedTuple):
    """What a command returned and printed."""

    status: int
    data: dict
    text: str


def write(path, *cases, **about):
    """Write the report of one part of these cases; return its path."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    report = report_of(*cases, **about) | {"name": about.get("name", "")}  # a merge would shorten it
    Path(path).write_text(json.dumps(report), encoding="utf-8")
    return str(path)


def command(*arguments):
    """Run a command of `queryeval` in the current folder: its data as JSON, and its lines."""
    with redirect_stdout(io.StringIO()) as output, redirect_stderr(io.StringIO()) as errors:
        status = main([*map(str, arguments), "--json"])
    return Printed(status, json.loads(output.getvalue()), errors.getvalue())


def refusal(*arguments):
    """What a command says that is refused, in one line."""
    with redirect_stdout(io.StringIO()) as output, redirect_stderr(io.StringIO()) as errors:
        try:
            main([*map(str, arguments)])
        except SystemExit as stop:
            status = stop.code
    (line,) = errors.getvalue().splitlines()
    assert (status, output.getvalue()) == (2, "")
    return line


def ids(nodeids):
    """The ids of cases, of their node ids."""
    return [nodeid.rpartition("::")[2] for nodeid in nodeids]
