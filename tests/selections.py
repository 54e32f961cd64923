"""Selections that tests write in a line, and Hypothesis strategies for them."""

from __future__ import annotations

from hypothesis import strategies as st

from pytest_queryeval.core.table import DatasetSelection, DimensionSelection, Selection, Term

WEO = "IMF.RES:WEO"


def term(stated: str) -> Term:
    """`GDP: gross domestic product`; `GDP` is an id only, `: gross domestic product` a name only."""
    code, colon, name = stated.partition(": ") if ": " in stated else (stated, "", "")
    return Term(code or None, name if colon else None)


def terms(*stated: str) -> tuple[Term, ...]:
    return tuple(map(term, stated))


def dataset(id_: str = WEO, **dimensions: tuple[str, ...]) -> DatasetSelection:
    return DatasetSelection(id_, tuple(DimensionSelection(name, terms(*of)) for name, of in dimensions.items()))


def selection(*datasets: DatasetSelection, by_id: bool = False) -> Selection:
    return Selection(datasets, by_id=by_id)


def selected(by_id: bool = False, **dimensions: tuple[str, ...]) -> Selection:
    """A selection of one dataset."""
    return selection(dataset(**dimensions), by_id=by_id)


def selection_json(selection: Selection) -> list:
    """The selection as suites state it, without what was not said."""
    return [
        {"dataset_id": dataset.id, "dimensions": [_dimension_json(dimension) for dimension in dataset.dimensions]}
        for dataset in selection.datasets
    ]


def _dimension_json(dimension: DimensionSelection) -> dict:
    said = [{"id": term.id, "name": term.name} for term in dimension.terms]
    return {
        "dimension_name": dimension.name,
        "values": [{key: text for key, text in term.items() if text is not None} for term in said],
    }


FULL_TERMS = st.builds(Term, st.sampled_from("abc"), st.sampled_from("xyz"))
ID_TERMS = st.builds(lambda code: Term(code, None), st.sampled_from("abc"))
NAME_TERMS = st.builds(lambda name: Term(None, name), st.sampled_from("xyz"))
TERMS = FULL_TERMS | ID_TERMS | NAME_TERMS


def selections(of=TERMS):
    dimensions = st.builds(
        DimensionSelection, st.sampled_from(["INDICATOR", "COUNTRY", "FREQ"]), st.lists(of, max_size=4).map(tuple)
    )
    ids = st.sampled_from(["A:B", "A:C", "A:B(1.0)", "A:B(2.0)"])
    datasets = st.builds(DatasetSelection, ids, st.lists(dimensions, max_size=3).map(tuple))
    return st.builds(Selection, st.lists(datasets, max_size=3).map(tuple))
