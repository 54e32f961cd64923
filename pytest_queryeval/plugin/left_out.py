"""The cases that a run left out, which gates have to count: those of all suite files below their folders."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_queryeval.core.errors import SuiteError
from pytest_queryeval.plugin.stash import RUN
from pytest_queryeval.results.gates import LeftOut, count_cases
from pytest_queryeval.results.scope import is_below
from pytest_queryeval.suites import load_suite
from pytest_queryeval.suites.requirements import MissingExtraError
from pytest_queryeval.suites.suites import is_suite_file

if TYPE_CHECKING:
    import pluggy

    from pytest_queryeval.core.model import Case
    from pytest_queryeval.core.report import CaseReport, PendingGate


@dataclass(frozen=True, slots=True, kw_only=True)
class _Suites:
    """The cases of suite files that did not run, and the suite files that are `unreadable`."""

    left_out: list[LeftOut]
    unreadable: list[str]


def with_numbers_of_cases(
    gates: Iterable[PendingGate],
    session: pytest.Session,
    cases: Collection[CaseReport],
    collected: Mapping[str, int],
) -> list[PendingGate]:
    """Return the gates, each with how many `cases` it is about, None where a file below cannot be read.

    `cases` are those that ran, `collected` the numbers of cases of the collected files. Other files are only read:
    pytest collects no files outside the paths that it was given, and --lf skips some.
    """
    gates = list(gates)
    suites = _suites(session, {gate["folder"] for gate in gates}, cases, collected)
    return [
        {
            **gate,
            "cases": None
            if any(is_below(path, gate["folder"]) for path in suites.unreadable)
            else count_cases(gate, cases, suites.left_out),
        }
        for gate in gates
    ]


def _suites(
    session: pytest.Session, folders: Iterable[str], cases: Iterable[CaseReport], collected: Mapping[str, int]
) -> _Suites:
    run = session.config.stash[RUN]
    places = {os.path.abspath(run.root / folder) for folder in folders}  # noqa: PTH100
    names = {run.relative(path) for place in places for path in _suite_files(place, session)}
    counts = Counter(map(_suite_of, cases))
    complete = {suite for suite, number in collected.items() if number == counts[suite]}
    ran = Counter((case["path"], case["id"]) for case in cases if _suite_of(case) not in complete)
    found = _Suites(left_out=[], unreadable=[])
    for suite in sorted((names | collected.keys()) - complete):
        known: Iterable[Case] | None = run.cases.get(suite)
        try:
            if known is None:
                path = Path(os.path.abspath(run.root / suite))  # noqa: PTH100 - resolve() would follow links
                known = load_suite(path, root=Path(path.anchor), require_prediction=False).cases
        except MissingExtraError:
            continue
        except SuiteError:
            found.unreadable.append(suite)
            continue
        for case in known:
            place = run.relative(case.location.path), case.id
            if ran[place]:
                ran[place] -= 1
            elif case.skip is None:
                found.left_out.append(LeftOut(place[0], case))
    return found


def _suite_of(case: CaseReport) -> str:
    """Return the suite file of a case, relative to the root, as in its node id."""
    return case["nodeid"].partition("::")[0]


def _suite_files(folder: str, session: pytest.Session) -> Iterator[Path]:
    """Yield the suite files that pytest would collect below a folder, with those that --ignore leaves out."""
    for place, folders, names in os.walk(folder, followlinks=True):
        hook = session.gethookproxy(Path(place))
        folders[:] = [name for name in folders if _is_collected(Path(place, name), session.config, hook)]
        paths = [path for name in names if is_suite_file(path := Path(place, name))]
        yield from (path for path in paths if _is_collected(path, session.config, hook))


def _is_collected(path: Path, config: pytest.Config, hook: pluggy.HookRelay) -> bool:
    """Return whether pytest collects a path, or would but for --ignore or --ignore-glob."""
    if not hook.pytest_ignore_collect(collection_path=path, config=config):
        return True

    def absolute(name: str) -> str:
        return os.path.abspath(config.invocation_params.dir / name)  # noqa: PTH100 - as pytest reads them

    names, patterns = config.option.ignore or (), config.option.ignore_glob or ()
    return str(path) in map(absolute, names) or any(fnmatch(str(path), absolute(each)) for each in patterns)
