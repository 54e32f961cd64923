"""Where two selections differ: terms that are missing and terms that are extra."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from pytest_queryeval.core.cause import MAX_EDITS, NOTHING, Cause, CauseLabel, CausingEdit
from pytest_queryeval.core.table import Difference, Row, Selection, Term
from pytest_queryeval.features.sdmx.lookup import list_names
from pytest_queryeval.features.sdmx.scores import dataset_ids, match_dimensions, rename_as_in_gold
from pytest_queryeval.text.formatting import one_line, pluralize

COLUMNS = ("dimension", "id", "name")
MAX_DATASETS = 4
MAX_CODES = 4  # in a cause
_ORDER = ("wrong-dataset", "missing-dimension", "extra-dimension", "wrong-code")
MAX_CHARACTERS = 60  # of the id of a dataset


def difference(gold: Selection, predicted: Selection, *, limit: int) -> Difference:
    """Return the terms of gold that are not selected, and the selected terms that gold lacks, whatever their datasets.

    At most `limit` rows of each, with the `COLUMNS`; a term without a name has its label instead, or None.
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
    return Difference(
        missing=tuple(_rows(missing_terms[:limit])),
        extra=tuple(_rows(extra_terms[:limit])),
        counts=(len(missing_terms), len(extra_terms)),
        summary=", ".join(parts),
        columns=COLUMNS,
    )


def difference_cause(gold: Selection, predicted: Selection) -> Cause | None:
    """Return the first differences: of datasets, then of dimensions that one side lacks, then of codes."""
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
    """Return the id of a term, else its name; both if a term of the other side has the same id."""
    name = term.name or term.label or ""
    return f"{term.id} ({name})" if term.id and name and term.id in shared_ids else term.id or name


def _rows(terms: Iterable[tuple[str, Term]]) -> Iterator[Row]:
    return ((dimension, term.id, term.label if term.name is None else term.name) for dimension, term in terms)
