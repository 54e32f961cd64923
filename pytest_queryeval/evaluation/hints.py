"""Hints for a wrong answer of which only the form differs: settings and changes that accept it, all of them tried."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from itertools import chain, islice, permutations, product, repeat
from math import isfinite
from typing import Any, TypeAlias, cast
from typing import Literal as Word

from pytest_queryeval.comparison.difference_texts import differing_sides, is_number_text, is_text_and_number
from pytest_queryeval.comparison.equality import project
from pytest_queryeval.comparison.pairing import table_pair
from pytest_queryeval.comparison.quantities import as_float, decimals_of, read_temporal
from pytest_queryeval.core.case_report import ChangedRow, ColumnDifference, DifferenceReport, HintKind, HintReport
from pytest_queryeval.core.json_value import JsonAnswer, JsonValue, to_jsonable
from pytest_queryeval.core.metric import Score
from pytest_queryeval.core.model import AddedAnswer, Answer, Case, CaseResult, Trial
from pytest_queryeval.core.table import (
    Cell,
    DatasetSelection,
    DimensionSelection,
    Literal,
    Policy,
    Row,
    Selection,
    Table,
    Term,
)
from pytest_queryeval.documents.strict_json import StrictJson
from pytest_queryeval.evaluation.trials import threshold_violations, verdict_of
from pytest_queryeval.metrics import DECIDING_METRIC, metric_of
from pytest_queryeval.text.formatting import flow_text, one_line

Number: TypeAlias = int | float | Decimal
Columns: TypeAlias = list[tuple[set[Cell], set[Cell]]]  # the differing cells of gold and of predicted, by column
Change: TypeAlias = Callable[[Any, Any], tuple[Any, Any]]  # of two answers of one type
SIDES: tuple[Word["gold"], Word["predicted"]] = ("gold", "predicted")
NULL_TEXTS = frozenset(("none", "null"))
SEPARATORS = (" ", ", ", ",", "", "-", "/", "; ")
_JSON_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?")
MAX_DECIMALS = 9  # of a number that counts as rounded
MAX_COLUMNS = 20  # of answers of which missing and joined columns are looked for
NAME_CHARACTERS = 40
MAX_WRAPPED = 8  # values within another one that gold may be
MAX_LEVELS = 6  # of objects and lists around such a value
_JSON = StrictJson()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Remedy:
    """A possible remedy: settings of `compare`, or a change of both answers that stands for a change of the query."""

    kind: HintKind
    text: str
    """If what is so; for a change, also what to do."""
    compare: dict[str, JsonValue] | None = None
    policy: Mapping[str, Any] | None = None
    """The fields of a `Policy` that `compare` sets, if they are not the same."""
    change: Change | None = None


def hints(result: CaseResult) -> list[HintReport]:
    """Return the settings and changes of form under which a failed case would pass, each of them tried.

    No query is run again; a metric that would run queries again keeps its score.
    """
    gold, predicted, difference = result.shown.gold.answer, result.shown.predicted.answer, result.difference
    if difference is None:
        return []
    if isinstance(gold, Selection):
        return [*islice(_hints(_spellings(), result), 1)]
    policy = result.case.settings.policy
    if isinstance(gold, JsonAnswer):
        difference = _with_numbers(difference)
    remedies = [_settings(gold, difference, policy)]
    if isinstance(gold, JsonAnswer) and isinstance(predicted, JsonAnswer):
        remedies.append(_unwrapped(gold.value, predicted.value))
    if isinstance(gold, Table) and isinstance(predicted, Table):
        remedies.append(_changes(gold, predicted, difference, policy))
    return [*_hints(chain.from_iterable(remedies), result)]


def _hints(remedies: Iterable[_Remedy], result: CaseResult) -> Iterator[HintReport]:
    """Yield a hint for each kind of remedy: the first remedy of that kind with which the case passes."""
    place = "to the suite, for all rows of the table" if result.case.row else "to the case"
    found = set[HintKind]()
    for remedy in remedies:
        if remedy.kind not in found and _passes_with(result, remedy):
            found.add(remedy.kind)
            how = f", add `compare: {flow_text(remedy.compare)}` {place}" if remedy.compare else ""
            yield {"kind": remedy.kind, "text": f"{remedy.text}{how}", "compare": remedy.compare}


# Settings


def _with_numbers(difference: DifferenceReport[Row]) -> DifferenceReport[Row]:
    """Return a difference of JSON answers in which the texts of numbers in changed rows are Decimals."""

    def row(row: Row) -> Row:
        return tuple(Decimal(cell) if isinstance(cell, str) and _JSON_NUMBER.fullmatch(cell) else cell for cell in row)

    changed: list[ChangedRow[Row]] = [
        {"gold": row(rows["gold"]), "predicted": row(rows["predicted"])} for rows in difference["changed"]
    ]
    return {**difference, "changed": changed}


def _settings(gold: Answer | None, difference: DifferenceReport[Row], policy: Policy) -> Iterator[_Remedy]:
    """Yield settings of `compare` that may make the case pass, judging by differing rows and rows of ties."""
    tied = _tied_rows(gold) if isinstance(gold, Table) else []
    columns = _with_cells(_columns(difference), tied)
    texts = [(_texts(gold), _texts(predicted)) for gold, predicted in columns]

    def meet(fold: Callable[[str], str]) -> bool:
        return any({*map(fold, gold)} & {*map(fold, predicted)} for gold, predicted in texts)

    units = _rounded_units(_number_pairs(difference))
    # Of numbers without decimals, a whole unit would accept what integer division gives.
    for tolerance in sorted({*(unit / 2 for unit in units), *(unit for unit in units if unit < 1)}):
        rel: dict[str, JsonValue] = {} if policy.rel is None else {"rel": policy.rel}
        yield _Remedy(
            kind="rounding",
            text="if rounding does not matter",
            compare={"numbers": {**rel, "abs": float(tolerance)}},
            policy={"abs": float(tolerance)},
        )
    are_numbers_texts = any(
        is_text_and_number(*cells) and is_number_text(*cells, policy)
        for gold, predicted in columns
        for cells in product(gold, predicted)
    )
    has_same_rows = not any(difference.get("counts", {"missing": 1}).values())
    differ_in_number = bool(difference["repeated"] or (has_same_rows and difference["changed"]))
    settings: tuple[tuple[bool, HintKind, str, dict[str, JsonValue]], ...] = (
        (_has_midnight(columns), "midnight", "a date may equal its midnight", {"dates": "midnight"}),
        (are_numbers_texts, "text-number", "a number and its text may be equal", {"text_numbers": True}),
        (meet(str.casefold), "letter-case", "letter case does not matter", {"case": "ignore"}),
        (meet(lambda text: " ".join(text.split())), "blanks", "blanks do not matter", {"whitespace": "ignore"}),
        (differ_in_number, "duplicates", "duplicates do not matter", {"duplicates": "ignore"}),
        (
            bool(tied) or (has_same_rows and not differ_in_number),
            "extra-columns",
            "extra columns do not matter",
            {"extra_columns": "allow"},
        ),
    )
    for may_help, kind, condition, compare in settings:
        if may_help:
            yield _Remedy(kind=kind, text=f"if {condition}", compare=compare)


def _columns(difference: DifferenceReport[Row]) -> Columns:
    """Return, for each column and each differing element, the cells only in gold's and only in predicted's rows."""
    sides = ([set(column) for column in zip(*rows, strict=False)] for rows in differing_sides(difference))
    columns = [(gold - predicted, predicted - gold) for gold, predicted in zip(*sides, strict=False)]
    return columns + [({*golds}, {*others}) for golds, others in map(_element_cells, difference.get("by_column", ()))]


def _tied_rows(gold: Table) -> list[Row]:
    """Return all rows of ties from which a LIMIT of gold chose some."""
    return [row for tie in gold.ties or () if len(tie.rows) > tie.size for row in tie.rows]


def _with_cells(columns: Columns, rows: Iterable[Row]) -> Columns:
    """Return the differing cells by column, with the cells of further gold `rows` added to gold's side."""
    more_cells = chain(map(set, zip(*rows, strict=True)), repeat(set[Cell]()))
    return [(golds | more, others) for (golds, others), more in zip(columns, more_cells, strict=False)]


def _element_cells(column: ColumnDifference) -> tuple[Row, Row]:
    """Return the example cells of gold and of predicted in which a column, or an element of its lists, differs."""
    golds, others = (tuple([cast("Cell", example[side]) for example in column["examples"]]) for side in SIDES)
    return golds, others


def _has_midnight(columns: Iterable[tuple[set[Cell], set[Cell]]]) -> bool:
    """Return whether a column has a date on one side and a timestamp at midnight of that day on the other."""
    moments = ((_moments(gold), _moments(predicted)) for gold, predicted in columns)
    return any(gold[0] & predicted[1] or gold[1] & predicted[0] for gold, predicted in moments)


def _moments(cells: Iterable[Cell]) -> tuple[set[int], set[int]]:
    """Return the dates and the timestamps among cells, including those in texts, as seconds since the same start."""
    dates, timestamps = set[int](), set[int]()
    for cell in cells:
        text = cell.lexical if isinstance(cell, Literal) else str(cell) if isinstance(cell, str | date) else ""
        moment = read_temporal(text)
        if moment is not None and moment.kind == "date":
            dates.add(moment.seconds)
        elif moment is not None and moment.kind == "datetime" and not moment.fraction:
            timestamps.add(moment.seconds)
    return dates, timestamps


def _texts(cells: set[Cell]) -> list[str]:
    return [cell.lexical if isinstance(cell, Literal) else cell for cell in cells if isinstance(cell, str | Literal)]


def _number_pairs(difference: DifferenceReport[Row]) -> list[tuple[Number, Number]]:
    """Return pairs of different numbers at the same place of changed rows.

    If there are none and the answers have one column, its missing and extra numbers are paired in ascending order.
    """
    sides = [(rows["gold"], rows["predicted"]) for rows in difference["changed"]]
    sides += map(_element_cells, difference.get("by_column", ()))
    pairs = [pair for golds, others in sides for pair in zip(map(_number, golds), map(_number, others), strict=True)]
    if not pairs and len(difference.get("columns", ())) == 1:
        numbers = [
            sorted(number for (cell,) in rows if (number := _number(cell)) is not None)
            for rows in (difference["missing"], difference["extra"])
        ]
        pairs = list(zip(*numbers, strict=False))
    return [
        (gold, predicted)
        for gold, predicted in pairs
        if gold is not None and predicted is not None and gold != predicted
    ]


def _number(cell: Cell) -> Number | None:
    """Return a cell that is a finite number, or an RDF literal of a number; None for any other cell."""
    if isinstance(cell, Literal) and re.fullmatch(r"[+-]?\d+\.?\d*", cell.lexical) and cell.datatype:
        return Decimal(cell.lexical)
    if isinstance(cell, bool) or not isinstance(cell, int | float | Decimal):
        return None
    return cell if isfinite(as_float(cell)) else None


def _rounded_units(pairs: Sequence[tuple[Number, Number]]) -> set[Decimal]:
    """Return the units of the last decimal places to which one number of each pair may be rounded or cut.

    The set is empty if any pair cannot be explained so.
    """
    units = set[Decimal]()
    for pair in pairs:
        exact = [Decimal(repr(number)) if isinstance(number, float) else Decimal(number) for number in pair]
        decimals = [decimals_of(number.normalize()) or 0 for number in exact]
        unit = Decimal(1).scaleb(-min(decimals))
        if decimals[0] == decimals[1] or min(decimals) > MAX_DECIMALS or abs(exact[0] - exact[1]) > unit:
            return set()
        units.add(unit)
    return units


# Changes


def _changes(gold: Table, predicted: Table, difference: DifferenceReport[Row], policy: Policy) -> Iterator[_Remedy]:
    """Yield changes of the answers' form that may make the case pass: NULL as text, factors of 100, columns."""
    if gold.is_graph or predicted.is_graph or not gold.rows or not predicted.rows:
        return
    nulls = [
        (None in gold_cells, None in cells, _texts(gold_cells), _texts(cells))
        for gold_cells, cells in _columns(difference)
    ]
    for side, spelled in (
        ("predicted", [null and _null_texts(texts) for null, _, _, texts in nulls]),
        ("gold", [null and _null_texts(texts) for _, null, texts, _ in nulls]),
    ):
        if text := next(filter(None, spelled), None):
            yield _Remedy(
                kind="null-text",
                text=f"{side} has the text '{text}' instead of NULL: select NULL",
                change=lambda gold, predicted: (_with_nulls(gold), _with_nulls(predicted)),
            )
    yield from _factors(gold, predicted, difference, policy)
    widths = len(gold.columns), len(predicted.columns)
    if max(widths) > MAX_COLUMNS or policy.gold_columns:
        return
    if widths[0] == widths[1] + 1:
        yield from _missing_columns(gold)
    yield from _joined(gold, predicted, policy)


def _null_texts(texts: Sequence[str]) -> str:
    return next((text for text in texts if text.casefold() in NULL_TEXTS), "")


def _with_nulls(table: Table) -> Table:
    def cell(cell: Cell) -> Cell:
        return None if isinstance(cell, str) and cell.casefold() in NULL_TEXTS else cell

    return _mapped(table, lambda row: tuple(map(cell, row)))


def _mapped(table: Table, change: Callable[[Row], Row], columns: Sequence[str] | None = None) -> Table:
    """Return the table with `change` applied to all rows, including those of ties.

    `columns` are its new names, if given.
    """
    ties = table.ties and tuple(replace(tie, rows=tuple(map(change, tie.rows))) for tie in table.ties)
    names = table.columns if columns is None else tuple(columns)
    return Table(columns=names, rows=[change(row) for row in table.rows], ties=ties, has_header=table.has_header)


def _factors(gold: Table, predicted: Table, difference: DifferenceReport[Row], policy: Policy) -> Iterator[_Remedy]:
    """Yield a remedy if all differing numbers differ by a factor of 100: scaling the predicted columns."""
    pairs = _number_pairs(difference)
    alignment = table_pair(gold, predicted, policy).alignment
    if alignment is None or all(type(x) is type(y) is int for x, y in pairs):  # no shares, and no percentages
        return
    for factor, remedy in ((100, "divide it by 100"), (Decimal("0.01"), "multiply it by 100")):
        if all(abs(float(y) - float(x) * float(factor)) <= 1e-6 * abs(float(y)) for x, y in pairs):
            places = [
                place
                for place, column in enumerate(alignment.columns)
                if any(
                    _number(row[place]) != _number(rows["predicted"][place])
                    for rows in difference["changed"]
                    for row in [rows["gold"]]
                )
            ] or [0]
            names = ", ".join(one_line(gold.columns[place], NAME_CHARACTERS) for place in places)
            scaled = frozenset(alignment.columns[place] for place in places)
            share = "100 times" if factor == 100 else "a hundredth of"
            yield _Remedy(
                kind="factor",
                text=f"{names}: the predicted value is {share} the gold value: {remedy}",
                change=lambda gold, predicted, scaled=scaled, factor=factor: (gold, _scaled(predicted, scaled, factor)),  # type: ignore[misc]
            )


def _scaled(table: Table, columns: frozenset[int], factor: Number) -> Table:
    def scaled(place: int, cell: Cell) -> Cell:
        number = _number(cell) if place in columns else None
        if number is None:
            return cell
        return number / float(factor) if isinstance(number, float) else Decimal(number) / Decimal(factor)

    return _mapped(table, lambda row: tuple([scaled(place, cell) for place, cell in enumerate(row)]))


def _missing_columns(gold: Table) -> Iterator[_Remedy]:
    """Yield a remedy for each gold column that identifies rows: leaving it out, as predicted may lack it."""
    for place, column in enumerate(zip(*gold.rows, strict=True)):
        if len({*column}) == len(gold.rows):
            left = [other for other in range(len(gold.columns)) if other != place]
            names: list[JsonValue] = [gold.columns[other] for other in left]
            is_clear = len({str(name).casefold() for name in names}) == len(names) and all(names)
            name = one_line(gold.columns[place], NAME_CHARACTERS)
            yield _Remedy(
                kind="missing-column",
                text=f"if the column {name} of the gold answer does not matter",
                compare={"gold_columns": names if is_clear else [*left]},
                policy={},
                change=lambda gold, predicted, left=left: (project(gold, left), predicted),  # type: ignore[misc]
            )


def _joined(gold: Table, predicted: Table, policy: Policy) -> Iterator[_Remedy]:
    """Yield a remedy if two columns of one side seem to be joined in one column of the other side."""
    if abs(len(gold.columns) - len(predicted.columns)) != 1:
        return
    is_gold_split = len(gold.columns) > len(predicted.columns)
    split, whole = (gold, predicted) if is_gold_split else (predicted, gold)
    texts = {cell for row in whole.rows for cell in row if isinstance(cell, str)}
    for first, second in permutations(range(len(split.columns)), 2):
        for separator in SEPARATORS:
            if _join(split.rows[0], first, second, separator)[0] not in texts:
                continue

            def join(table: Table, at: tuple[int, int, str] = (first, second, separator)) -> Table:
                names = ("joined", *(name for place, name in enumerate(table.columns) if place not in at[:2]))
                return _mapped(table, lambda row: _join(row, *at), names)

            names = " and ".join(one_line(split.columns[place], NAME_CHARACTERS) for place in (first, second))
            if is_gold_split:
                text = f"the predicted answer joins {names} in one column: select both"
            else:
                text = f"the gold answer joins {names} in one column by '{separator}': select them so"

            def change(gold: Table, predicted: Table, join: Callable[[Table], Table] = join) -> tuple[Table, Table]:
                return (join(gold), predicted) if is_gold_split else (gold, join(predicted))

            yield _Remedy(kind="joined-columns", text=text, change=change)
            return


def _join(row: Row, first: int, second: int, separator: str) -> Row:
    """Return a row whose first cell joins two cells by a separator, followed by the other cells.

    The joined cell is None if one of the two is NULL.
    """
    is_null = row[first] is None or row[second] is None
    joined = None if is_null else separator.join(str(to_jsonable(row[at])) for at in (first, second))
    return (joined, *(cell for place, cell in enumerate(row) if place not in (first, second)))


def _unwrapped(gold: JsonValue, predicted: JsonValue) -> Iterator[_Remedy]:
    """Yield remedies for a JSON answer that is wrapped: as text, or as a value within another value.

    The arguments of a tool call, for instance, are a text within an object.
    """

    def remedy(value: JsonValue, text: str) -> _Remedy:
        return _Remedy(kind="wrapped", text=text, change=lambda gold, _: (gold, JsonAnswer(value)))

    decoded = _decoded(predicted)
    if decoded != predicted:
        yield remedy(decoded, "the predicted answer has JSON as a text: return that JSON itself")
    alike = ((value, path) for value, path in _values_within(decoded, "$") if type(value) is type(gold))
    for value, path in islice(alike, MAX_WRAPPED):
        yield remedy(value, f"the predicted answer has the gold answer at {path}: return that value alone")


def _decoded(value: JsonValue) -> JsonValue:
    """Return a JSON value in which texts that contain a JSON list or object are replaced by it."""
    if isinstance(value, dict):
        return {name: _decoded(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_decoded(element) for element in value]
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        with suppress(ValueError):
            json: JsonValue = _JSON.read(value)
            return json
    return value


def _values_within(value: JsonValue, path: str, levels: int = MAX_LEVELS) -> Iterator[tuple[JsonValue, str]]:
    """Yield the members of objects and the only elements of lists, at all levels up to MAX_LEVELS, with their paths."""
    within: list[tuple[JsonValue, str]] = []
    if isinstance(value, dict):
        within = [(member, f"{path}.{one_line(name, NAME_CHARACTERS)}") for name, member in value.items()]
    elif isinstance(value, list) and len(value) == 1:
        within = [(value[0], f"{path}[0]")]
    for inner, inner_path in within if levels else ():
        yield inner, inner_path
        yield from _values_within(inner, inner_path, levels - 1)


def _spellings() -> Iterator[_Remedy]:
    """Yield remedies that ignore letter case or blanks in codes and names of SDMX, which otherwise never match."""

    def without_blanks(text: str) -> str:
        return " ".join(text.split())

    folds: tuple[tuple[HintKind, str, Callable[[str], str]], ...] = (
        ("letter-case", "letter case", str.casefold),
        ("blanks", "blanks", without_blanks),
        ("letter-case", "letter case and blanks", lambda text: without_blanks(text.casefold())),
    )
    for kind, what, fold in folds:
        yield _Remedy(
            kind=kind,
            text=f"ids or names differ only in {what}: write them as in the gold answer",
            change=_respelling(fold),
        )


def _respelling(fold: Callable[[str], str]) -> Change:
    """Return a change of two selections that applies `fold` to their ids and names."""

    def term(term: Term) -> Term:
        return replace(term, id=term.id and fold(term.id), name=term.name and fold(term.name))

    def dimension(part: DimensionSelection) -> DimensionSelection:
        return DimensionSelection(fold(part.name), tuple(map(term, part.terms)))

    def respelled(selection: Selection) -> Selection:
        datasets = (DatasetSelection(fold(of.id), tuple(map(dimension, of.dimensions))) for of in selection.datasets)
        return replace(selection, datasets=tuple(datasets))

    return lambda gold, predicted: (respelled(gold), respelled(predicted))


# Scores


def _passes_with(result: CaseResult, remedy: _Remedy) -> bool:
    """Return whether the case would pass with a remedy; False for settings that suites may not have or already have."""
    fields = remedy.policy if remedy.policy is not None else remedy.compare or {}
    policy = replace(result.case.settings.policy, **fields)
    if policy.has_ordered_set or (fields and policy == result.case.settings.policy):
        return False
    case = replace(result.case, settings=replace(result.case.settings, policy=policy))
    trials = [_scored_again(trial, case, remedy.change) for trial in result.trials]
    return not verdict_of(case, trials)[2]


def _scored_again(trial: Trial, case: Case, change: Change | None) -> Trial:
    gold, predicted = trial.gold.answer, trial.predicted.answer
    if change is not None and gold is not None and predicted is not None and type(gold) is type(predicted):
        gold, predicted = change(gold, predicted)
        trial = replace(
            trial, gold=replace(trial.gold, answer=gold), predicted=replace(trial.predicted, answer=predicted)
        )
    scores = {name: _score_again(name, trial, case) for name in {**trial.scores, **case.settings.thresholds}}
    violations = threshold_violations(scores, case)
    passed = not violations and trial.predicted.error is None if case.settings.thresholds else None
    return replace(trial, scores=scores, violations=violations, passed=passed)


def _score_again(name: str, trial: Trial, case: Case) -> float | None:
    """Return the score of a metric under the settings of `case`, without running a query.

    A metric that needs more than the answers and the policy keeps its earlier score, which may be None.
    """
    earlier_score, gold, predicted = trial.scores.get(name), trial.gold, trial.predicted
    if name not in case.settings.thresholds or gold.answer is None or predicted.answer is None:
        return earlier_score
    if isinstance(gold.answer, AddedAnswer):
        return float(gold.answer.equals(predicted.answer, case)) if name == DECIDING_METRIC else earlier_score
    metric, options = metric_of(case.settings, name)
    if metric.published or metric.injected - {"policy"} or not (metric.injected or isinstance(gold.answer, Selection)):
        return earlier_score
    inputs = (gold, predicted) if metric.input == "executions" else (gold.answer, predicted.answer)
    try:
        policy = {"policy": case.settings.policy} if metric.injected else {}
        score = metric.function(*inputs, **options, **policy)
    except Exception:  # noqa: BLE001 - a metric of the user's may raise anything
        return earlier_score
    value = score.value if isinstance(score, Score) else score
    return earlier_score if value is None else value
