"""Where two selections differ: terms that are missing and terms that are extra."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_queryeval.comparison.difference import Difference
from pytest_queryeval.core.selection import Selection, Term
from pytest_queryeval.core.table import Row
from pytest_queryeval.languages.sdmx.lookup import list_names
from pytest_queryeval.languages.sdmx.scores import dataset_ids, match_dimensions, rename_as_in_gold

COLUMNS = ("dimension", "id", "name")
MAX_DATASETS = 4
MAX_CHARACTERS = 60  # of the id of a dataset


def difference(gold: Selection, predicted: Selection, *, limit: int) -> Difference:
    """Return the terms of gold that are not selected, and those that are selected besides, whatever their datasets.

    At most `limit` rows of each, with the `COLUMNS`; a term without a name has its label instead, or None.
    """
    dimensions = match_dimensions(gold, predicted)
    missing = [(name, term) for name, matched in dimensions.items() for term in matched.false_negatives]
    extra = [(name, term) for name, matched in dimensions.items() for term in matched.false_positives]
    shared = sum(len(matched.true_positives) for matched in dimensions.values())
    summary = f"gold has {_terms(shared + len(missing))}, predicted has {_terms(shared + len(extra))}: "
    if missing or extra:
        summary += f"{len(missing):,} of gold's are not in predicted, {len(extra):,} of predicted's not in gold"
    else:
        summary += "the same terms"

    rename, golds = rename_as_in_gold(gold), dataset_ids(gold)
    datasets = {rename(dataset): dataset for dataset in dataset_ids(predicted)}
    missing_datasets = [dataset for dataset in golds if dataset not in datasets]
    extra_datasets = [dataset for name, dataset in datasets.items() if name not in golds]
    if missing_datasets:
        summary += f"; datasets that are missing: {list_names(missing_datasets, MAX_DATASETS, MAX_CHARACTERS)}"
    if extra_datasets:
        summary += f"; datasets that are extra: {list_names(extra_datasets, MAX_DATASETS, MAX_CHARACTERS)}"
    return Difference(
        missing=tuple(_rows(missing[:limit])),
        extra=tuple(_rows(extra[:limit])),
        counts=(len(missing), len(extra)),
        summary=summary,
        columns=COLUMNS,
    )


def _rows(terms: Iterable[tuple[str, Term]]) -> Iterator[Row]:
    return ((dimension, term.id, term.label if term.name is None else term.name) for dimension, term in terms)


def _terms(number: int) -> str:
    return f"{number:,} term{'s' * (number != 1)}"
