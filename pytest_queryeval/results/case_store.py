"""The cases of a report: a list in memory, or for more than 50,000 cases a temporary file, read case by case.

Readers of a report need not know which of the two it has: both are sequences of cases.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
import weakref
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias, cast, overload

from pytest_queryeval.core.case_report import CaseReport
from pytest_queryeval.core.errors import ReportError

MAX_IN_MEMORY = 50_000


def case_line(case: CaseReport) -> bytes:
    """Return a case as a line of JSON with its line end; raises ValueError for NaN and infinity."""
    # A lone surrogate, as in a path that is not UTF-8, is written as the escape that JSON has for it.
    return json.dumps(case, ensure_ascii=False, allow_nan=False).encode(errors="backslashreplace") + b"\n"


def case_lines(cases: Sequence[CaseReport]) -> Iterator[bytes]:
    """Yield each case as a line of JSON with its line end."""
    return cases.lines() if isinstance(cases, StoredCases) else map(case_line, cases)


def fit_in_memory(cases: Sequence[CaseReport]) -> bool:
    """Return whether the number of cases allows all of them in memory at once."""
    return len(cases) <= MAX_IN_MEMORY


class Lines:
    """Lines in a temporary file, which is deleted with the last reference to this object."""

    def __init__(self) -> None:
        with _errors_explained():
            file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed with this object
        # Written past the reader: a buffer that cannot be written would keep every line from being read.
        self._reader = io.BufferedReader(file)
        self._end = 0
        weakref.finalize(self, self._reader.close)

    def add(self, line: bytes) -> int:
        """Append a line, and return the offset in bytes where it begins.

        Raises `ReportError` if it cannot be written.
        """
        start = self._end
        remaining_bytes = memoryview(line)
        with _errors_explained():
            while remaining_bytes:
                written = os.pwrite(self._reader.fileno(), remaining_bytes, self._end)
                self._end, remaining_bytes = self._end + written, remaining_bytes[written:]
        return start

    def at(self, start: int) -> bytes:
        """Return the line that begins at an offset."""
        self._reader.seek(start)
        return self._reader.readline()


@contextmanager
def _errors_explained() -> Iterator[None]:
    """Turn an OSError within the `with` statement into a `ReportError` with a remedy."""
    try:
        yield
    except OSError as error:
        problem = f"{error.strerror or error}: name another folder of temporary files with TMPDIR"
        raise ReportError(f"cases cannot be kept in {tempfile.tempdir or 'a temporary file'}: {problem}") from error


class StoredCases(Sequence[CaseReport]):
    """A sequence of cases in a temporary file; memory contains only the offset of each case.

    Slices and selections share the file.
    """

    def __init__(self, cases: Iterable[CaseReport] = ()) -> None:
        self._lines = Lines()
        self._starts = array("Q")
        for case in cases:
            self.append(case)

    def append(self, case: CaseReport) -> None:
        """Add a case at the end."""
        self._starts.append(self._lines.add(case_line(case)))

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, place: int) -> CaseReport: ...
    @overload
    def __getitem__(self, place: slice) -> StoredCases: ...
    def __getitem__(self, place: int | slice) -> CaseReport | StoredCases:
        if isinstance(place, slice):
            return self.select(range(*place.indices(len(self))))
        return cast("CaseReport", json.loads(self._lines.at(self._starts[place])))

    def __setitem__(self, place: int, case: CaseReport) -> None:
        self._starts[place] = self._lines.add(case_line(case))

    def select(self, places: Iterable[int]) -> StoredCases:
        """Return the cases at these places, in the order of the places, without copying them."""
        selection = object.__new__(StoredCases)
        selection._lines, selection._starts = self._lines, array("Q", (self._starts[place] for place in places))
        return selection

    def lines(self) -> Iterator[bytes]:
        """Yield each case as the line of JSON in the file."""
        return map(self._lines.at, self._starts)


Cases: TypeAlias = list[CaseReport] | StoredCases


def append_case(cases: Cases, case: CaseReport) -> Cases:
    """Add a case, and return the sequence of cases to use from now on.

    A list that would exceed MAX_IN_MEMORY is replaced by `StoredCases`.
    """
    if isinstance(cases, list) and len(cases) == MAX_IN_MEMORY:
        cases = StoredCases(cases)
    cases.append(case)
    return cases


def collect_cases(cases: Iterable[CaseReport]) -> Cases:
    """Return the cases as a sequence: in memory, or in a file if there are too many.

    A fitting sequence is returned as is.
    """
    if isinstance(cases, StoredCases) or (isinstance(cases, list) and fit_in_memory(cases)):
        return cases
    collected: Cases = []
    for case in cases:
        collected = append_case(collected, case)
    return collected


def select(cases: Sequence[CaseReport], places: Iterable[int]) -> Sequence[CaseReport]:
    """Return the cases at these places, in the order of the places."""
    return cases.select(places) if isinstance(cases, StoredCases) else [cases[place] for place in places]


def report_order(case: CaseReport) -> tuple[str, int, int, int, str, str]:
    """Return the key by which reports sort cases: path, line, row, combination of parameters, id and node id."""
    return case["path"], case["line"], case.get("row", 0), case.get("combination", 0), case["id"], case["nodeid"]


def in_report_order(cases: Iterable[CaseReport]) -> Sequence[CaseReport]:
    """Return the cases sorted by `report_order`."""
    gathered_cases = collect_cases(cases)
    keys = list(map(report_order, gathered_cases))
    return select(gathered_cases, sorted(range(len(keys)), key=keys.__getitem__))


class CasesByNodeid(Mapping[str, CaseReport]):
    """Cases by node id, in the order in which their ids first came; a later case replaces an earlier one of its id."""

    def __init__(self, cases: Sequence[CaseReport] = ()) -> None:
        self.cases: Cases = collect_cases(cases)[:]
        self._places = {case["nodeid"]: place for place, case in enumerate(self.cases)}

    def __getitem__(self, nodeid: str) -> CaseReport:
        return self.cases[self._places[nodeid]]

    def __setitem__(self, nodeid: str, case: CaseReport) -> None:
        if nodeid in self._places:
            self.cases[self._places[nodeid]] = case
        else:
            self.cases = append_case(self.cases, case)
            self._places[nodeid] = len(self.cases) - 1

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
