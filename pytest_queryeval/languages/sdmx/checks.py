"""What a selection names that its structure does not have, and the names of its codes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from typing import TypeAlias

from pytest_queryeval.core.selection import (
    DatasetSelection,
    DatasetStructure,
    DimensionSelection,
    Selection,
    Structure,
    Term,
)
from pytest_queryeval.languages.sdmx.lookup import TIME, Datasets, codes_of
from pytest_queryeval.languages.sdmx.matching import trimmed
from pytest_queryeval.languages.sdmx.nearest import Nearest
from pytest_queryeval.text.plain import one_line

Sentence: TypeAlias = Callable[[], str]
MOST_SENTENCES = 50
_CHARACTERS = 80
_FEW = 12


def violations(selection: Selection, structure: Structure) -> tuple[str, ...]:
    """Datasets, dimensions and codes that are not in the structure, a sentence each, with the nearest that is.

    A term that says only a name is looked up by its name. A name that is not that of its id is told, too, but for
    blanks and unless the selection was stated in codes. `A:B(9.0.0)` is any version of `A:B`; codes are not looked up
    in dimensions without a codelist; time is no dimension of a structure and goes unchecked. Behind MOST_SENTENCES
    there is only their number.
    """
    problems = _Checks(structure, with_names=not selection.by_id).of(selection)
    told = tuple(sentence() for sentence in islice(problems, MOST_SENTENCES))
    more = sum(1 for _ in problems)
    return (*told, f"and {more:,} more") if more else told


def labelled(selection: Selection, structure: Structure) -> Selection:
    """The selection with the names of its codes as labels where it says only ids."""
    known = Datasets(structure)
    datasets = (_labelled(dataset, known.get(dataset.id)) for dataset in selection.datasets)
    return replace(selection, datasets=tuple(datasets))


def _labelled(dataset: DatasetSelection, structure: DatasetStructure | None) -> DatasetSelection:
    codes = {} if structure is None else codes_of(structure)
    dimensions = (
        replace(one, terms=tuple(_with_label(term, codes.get(one.name) or {}) for term in one.terms))
        for one in dataset.dimensions
    )
    return replace(dataset, dimensions=tuple(dimensions))


def _with_label(term: Term, names: Mapping[str, str]) -> Term:
    name = names.get(term.id) if term.id is not None and term.name is None else None
    return replace(term, label=name) if name else term


@dataclass(frozen=True)
class _Known:
    """Known ids with their names, empty where there is none; what takes time is made once it is needed."""

    names: Mapping[str, str]

    @cached_property
    def by_name(self) -> Mapping[str, str]:
        """The first id of each name, which is without odd blanks."""
        return {trimmed(name): id_ for id_, name in reversed(list(self.names.items())) if name}

    @cached_property
    def _near_ids(self) -> Nearest:
        return Nearest(self.names)

    @cached_property
    def _near_names(self) -> Nearest:
        return Nearest(self.by_name)

    def hint(self, term: Term) -> str:
        """What may have been meant: an id of the term's name, or the one whose id, or else whose name, is nearest."""
        near = self._nearest(term)
        if near is not None:
            name = self.names[near]
            return f": did you mean {_quoted(near)}{f' ({_shown(name)})' if name else ''}?"
        return f": known are {', '.join(map(_quoted, self.names))}" if 0 < len(self.names) <= _FEW else ""

    def _nearest(self, term: Term) -> str | None:
        if (name := trimmed(term.name)) in self.by_name:
            return self.by_name[name]
        near = None if term.id is None else self._near_ids.to(term.id)
        if near is not None or not name:
            return near
        near_name = self._near_names.to(name)
        return None if near_name is None else self.by_name[near_name]


class _Checks:
    """The checks of one selection."""

    def __init__(self, structure: Structure, *, with_names: bool) -> None:
        self._datasets = Datasets(structure)
        self._with_names = with_names
        self._codelists: dict[int, _Known] = {}

    def of(self, selection: Selection) -> Iterator[Sentence]:
        known = _ids(self._datasets.ids)
        for dataset in selection.datasets:
            structure = self._datasets.get(dataset.id)
            if structure is None:
                yield partial(_no_dataset, dataset.id, known)
            else:
                yield from self._of_dataset(dataset, structure)

    def _of_dataset(self, dataset: DatasetSelection, structure: DatasetStructure) -> Iterator[Sentence]:
        codes = codes_of(structure)
        known = _ids(codes)
        for dimension in dataset.dimensions:
            if dimension.name not in codes:
                if dimension.name != TIME:
                    yield partial(_no_dimension, dimension.name, structure.id, known)
            elif (names := codes[dimension.name]) is not None:
                codelist = self._codelists.setdefault(id(names), _Known(names))
                yield from self._of_terms(dimension, structure.id, codelist)

    def _of_terms(self, dimension: DimensionSelection, dataset: str, codes: _Known) -> Iterator[Sentence]:
        for term in dimension.terms:
            if term.id is None:
                if codes.by_name and trimmed(term.name) not in codes.by_name:
                    yield partial(_no_name, dimension.name, dataset, term, codes)
            elif term.id not in codes.names:
                yield partial(_no_code, dimension.name, dataset, term, codes)
            elif self._with_names and not _fits(term.name, codes.names[term.id]):
                yield partial(_other_name, dimension.name, dataset, term, codes)


def _fits(said: str | None, name: str) -> bool:
    return said is None or not name or trimmed(said) == trimmed(name)


def _ids(known: Iterable[str]) -> _Known:
    return _Known(dict.fromkeys(known, ""))


def _no_dataset(dataset: str, known: _Known) -> str:
    return f"no dataset {_quoted(dataset)}{known.hint(Term(dataset, None))}"


def _no_dimension(name: str, dataset: str, known: _Known) -> str:
    return f"no dimension {_quoted(name)} in {dataset}{known.hint(Term(name, None))}"


def _no_code(dimension: str, dataset: str, term: Term, codes: _Known) -> str:
    return f"{dimension}: no code {_quoted(term.id)} in {dataset}{codes.hint(term)}"


def _no_name(dimension: str, dataset: str, term: Term, codes: _Known) -> str:
    return f"{dimension}: no code of {dataset} is called {_quoted(term.name)}{codes.hint(term)}"


def _other_name(dimension: str, dataset: str, term: Term, codes: _Known) -> str:
    name = codes.names[term.id or ""]
    return f"{dimension}: {_quoted(term.id)} of {dataset} is called {_quoted(name)}, not {_quoted(term.name)}"


def _quoted(text: str | None) -> str:
    return f"'{_shown(text or '')}'"


def _shown(text: str) -> str:
    return one_line(text, _CHARACTERS)
