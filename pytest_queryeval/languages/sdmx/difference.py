"""Where two selections differ: terms that are missing and terms that are extra."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pytest_queryeval.comparison.difference import Difference
from pytest_queryeval.core.selection import Selection, Term
from pytest_queryeval.core.table import Row
from pytest_queryeval.languages.sdmx.datasets import as_gold_says, dataset_ids
from pytest_queryeval.languages.sdmx.scores import match_dimensions
from pytest_queryeval.text.plain import one_line

COLUMNS = ("dimension", "id", "name")
MOST_DATASETS = 4
ID_CHARACTERS = 60


def difference(gold: Selection, predicted: Selection, *, limit: int) -> Difference:
    """The terms of gold's that are not selected, and those that are selected besides, whatever their datasets.

    At most `limit` rows of each, with the `COLUMNS`; where a term's name was not said its label stands in, or None.
    """
    dimensions = match_dimensions(gold, predicted)
    missing = [(name, term) for name, matched in dimensions.items() for term in matched.false_negatives]
    extra = [(name, term) for name, matched in dimensions.items() for term in matched.false_positives]
    shared = sum(len(matched.true_positives) for matched in dimensions.values())
    shape = f"gold has {_terms(shared + len(missing))}, predicted has {_terms(shared + len(extra))}"
    return Difference(
        missing=tuple(_rows(missing[:limit])),
        extra=tuple(_rows(extra[:limit])),
        counts=(len(missing), len(extra)),
        summary="; ".join([f"{shape}: {_of_terms(len(missing), len(extra))}", *_of_datasets(gold, predicted)]),
        columns=COLUMNS,
    )


def _rows(terms: Iterable[tuple[str, Term]]) -> Iterator[Row]:
    return ((dimension, term.id, term.label if term.name is None else term.name) for dimension, term in terms)


def _terms(number: int) -> str:
    return f"{number:,} term{'s' * (number != 1)}"


def _of_terms(missing: int, extra: int) -> str:
    if not missing and not extra:
        return "the same terms"
    return f"{missing:,} of gold's are not in predicted, {extra:,} of predicted's not in gold"


def _of_datasets(gold: Selection, predicted: Selection) -> Iterator[str]:
    said, golds = as_gold_says(gold), dataset_ids(gold)
    found = {said(dataset): dataset for dataset in dataset_ids(predicted)}
    missing = [dataset for dataset in golds if dataset not in found]
    extra = [dataset for name, dataset in found.items() if name not in golds]
    if missing:
        yield f"datasets that are missing: {_listed(missing)}"
    if extra:
        yield f"datasets that are extra: {_listed(extra)}"


def _listed(datasets: Sequence[str]) -> str:
    shown = ", ".join(one_line(dataset, ID_CHARACTERS) for dataset in datasets[:MOST_DATASETS])
    more = len(datasets) - MOST_DATASETS
    return f"{shown} and {more:,} more" if more > 0 else shown
