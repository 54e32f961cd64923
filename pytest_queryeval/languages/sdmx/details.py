"""What a report says of a selection: the terms of each dimension, as plain values and as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from pytest_queryeval.core.selection import DatasetSelection, Selection, Term
from pytest_queryeval.languages.sdmx.matching import Matched
from pytest_queryeval.languages.sdmx.scores import in_target, precision_of, recall_of
from pytest_queryeval.text.plain import one_line, shortened, storable

MOST_DIMENSIONS = 1_000
MOST_TERMS = 1_000  # of each list of a dimension
TEXT_CHARACTERS = 500  # of an id, a name, or the name of a dimension
LISTS = {
    "true_positives": "True Positives",
    "false_negatives": "False Negatives",
    "false_positives": "False Positives",
}
COUNTED = ("true_positives", "false_positives", "false_negatives")
NOTHING = "(nothing)"
NOT_IN_TARGET = "dimensions not in target:"


def selection_text(selection: Selection) -> str:
    """A selection for people: a line for each dataset, and below each a line for each of its dimensions.

    Such as `  AREA: NO (North), SO, (East)`, where `(East)` is a term without an id. Of a dataset MOST_DIMENSIONS are
    listed, and of a dimension MOST_TERMS.
    """
    return "\n".join(line for dataset in selection.datasets for line in _selected(dataset)) or NOTHING


def _selected(dataset: DatasetSelection) -> Iterator[str]:
    yield _shown(dataset.id)
    for dimension in dataset.dimensions[:MOST_DIMENSIONS]:
        terms = [_selected_term(term) for term in dimension.terms[:MOST_TERMS]]
        listed = ", ".join([*terms, *_more(dimension.terms, MOST_TERMS)])
        yield f"  {_shown(dimension.name)}: {listed or NOTHING}"
    yield from (f"  {more}" for more in _more(dataset.dimensions, MOST_DIMENSIONS))


def _selected_term(term: Term) -> str:
    name = term.label if term.name is None else term.name
    named = "" if name is None else f"({_shown(name)})"
    return named if term.id is None else f"{_shown(term.id)} {named}".rstrip()


def _more(listed: Sequence[object], most: int) -> Iterator[str]:
    if len(listed) > most:
        yield f"… {len(listed) - most:,} more"


def details_of(dimensions: Mapping[str, Matched]) -> dict[str, Any]:
    """`dimensions` as plain values, their `counts`, and `indicator_selection`, the text of them.

    There are `notes` where not all are listed.

    Of a dimension these are `precision`, `recall` (None where gold has no term of it), `in_target`, the lists
    `true_positives`, `false_negatives` and `false_positives` with `[id, name]` of up to MOST_TERMS terms each, and
    `counts`, how many terms each list would have. Where no name was said it is the term's label, or None.
    """
    listed = {_cut(name): _plain(matched) for name, matched in islice(dimensions.items(), MOST_DIMENSIONS)}
    counts = {
        name: dict(zip(("tp", "fp", "fn"), (found["counts"][each] for each in COUNTED), strict=True))
        for name, found in listed.items()
    }
    details: dict[str, Any] = {"dimensions": listed, "indicator_selection": details_text(listed)}
    details["counts"] = {"dimension": counts}
    if len(dimensions) > MOST_DIMENSIONS:
        details["notes"] = [f"only {MOST_DIMENSIONS:,} of {len(dimensions):,} dimensions are listed"]
    return details


def details_text(dimensions: Mapping[str, Any]) -> str:
    """The cell of a report: a block of lines for each dimension under its name, those that gold has first.

    `dimensions` are those of `details_of`. A block starts with `[recall: 1.00, precision: 0.67]`; then the lists
    follow, each with its number of terms and a line `  * ID: name` for each of them. Blocks of dimensions that gold has
    no terms of stand behind the line `dimensions not in target:`. Empty where no dimension has terms.
    """
    blocks = ["\n".join(_block(name, found)) for name, found in dimensions.items() if found["in_target"]]
    others = ["\n".join(_block(name, found)) for name, found in dimensions.items() if not found["in_target"]]
    return "\n\n".join([*blocks, *([NOT_IN_TARGET] if others else ()), *others])


def _plain(matched: Matched) -> dict[str, Any]:
    terms: dict[str, Sequence[Term]] = {name: getattr(matched, name) for name in LISTS}
    lists = {name: [_plain_term(term) for term in these[:MOST_TERMS]] for name, these in terms.items()}
    return {
        "precision": precision_of(matched),
        "recall": recall_of(matched),
        "in_target": in_target(matched),
        "counts": {name: len(these) for name, these in terms.items()},
        **lists,
    }


def _plain_term(term: Term) -> list[str | None]:
    name = term.label if term.name is None else term.name
    return [text if text is None else _cut(text) for text in (term.id, name)]


def _cut(text: str) -> str:
    return shortened(storable(text), TEXT_CHARACTERS)


def _block(name: str, found: Mapping[str, Any]) -> Iterator[str]:
    yield _shown(name)
    yield f"[recall: {_figure(found['recall'])}, precision: {_figure(found['precision'])}]"
    for key, title in LISTS.items():
        terms, number = found[key], found["counts"][key]
        yield f"{title} [{number}]"
        yield from (f"  * {_term_text(*term)}" for term in terms)
        if number > len(terms):
            yield f"  … {number - len(terms):,} more"


def _figure(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.2f}"


def _term_text(code: str | None, name: str | None) -> str:
    if name is None:
        return "(no id)" if code is None else _shown(code)
    return f"{'(no id)' if code is None else _shown(code)}: {_shown(name)}"


def _shown(text: str) -> str:
    """In quotes where blanks at an end would go unseen."""
    return one_line(repr(text) if text != text.strip() else text, TEXT_CHARACTERS)
