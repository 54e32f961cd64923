"""Scores by field of JSON answers: the share of gold's values that are right at each path without list indexes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from pytest_queryeval.core.errors import SettingError
from pytest_queryeval.core.json_value import JsonAnswer, JsonValue
from pytest_queryeval.core.metric import Score, metric
from pytest_queryeval.core.report import Report
from pytest_queryeval.core.table import Policy
from pytest_queryeval.features.json.alignment import Comparison, Value, comparison
from pytest_queryeval.features.json.difference import path_text
from pytest_queryeval.features.json.rules import rules_of
from pytest_queryeval.reports.added_sections import ReportSection
from pytest_queryeval.reports.blocks import Block, Table, Untrusted
from pytest_queryeval.reports.sections import CHANGE
from pytest_queryeval.text.formatting import first_of, format_score, one_line, pluralize, signed

if TYPE_CHECKING:
    from pytest_queryeval.documents.json_path import Segment

# The steps to values: a key, or None for all elements of a list.
Field: TypeAlias = "tuple[str | None, ...]"
DEFAULT = Policy()
MAX_NAMED = 12  # fields in a message
MAX_FALLEN = 5  # fields in a sentence


@lru_cache(maxsize=2)
def _field_counts(compared: Comparison) -> Mapping[Field, Sequence[int]]:
    """Return for each field, in gold's order, how many of gold's leaves are right, and how many there are."""
    counts: defaultdict[Field, list[int]] = defaultdict(lambda: [0, 0])

    def count(gold: Value, predicted: Value | None, field: Field) -> None:
        if gold.is_leaf or gold.has_plain_elements:
            figures = counts[(*field, None) if gold.elements else field]
            figures[0] += 0 if predicted is None else compared.counts(gold, predicted)[0]
            figures[1] += gold.leaves
            return
        if predicted is not None and predicted.key == gold.key:
            predicted = gold
        for name, member in (gold.members or {}).items():
            count(member, None if predicted is None else (predicted.members or {}).get(name), (*field, name))
        partners: dict[int, Value] = {}
        if predicted is not None and gold.elements and predicted.elements:
            is_same = predicted is gold
            pairs = enumerate(range(len(gold.elements))) if is_same else compared.pairs(gold, predicted)
            partners = {left: predicted.elements[right] for left, right in pairs}
        for place, element in enumerate(gold.elements or ()):
            count(element, partners.get(place), (*field, None))

    count(compared.gold, compared.predicted, ())
    return counts


def field_scores(gold: JsonAnswer, predicted: JsonAnswer | None, policy: Policy) -> dict[str, float]:
    """Return the share of gold's leaves that are right at each field; 0 at all fields without a predicted answer.

    >>> field_scores(JsonAnswer({"id": 1, "items": [{"n": 1}, {"n": 2}]}), JsonAnswer({"items": [{"n": 2}]}), Policy())
    {'$.id': 0.0, '$.items[*].n': 0.5}
    """
    counts = _field_counts(comparison(gold, predicted or gold, rules_of(policy)))
    totals: dict[str, tuple[int, int]] = {}
    for field, (right, leaves) in counts.items():
        name = path_text(field)  # which may be shortened, so that of several fields it is the same
        earlier = totals.get(name, (0, 0))
        totals[name] = earlier[0] + right, earlier[1] + leaves
    return {name: 0.0 if predicted is None else right / leaves for name, (right, leaves) in totals.items()}


def check_path(options: Mapping[str, JsonValue]) -> None:
    """Raise `SettingError` unless the option `path` is a JSONPath of names, `*` and `..` without indexes."""
    from pytest_queryeval.documents.json_path import segments  # imports a library, which other reports do not need

    path = str(options.get("path", "$"))
    try:
        steps = segments(path)
    except ValueError as error:
        raise SettingError("path", f"field[{path}]: {error}") from error
    if any(isinstance(segment.step, int) for segment in steps):
        raise SettingError("path", f"field[{path}]: a field is in all elements of a list: write [*] for an index")


@metric(answers=JsonAnswer, check=check_path, parameter="path")
def field(gold: JsonAnswer, predicted: JsonAnswer, *, path: str, policy: Policy = DEFAULT) -> Score | float:
    """Return the share of gold's values at a path, and at all below it, that predicted has in the same place.

    The path is a JSONPath with `[*]` for the elements of lists, as in `field[$.items[*].price]`. Values and the
    alignment of lists are those of `path_f1`. The score is None, with a note, if gold has no value at the path. In [0,
    1].

    >>> field(JsonAnswer([{"n": 1}, {"n": 2}]), JsonAnswer([{"n": 1}, {"n": 3}]), path="$[*].n")
    0.5
    """
    from pytest_queryeval.documents.json_path import segments

    counts, steps = _field_counts(comparison(gold, predicted, rules_of(policy))), segments(path)
    found = [figures for name, figures in counts.items() if _is_within(name, steps)]
    if not found:
        names = [path_text(name) for name in counts]
        note = f"field[{one_line(path)}]: the gold answer has no value there, but at {first_of(names, MAX_NAMED)}"
        return Score(value=None, details={"notes": [note]})
    right, leaves = map(sum, zip(*found, strict=True))
    return right / leaves


def _is_within(name: Field, path: Sequence[Segment]) -> bool:
    """Return whether a path leads to a field, or to an object or list that contains it."""
    reached = {0}  # the numbers of segments that fit the steps so far
    for step in name:
        if len(path) in reached:
            return True
        further = {number + 1 for number in reached if path[number].fits(step, 0)}
        reached = further | {number for number in reached if path[number].descends}
    return len(path) in reached


def field_blocks(report: Report) -> Iterator[Block]:
    """Yield a table of the fields of JSON answers, and sentences on fields whose mean is lower than in the baseline.

    Yield nothing if the report has no fields.
    """
    fields, baseline = report.get("fields", {}), report.get("baseline")
    if not fields:
        return
    changes = baseline.get("fields", {}) if baseline else {}
    header = ("field", "mean", *((CHANGE,) if changes else ()), "n")
    rows = []
    for name, statistics in fields.items():
        change = changes.get(name)
        changed = signed(change["after"] - change["before"]) if change else "-"
        cells = (format_score(statistics["mean"]), *((changed,) if changes else ()), f"{statistics['n']:,}")
        rows.append((Untrusted(name), *cells))
    yield Table(header, rows)
    fallen = [(name, change) for name, change in changes.items() if change["after"] < change["before"]]
    for name, change in fallen[:MAX_FALLEN]:
        means = f"{format_score(change['before'])} to {format_score(change['after'])}"
        yield Untrusted(name), f" fell from {means} ({pluralize(change['n'], 'case')})"
    if len(fallen) > MAX_FALLEN:
        yield (f"{pluralize(len(fallen) - MAX_FALLEN, 'other field')} fell as well",)
    if left_out := report.get("fields_left_out"):
        has = "has" if left_out == 1 else "have"
        yield (f"{pluralize(left_out, 'case')} {has} other fields, which are left out",)


FIELDS = ReportSection(title="fields of JSON answers", blocks=field_blocks)
