"""The datasets, dimensions and codes that structure messages describe, and the reader of messages in JSON.

Messages contain dataflows, data structures, concepts and codelists, which refer to each other. Of SDMX-JSON, versions
1.0 and 2 are read (https://github.com/sdmx-twg/sdmx-json), because sdmx1 reads only data messages in JSON.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from pytest_queryeval.core.mappings import grouped
from pytest_queryeval.documents.strict_json import StrictJson, TooDeepError
from pytest_queryeval.text.formatting import first_of, one_line

T = TypeVar("T")
Codes = Mapping[str, str]
MAX_NAMES = 5
MAX_CHARACTERS = 100  # of a name
TIME = "TIME_PERIOD"  # the id of the time dimension, which structures leave out
_ANY_VERSION = re.compile(r"|latest|.*[+~*].*", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]{1,9}")
_VERSIONED = re.compile(r"([^()]+)\(([^()]+)\)")
Object: TypeAlias = Mapping[str, Any]
_JSON = StrictJson(read_object=None, allow_nan=True)
_URN = re.compile(r"urn:sdmx:[^=]*=([^:=]*):([^(]*)\(([^()]*)\)(?:\.(.*))?")
# The lists whose items dimensions can enumerate, and the key of the items of each.
_SCHEMES = {
    "codelists": "codes",
    "valueLists": "valueItems",
    "geographicCodelists": "geoFeatureSetCodes",
    "geoGridCodelists": "geoGridCodes",
    "conceptSchemes": "concepts",
}


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension of a dataset, with its codes if they are restricted and known."""

    id: str
    codes: Mapping[str, str] | None
    """The names of the codes by id; None if any value is allowed, or if no message lists the codes."""
    unlisted_codes: str | None = None
    """The codelist or concept whose codes no message lists; None if they are listed or not restricted."""


@dataclass(frozen=True, slots=True)
class DatasetStructure:
    """The id, version and dimensions of a dataset."""

    id: str
    """`AGENCY:ID`."""
    version: str
    dimensions: tuple[Dimension, ...]
    """The dimensions in the order of keys, without time."""


@dataclass(frozen=True, slots=True)
class Structure:
    """The datasets that a suite's structure messages describe."""

    datasets: tuple[DatasetStructure, ...]


class Reference(NamedTuple):
    """The agency, id and version that identify an artefact."""

    agency: str
    id: str
    version: str
    """The version; empty if there is none."""

    def __str__(self) -> str:
        return f"{self.agency}:{self.id}{f'({self.version})' if self.version else ''}"


class ConceptReference(NamedTuple):
    """The scheme and the id that identify a concept."""

    scheme: Reference
    id: str

    def __str__(self) -> str:
        return f"{self.scheme}.{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A dimension as a data structure defines it."""

    id: str
    concept: ConceptReference | None
    codelist: Reference | None
    """The codelist of the dimension's own representation; None without one."""
    has_representation: bool
    """Whether the dimension has a representation of its own, which replaces that of its concept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """The definitions of one structure message."""

    codelists: Mapping[Reference, Codes] = field(default_factory=dict)
    """The codelists, concept schemes and other lists that a dimension can enumerate: names of codes by id."""
    concepts: Mapping[ConceptReference, Reference | None] = field(default_factory=dict)
    """The codelist of each concept, None if it has none."""
    structures: Mapping[Reference, Sequence[Component]] = field(default_factory=dict)
    """The dimensions of data structures in the order of their keys, without time."""
    dataflows: Mapping[Reference, Reference] = field(default_factory=dict)
    """The data structure of each dataflow."""


def english_name(names: Mapping[str, str]) -> str:
    """Return the name of the locale `en`, else of another English one, else the first name, else an empty text."""
    locale = next((locale for locale in names if re.split("[-_]", locale.lower())[0] == "en"), None)
    return names["en"] if "en" in names else names[locale] if locale else next(iter(names.values()), "")


def version_order(version: str) -> tuple[int, ...]:
    """Return the numbers in a version as its sort key."""
    return tuple(map(int, _NUMBER.findall(version)))


def is_any_version(version: str) -> bool:
    """Return whether a version is open: empty, or `latest`, or with `+`, `~` or `*`."""
    return _ANY_VERSION.fullmatch(version) is not None


def merge_messages(messages: Iterable[Message]) -> Structure:
    """Return all datasets of the messages, which may refer to each other.

    A dataset is a dataflow with a known data structure, or a data structure without a dataflow. Codelists with the same
    name are united; of other artefacts with the same name and version, the first counts.
    """
    codelists: defaultdict[Reference, dict[str, str]] = defaultdict(dict)
    concepts: defaultdict[Reference, dict[str, Reference | None]] = defaultdict(dict)
    structures: _Artefacts[Sequence[Component]] = _Artefacts()
    dataflows: _Artefacts[Reference] = _Artefacts()
    for message in messages:
        for name, codes in message.codelists.items():
            codelists[name] |= codes  # a codelist may be split over several messages
        for concept, codelist in message.concepts.items():
            concepts[concept.scheme][concept.id] = codelist
        structures.add_all(message.structures)
        dataflows.add_all(message.dataflows)
    lookup = _CodeLookup(_Artefacts(codelists), _Artefacts(concepts))

    definitions: list[tuple[Reference, Sequence[Component]]] = []
    dataflow_structures = set()
    for name, structure_name in dataflows.items():
        if structure := structures.find(structure_name):
            dataflow_structures.add(structure[0])
            definitions.append((name, structure[1]))
    definitions += [(name, components) for name, components in structures.items() if name not in dataflow_structures]
    datasets: dict[tuple[str, str], DatasetStructure] = {}
    for name, components in definitions:
        dataset = f"{name.agency}:{name.id}"
        dimensions = tuple(map(lookup.dimension, components))
        datasets.setdefault((dataset, name.version), DatasetStructure(dataset, name.version, dimensions))
    return Structure(tuple(datasets.values()))


class _Artefacts(Generic[T]):
    """Artefacts of one type by their references; of several with the same reference, the first is kept."""

    def __init__(self, artefacts: Mapping[Reference, T] | None = None) -> None:
        self._versions: defaultdict[tuple[str, str], dict[str, T]] = defaultdict(dict)
        self.add_all(artefacts or {})

    def add_all(self, artefacts: Mapping[Reference, T]) -> None:
        for name, artefact in artefacts.items():
            self._versions[name.agency, name.id].setdefault(name.version, artefact)

    def find(self, name: Reference) -> tuple[Reference, T] | None:
        """Return an artefact with its own reference; None if there is none.

        If the version of `name` does not exist, the only version is returned, or the newest if `name` leaves the
        version open.
        """
        versions = self._versions.get((name.agency, name.id), {})
        version = name.version
        if version not in versions and (len(versions) == 1 or (versions and is_any_version(version))):
            version = max(versions, key=version_order)
        return (name._replace(version=version), versions[version]) if version in versions else None

    def items(self) -> Iterator[tuple[Reference, T]]:
        for (agency, id_), versions in self._versions.items():
            for version, artefact in versions.items():
                yield Reference(agency, id_, version), artefact


class _CodeLookup:
    """Finds the codes of dimensions in codelists, also through their concepts."""

    def __init__(
        self, codelists: _Artefacts[dict[str, str]], concepts: _Artefacts[dict[str, Reference | None]]
    ) -> None:
        self._codelists = codelists
        self._concepts = concepts

    def dimension(self, component: Component) -> Dimension:
        """Return the dimension of a component with the codes of its codelist, or of its concept's codelist.

        If no message contains these codes, `unlisted_codes` of the result names the codelist or concept. A codelist
        without codes counts as unknown: services leave codes out of lists that are too long.
        """
        concept, codelist = component.concept, component.codelist
        if not component.has_representation and concept is not None:
            scheme = self._concepts.find(concept.scheme)
            if scheme is None or concept.id not in scheme[1]:
                codes = self._conventional_codes(concept.id)
                return Dimension(component.id, codes, unlisted_codes=None if codes else str(concept))
            codelist = scheme[1][concept.id]
        if codelist is None:
            return Dimension(component.id, None)
        codelist_match = self._codelists.find(codelist)
        if codelist_match is None or not codelist_match[1]:
            return Dimension(component.id, None, unlisted_codes=str(codelist))
        return Dimension(component.id, codelist_match[1])

    def _conventional_codes(self, concept: str) -> Codes | None:
        """Return the codes of the only codelist `CL_CONCEPT`, else of the only `CL_…_CONCEPT`; None without it.

        Services answer with codelists and leave out the concepts that refer to them. The names of codelists follow
        SDMX's guidelines for structure definitions, by which they start with `CL_` and the concept.
        """
        codelists = list(self._codelists.items())
        for pattern in (f"CL_{re.escape(concept)}", f"CL_.*_{re.escape(concept)}"):
            fitting = [(name, codes) for name, codes in codelists if re.fullmatch(pattern, name.id)]
            if len({(name.agency, name.id) for name, _ in fitting}) == 1:
                return max(fitting, key=lambda entry: version_order(entry[0].version))[1] or None
            if fitting:
                return None
        return None


class Datasets:
    """Finds the datasets of a structure by id and version."""

    def __init__(self, structure: Structure) -> None:
        self._versions = grouped((dataset.id, dataset) for dataset in structure.datasets)

    @property
    def ids(self) -> Sequence[str]:
        """The ids `AGENCY:ID` of all datasets, without versions."""
        return list(self._versions)

    def of_any_agency(self, id_: str) -> Sequence[str]:
        """Return the ids `AGENCY:ID` of all datasets with this ID."""
        return [dataset for dataset in self._versions if dataset.partition(":")[2] == id_]

    def get(self, dataset: str) -> DatasetStructure | None:
        """Return the dataset `AGENCY:ID(VERSION)`, the newest version without a known VERSION; None if unknown."""
        match = _VERSIONED.fullmatch(dataset)
        versions = self._versions.get(match[1] if match else dataset, [])
        fitting_versions = [candidate for candidate in versions if match and candidate.version == match[2]]
        return max(fitting_versions or versions, key=lambda candidate: version_order(candidate.version), default=None)


def codes_of(dataset: DatasetStructure) -> Mapping[str, Mapping[str, str] | None]:
    """Return the names of the codes of each dimension by id; None for a dimension if any value is allowed."""
    return {dimension.id: dimension.codes for dimension in dataset.dimensions}


def unlisted_codes(structure: Structure) -> str:
    """Return a sentence on dimensions that are not checked, as no message lists their codes; empty without any."""
    unlisted_dimensions = [
        (dimension.id, dataset.id, dimension.unlisted_codes)
        for dataset in structure.datasets
        for dimension in dataset.dimensions
        if dimension.unlisted_codes is not None
    ]
    if not unlisted_dimensions:
        return ""
    dimensions, datasets, codelists = (
        list_names(list(dict.fromkeys(names)), MAX_NAMES, MAX_CHARACTERS)
        for names in zip(*unlisted_dimensions, strict=True)
    )
    return f"codes of {dimensions} in {datasets} are not checked: no file lists those of {codelists}"


def list_names(names: Sequence[str], limit: int, characters: int) -> str:
    """Return the first `limit` names, each cut to `characters`, and the number of the others, as text for a message."""
    return first_of([one_line(name, characters) for name in names], limit)


def read_json_message(data: bytes) -> Message:
    """Return the definitions in an SDMX-JSON structure message; raise `ValueError` for other content.

    External references are left out, and so are codelists that extend others.
    """
    try:
        document = _JSON.read(data)
    except TooDeepError as error:
        raise ValueError("its JSON is nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"it is not JSON ({error})") from error
    content = document.get("data") if isinstance(document, dict) else None
    if not isinstance(content, dict) or "dataSets" in content or "dataSets" in document:
        raise ValueError("it is not an SDMX-JSON structure message")
    codelists: dict[Reference, Codes] = {}
    for key, items in _SCHEMES.items():
        for scheme in _definitions(content, key):
            if not scheme.get("codelistExtensions"):  # else some of its codes are in other lists
                codelists[_reference(scheme)] = {_id(item): _item_name(item) for item in _all_items(scheme, items)}
    concepts = {
        ConceptReference(_reference(scheme), _id(item)): _codelist(item.get("coreRepresentation"))
        for scheme in _definitions(content, "conceptSchemes")
        for item in _all_items(scheme, "concepts")
    }
    structures = {
        _reference(structure): _components(structure) for structure in _definitions(content, "dataStructures")
    }
    dataflows = {}
    for dataflow in _definitions(content, "dataflows"):
        if (structure := _read_urn(dataflow.get("structure"))) is not None:
            dataflows[_reference(dataflow)] = structure[0]
    return Message(codelists=codelists, concepts=concepts, structures=structures, dataflows=dataflows)


def _components(structure: Object) -> Sequence[Component]:
    dimension_list = _object(_object(structure, "dataStructureComponents"), "dimensionList")
    dimensions = [*_objects(dimension_list, "dimensions"), *_objects(dimension_list, "measureDimensions")]
    if all(isinstance(dimension.get("position"), int) for dimension in dimensions):
        dimensions.sort(key=lambda dimension: dimension["position"])
    components = []
    for dimension in dimensions:
        concept = _read_urn(dimension.get("conceptIdentity"))
        representation = dimension.get("localRepresentation")
        component = Component(
            id=_id(dimension) if "id" in dimension or concept is None else concept[1],
            concept=None if concept is None else ConceptReference(*concept),
            codelist=_codelist(representation),
            has_representation=bool(representation),
        )
        components.append(component)
    return components


def _codelist(representation: Any) -> Reference | None:
    urn = _read_urn(representation.get("enumeration")) if isinstance(representation, dict) else None
    return None if urn is None else urn[0]


def _read_urn(text: Any) -> tuple[Reference, str] | None:
    match = _URN.fullmatch(text) if isinstance(text, str) else None
    return None if match is None else (Reference(match[1], match[2], match[3]), match[4] or "")


def _reference(artefact: Object) -> Reference:
    agency = artefact.get("agencyID") or artefact.get("agencyId") or ""
    return Reference(str(agency), _id(artefact), str(artefact.get("version") or ""))


def _item_name(item: Object) -> str:
    names = item.get("names")
    if isinstance(names, dict) and names:
        return english_name({locale: str(name) for locale, name in names.items()})
    return str(item.get("name") or "")


def _definitions(content: Object, key: str) -> Iterator[Object]:
    return (artefact for artefact in _objects(content, key) if artefact.get("isExternalReference") is not True)


def _all_items(scheme: Object, key: str) -> Iterator[Object]:
    """Yield the items of a scheme, each before the items below it."""
    pending_items = list(reversed(_objects(scheme, key)))
    while pending_items:
        item = pending_items.pop()
        yield item
        pending_items.extend(reversed(_objects(item, key)))


def _objects(parent: Object, key: str) -> Sequence[Object]:
    objects = parent.get(key) or []
    if not isinstance(objects, list) or not all(isinstance(item, dict) for item in objects):
        raise ValueError(f"its '{key}' is not a list of objects")
    return objects


def _object(parent: Object, key: str) -> Object:
    member = parent.get(key) or {}
    if not isinstance(member, dict):
        raise ValueError(f"its '{key}' is not an object")
    return member


def _id(artefact: Object) -> str:
    id_ = artefact.get("id")
    if not isinstance(id_, str):
        raise ValueError("an artefact or an item in it has no 'id'")
    return id_
