"""What structure messages define, and how they go together: dataflows, data structures, concepts and codelists."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from pytest_queryeval.core.selection import DatasetStructure, Dimension, Structure

T = TypeVar("T")
Codes = Mapping[str, str]
_ANY_VERSION = re.compile(r"|latest|.*[+~*].*", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]{1,9}")


class Reference(NamedTuple):
    """The name of an artefact; `version` is empty where none was said."""

    agency: str
    id: str
    version: str

    def __str__(self) -> str:
        return f"{self.agency}:{self.id}{f'({self.version})' if self.version else ''}"


class ConceptReference(NamedTuple):
    """The name of a concept."""

    scheme: Reference
    id: str

    def __str__(self) -> str:
        return f"{self.scheme}.{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A dimension as its data structure states it.

    `codelist` is what its own representation enumerates. `has_own` tells that it has a representation of its own, which
    then holds instead of its concept's.
    """

    id: str
    concept: ConceptReference | None
    codelist: Reference | None
    has_own: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One structure message, without what it only refers to.

    `codelists` holds whatever a dimension can enumerate, with the name of each code, empty where there is none.
    `concepts` says which codelist each concept enumerates, None where it enumerates none. `structures` are the
    dimensions of data structures in the order of their keys, without time.
    """

    codelists: Mapping[Reference, Codes] = field(default_factory=dict)
    concepts: Mapping[ConceptReference, Reference | None] = field(default_factory=dict)
    structures: Mapping[Reference, Sequence[Component]] = field(default_factory=dict)
    dataflows: Mapping[Reference, Reference] = field(default_factory=dict)


def english(names: Mapping[str, str]) -> str:
    """The English one of the names by their locales, else the first, else nothing."""
    locale = next((locale for locale in names if re.split("[-_]", locale.lower())[0] == "en"), None)
    return names["en"] if "en" in names else names[locale] if locale else next(iter(names.values()), "")


def version_order(version: str) -> tuple[int, ...]:
    """What versions are ordered by: their numbers."""
    return tuple(map(int, _NUMBER.findall(version)))


def is_any_version(version: str) -> bool:
    """Whether no certain version is meant: none was said, or `latest`, or `+`, `~` or `*` stands in it."""
    return _ANY_VERSION.fullmatch(version) is not None


def structure_of(messages: Iterable[Message]) -> Structure:
    """All datasets of the messages, which may refer to each other.

    A dataset is a dataflow whose data structure is there, or a data structure that no dataflow names.
    """
    known = _Known(messages)
    datasets: dict[tuple[str, str], DatasetStructure] = {}
    for name, structure in known.datasets():
        dataset = f"{name.agency}:{name.id}"
        dimensions = tuple(map(known.dimension, structure))
        datasets.setdefault((dataset, name.version), DatasetStructure(dataset, name.version, dimensions))
    return Structure(tuple(datasets.values()))


class _Shelf(Generic[T]):
    """Artefacts of one sort by their names. The first one of a name stays."""

    def __init__(self) -> None:
        self._versions: defaultdict[tuple[str, str], dict[str, T]] = defaultdict(dict)

    def add(self, name: Reference, artefact: T) -> None:
        self._versions[name.agency, name.id].setdefault(name.version, artefact)

    def find(self, wanted: Reference) -> tuple[Reference, T] | None:
        """The artefact with its name: of the version that is wanted, or the only one, or the newest of any version."""
        versions = self._versions.get((wanted.agency, wanted.id), {})
        version = wanted.version
        if version not in versions and (len(versions) == 1 or (versions and is_any_version(version))):
            version = max(versions, key=version_order)
        return (wanted._replace(version=version), versions[version]) if version in versions else None

    def items(self) -> Iterator[tuple[Reference, T]]:
        for (agency, id_), versions in self._versions.items():
            for version, artefact in versions.items():
                yield Reference(agency, id_, version), artefact


class _Known:
    """Everything that the messages define."""

    def __init__(self, messages: Iterable[Message]) -> None:
        self._codelists: _Shelf[dict[str, str]] = _Shelf()
        self._concepts: _Shelf[dict[str, Reference | None]] = _Shelf()
        self._structures: _Shelf[Sequence[Component]] = _Shelf()
        self._dataflows: _Shelf[Reference] = _Shelf()
        codelists: defaultdict[Reference, dict[str, str]] = defaultdict(dict)
        concepts: defaultdict[Reference, dict[str, Reference | None]] = defaultdict(dict)
        for message in messages:
            for name, codes in message.codelists.items():
                codelists[name] |= codes  # one message may hold one part of a codelist and the next another
            for concept, codelist in message.concepts.items():
                concepts[concept.scheme][concept.id] = codelist
            _put(self._structures, message.structures.items())
            _put(self._dataflows, message.dataflows.items())
        _put(self._codelists, codelists.items())
        _put(self._concepts, concepts.items())

    def datasets(self) -> Iterator[tuple[Reference, Sequence[Component]]]:
        named = set()
        for name, wanted in self._dataflows.items():
            if found := self._structures.find(wanted):
                named.add(found[0])
                yield name, found[1]
        yield from ((name, structure) for name, structure in self._structures.items() if name not in named)

    def dimension(self, component: Component) -> Dimension:
        """A dimension with its codes.

        A codelist without codes tells nothing: services leave codes out of lists that are too long.
        """
        teller, codes = self._codes(component)
        return Dimension(component.id, codes, untold=None if codes or teller is None else str(teller))

    def _codes(self, component: Component) -> tuple[Reference | ConceptReference | None, Codes | None]:
        """What tells a dimension's codes, None where any value may stand, and what it tells."""
        concept, codelist = component.concept, component.codelist
        if not component.has_own and concept is not None:
            scheme = self._concepts.find(concept.scheme)
            if scheme is None or concept.id not in scheme[1]:
                return concept, self._conventional(concept.id)
            codelist = scheme[1][concept.id]
        return codelist, self._listed(codelist)

    def _listed(self, codelist: Reference | None) -> Codes | None:
        found = None if codelist is None else self._codelists.find(codelist)
        return found[1] or None if found else None

    def _conventional(self, concept: str) -> Codes | None:
        """The codelist `CL_CONCEPT`, else one `CL_…_CONCEPT`, where there is only one such.

        Services answer with codelists and leave out the concepts that tell where these belong. The names of codelists
        follow SDMX's guidelines for structure definitions, which start them with `CL_` and the concept.
        """
        codelists = list(self._codelists.items())
        for pattern in (f"CL_{re.escape(concept)}", f"CL_.*_{re.escape(concept)}"):
            fitting = [(name, codes) for name, codes in codelists if re.fullmatch(pattern, name.id)]
            if len({(name.agency, name.id) for name, _ in fitting}) == 1:
                return max(fitting, key=lambda one: version_order(one[0].version))[1] or None
            if fitting:
                return None
        return None


def _put(shelf: _Shelf[T], artefacts: Iterable[tuple[Reference, T]]) -> None:
    for name, artefact in artefacts:
        shelf.add(name, artefact)
