"""Selections in a report: the terms of each dimension, as values and as text, and how two selections differ."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Literal, NotRequired, TypeAlias, TypedDict

from pytest_queryeval.core.case_report import NO_DIFFERENCE, DifferenceReport
from pytest_queryeval.core.cause import MAX_EDITS, NOTHING, Cause, CauseLabel, CausingEdit
from pytest_queryeval.core.table import Row, Selection, Term
from pytest_queryeval.features.sdmx.scores import (
    MatchedTerms,
    dataset_ids,
    in_target,
    match_dimensions,
    precision_of,
    recall_of,
    rename_as_in_gold,
)
from pytest_queryeval.features.sdmx.structure import list_names
from pytest_queryeval.text.formatting import one_line, pluralize, truncate, utf8_safe

ListName: TypeAlias = Literal["true_positives", "false_negatives", "false_positives"]
MAX_DIMENSIONS = 1_000
MAX_TERMS = 1_000  # of each list of a dimension
TEXT_CHARACTERS = 500  # of an id, a name, or the name of a dimension
LISTS: Mapping[ListName, str] = {
    "true_positives": "True Positives",
    "false_negatives": "False Negatives",
    "false_positives": "False Positives",
}
COUNTED: Mapping[str, ListName] = {"tp": "true_positives", "fp": "false_positives", "fn": "false_negatives"}
NO_TERMS = "(nothing)"
NOT_IN_TARGET = "dimensions not in target:"
COLUMNS = ("dimension", "id", "name")  # of a difference
MAX_DATASETS = 4
MAX_CODES = 4  # in a cause
_ORDER = ("wrong-dataset", "missing-dimension", "extra-dimension", "wrong-code")
MAX_CHARACTERS = 60  # of the id of a dataset


class DimensionDetails(TypedDict):
    """The scores and terms of a dimension.

    The lists contain `[id, name]` for up to MAX_TERMS terms. A term without a name has its label instead, or None.
    """

    precision: float | None
    recall: float | None
    """None if gold has no term of the dimension."""
    in_target: bool
    counts: dict[ListName, int]
    """The full length of each list."""
    true_positives: list[list[str | None]]
    false_negatives: list[list[str | None]]
    false_positives: list[list[str | None]]


class SelectionDetails(TypedDict):
    """The dimensions of a selection by name: as values, as text, and as counts; `notes` say what is left out."""

    dimensions: dict[str, DimensionDetails]
    indicator_selection: str
    counts: dict[str, dict[str, dict[str, int]]]
    notes: NotRequired[list[str]]


def selection_text(selection: Selection) -> str:
    """Return a selection as text: a line for each dataset, and below it an indented line for each dimension.

    The line of a dimension is `  AREA: NO (North), SO, (East)`; `(East)` is a term without an id. At most
    MAX_DIMENSIONS dimensions of a dataset are listed, and MAX_TERMS terms of a dimension. An empty selection is
    NO_TERMS.
    """
    lines = []
    for dataset in selection.datasets:
        lines.append(_visible_text(dataset.id))
        for dimension in dataset.dimensions[:MAX_DIMENSIONS]:
            terms = []
            for term in dimension.terms[:MAX_TERMS]:
                name = term.label if term.name is None else term.name
                shown_name = "" if name is None else f"({_visible_text(name)})"
                terms.append(shown_name if term.id is None else f"{_visible_text(term.id)} {shown_name}".rstrip())
            if len(dimension.terms) > MAX_TERMS:
                terms.append(f"… {len(dimension.terms) - MAX_TERMS:,} more")
            lines.append(f"  {_visible_text(dimension.name)}: {', '.join(terms) or NO_TERMS}")
        if len(dataset.dimensions) > MAX_DIMENSIONS:
            lines.append(f"  … {len(dataset.dimensions) - MAX_DIMENSIONS:,} more")
    return "\n".join(lines) or NO_TERMS


def details_of(dimensions: Mapping[str, MatchedTerms]) -> SelectionDetails:
    """Return the details of the first MAX_DIMENSIONS dimensions, with a note if there are more."""
    dimension_details: dict[str, DimensionDetails] = {}
    for name, matched_terms in islice(dimensions.items(), MAX_DIMENSIONS):
        dimension_details[_truncate(name)] = {
            "precision": precision_of(matched_terms),
            "recall": recall_of(matched_terms),
            "in_target": in_target(matched_terms),
            "counts": {key: len(getattr(matched_terms, key)) for key in LISTS},
            "true_positives": [_plain_term(term) for term in matched_terms.true_positives[:MAX_TERMS]],
            "false_negatives": [_plain_term(term) for term in matched_terms.false_negatives[:MAX_TERMS]],
            "false_positives": [_plain_term(term) for term in matched_terms.false_positives[:MAX_TERMS]],
        }
    counts = {
        name: {short_name: dimension["counts"][key] for short_name, key in COUNTED.items()}
        for name, dimension in dimension_details.items()
    }
    details: SelectionDetails = {
        "dimensions": dimension_details,
        "indicator_selection": details_text(dimension_details),
        "counts": {"dimension": counts},
    }
    if len(dimensions) > MAX_DIMENSIONS:
        details["notes"] = [f"only {MAX_DIMENSIONS:,} of {len(dimensions):,} dimensions are listed"]
    return details


def details_text(dimensions: Mapping[str, DimensionDetails]) -> str:
    """Return the text of a cell: a block of lines for each dimension under its name, dimensions of gold first.

    `dimensions` are those of `details_of`. A block starts with `[recall: 1.00, precision: 0.67]`. The lists follow,
    each with its number of terms and a line `  * ID: name` for each term. Blocks of dimensions without terms in gold
    follow the line `dimensions not in target:`. The text is empty if there is no dimension.
    """
    blocks = [
        "\n".join(_block_lines(name, dimension)) for name, dimension in dimensions.items() if dimension["in_target"]
    ]
    extra_blocks = [
        "\n".join(_block_lines(name, dimension)) for name, dimension in dimensions.items() if not dimension["in_target"]
    ]
    return "\n\n".join([*blocks, *([NOT_IN_TARGET] if extra_blocks else ()), *extra_blocks])


def _plain_term(term: Term) -> list[str | None]:
    name = term.label if term.name is None else term.name
    return [None if text is None else _truncate(text) for text in (term.id, name)]


def _truncate(text: str) -> str:
    return truncate(utf8_safe(text), TEXT_CHARACTERS)


def _block_lines(name: str, dimension: DimensionDetails) -> Iterator[str]:
    yield _visible_text(name)
    recall, precision = (
        "n/a" if value is None else f"{value:.2f}" for value in (dimension["recall"], dimension["precision"])
    )
    yield f"[recall: {recall}, precision: {precision}]"
    for key, title in LISTS.items():
        terms, number = dimension[key], dimension["counts"][key]
        yield f"{title} [{number}]"
        for code, term_name in terms:
            shown_code = "(no id)" if code is None else _visible_text(code)
            yield f"  * {shown_code}" if term_name is None else f"  * {shown_code}: {_visible_text(term_name)}"
        if number > len(terms):
            yield f"  … {number - len(terms):,} more"


def _visible_text(text: str) -> str:
    """Return a text on one line, quoted if spaces at its ends would be invisible."""
    return one_line(repr(text) if text != text.strip() else text, TEXT_CHARACTERS)


def difference(gold: Selection, predicted: Selection, *, limit: int) -> DifferenceReport[Row]:
    """Return gold's terms that are not selected, and selected terms that gold lacks, regardless of their datasets.

    Both lists have at most `limit` rows with the `COLUMNS`; a term without a name has its label instead, or None. The
    summary also names missing and extra datasets.
    """
    dimensions = match_dimensions(gold, predicted)
    missing_terms = [
        (name, term) for name, matched_terms in dimensions.items() for term in matched_terms.false_negatives
    ]
    extra_terms = [(name, term) for name, matched_terms in dimensions.items() for term in matched_terms.false_positives]
    shared_count = sum(len(matched_terms.true_positives) for matched_terms in dimensions.values())
    parts = []
    if missing_terms:
        parts.append(f"missing {len(missing_terms):,} of {pluralize(shared_count + len(missing_terms), 'term')}")
    if extra_terms:
        text = f"{len(extra_terms):,} extra" if missing_terms else pluralize(len(extra_terms), "extra term")
        parts.append(text)

    rename, gold_ids = rename_as_in_gold(gold), dataset_ids(gold)
    datasets = {rename(dataset): dataset for dataset in dataset_ids(predicted)}
    missing_datasets = [dataset for dataset in gold_ids if dataset not in datasets]
    extra_datasets = [dataset for name, dataset in datasets.items() if name not in gold_ids]
    if missing_datasets:
        parts.append(f"missing datasets {list_names(missing_datasets, MAX_DATASETS, MAX_CHARACTERS)}")
    if extra_datasets:
        parts.append(f"extra datasets {list_names(extra_datasets, MAX_DATASETS, MAX_CHARACTERS)}")
    return {
        **NO_DIFFERENCE,
        "summary": ", ".join(parts),
        "columns": [*COLUMNS],
        "counts": {"missing": len(missing_terms), "extra": len(extra_terms)},
        "missing": [*_rows(missing_terms[:limit])],
        "extra": [*_rows(extra_terms[:limit])],
    }


def difference_cause(gold: Selection, predicted: Selection) -> Cause | None:
    """Return the first MAX_EDITS differences of two selections as a cause; None if there is no difference.

    Wrong datasets come first, then missing and extra dimensions, then wrong codes.
    """
    rename, gold_ids = rename_as_in_gold(gold), dataset_ids(gold)
    predicted_ids = list(dict.fromkeys(map(rename, dataset_ids(predicted))))
    differences: list[tuple[CauseLabel, str, Sequence[str], Sequence[str]]] = []
    extra_datasets, missing_datasets = (
        [dataset for dataset in ids if dataset not in opposite_ids]
        for ids, opposite_ids in ((predicted_ids, gold_ids), (gold_ids, predicted_ids))
    )
    if extra_datasets or missing_datasets:
        differences.append(("wrong-dataset", "", extra_datasets, missing_datasets))
    for name, matched_terms in match_dimensions(gold, predicted).items():
        extra_terms, missing_terms = matched_terms.false_positives, matched_terms.false_negatives
        # Of terms with the same id on both sides, the names differ.
        shared_ids = {term.id for term in extra_terms} & {term.id for term in missing_terms}
        extra_names, missing_names = (
            [_term_text(term, shared_ids) for term in terms] for terms in (extra_terms, missing_terms)
        )
        if not extra_names and not missing_names:
            continue
        label: CauseLabel = "wrong-code"
        if not matched_terms.true_positives and not (extra_names and missing_names):
            label = "missing-dimension" if missing_names else "extra-dimension"
        differences.append((label, name, extra_names, missing_names))
    differences.sort(key=lambda entry: _ORDER.index(entry[0]))
    edits = [
        CausingEdit(
            label=label,
            clause=one_line(name),
            change=" → ".join(list_names(names, MAX_CODES, MAX_CHARACTERS) if names else NOTHING for names in change),
        )
        for label, name, *change in differences[:MAX_EDITS]
    ]
    return Cause(edits=tuple(edits)) if edits else None


def _term_text(term: Term, shared_ids: Collection[str | None]) -> str:
    """Return the id of a term, else its name; both if `shared_ids` contains the id."""
    name = term.name or term.label or ""
    return f"{term.id} ({name})" if term.id and name and term.id in shared_ids else term.id or name


def _rows(terms: Iterable[tuple[str, Term]]) -> Iterator[Row]:
    return ((dimension, term.id, term.label if term.name is None else term.name) for dimension, term in terms)
