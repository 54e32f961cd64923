"""SDMX REST data queries as selections.

The syntax is that of https://github.com/sdmx-twg/sdmx-rest: `data/AGENCY,ID,VERSION/KEY` of SDMX 2.1 and
`data/dataflow/AGENCY/ID/VERSION/KEY?c[DIMENSION]=CODE` of SDMX 3.0, alone or behind the address of a service.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from pytest_queryeval.core.errors import did_you_mean
from pytest_queryeval.core.selection import (
    DatasetSelection,
    DatasetStructure,
    DimensionSelection,
    Selection,
    Structure,
    Term,
)
from pytest_queryeval.languages.sdmx.data_key import Codes, key_codes
from pytest_queryeval.languages.sdmx.lookup import TIME, Datasets, codes_of
from pytest_queryeval.languages.sdmx.structure_messages import is_any_version
from pytest_queryeval.text.plain import one_line

MOST_CHARACTERS = 100_000
FORMS = "data/AGENCY,ID,VERSION/KEY or data/dataflow/AGENCY/ID/VERSION/KEY"
_UNFIT = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_CONTEXTS = ("dataflow", "datastructure", "*")
_ANY_AGENCY = ("", "*", "all", "ALL")
_FILTER = re.compile(r"c\[([^\[\]]*)\]")
_OPERATION = re.compile(r"(eq|ne|lt|le|gt|ge|co|nc|sw|ew):(.*)")
_SHOWN = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class _Address:
    """What the path of a query names: a dataset and a key. `agency` and `version` are empty where any will do."""

    agency: str
    id: str
    version: str
    key: str
    is_rest_3: bool


def is_data_query(text: str) -> bool:
    """Whether a text looks like one: a step of its path is `data`."""
    return bool(_places(_path(text)))


def read_data_query(text: str, structure: Structure | None) -> Selection:
    """Read a data query; its terms have the names that the structure has for their codes.

    Dimensions that the query leaves open are absent, and time is no selection. A filter `c[NAME]` of something that
    is no dimension of the dataset is kept like one. Raises `ValueError` with one sentence where the text is no data
    query, its dataset is not in the structure, or its key does not fit the dimensions.
    """
    path, parameters = _resource(text)
    address = _address(path)
    if structure is None:
        raise ValueError("a data query can be read only with `structure`, which says what the parts of its key are")
    dataset = _dataset(address, structure)
    codes = _selected(address, dataset, dict(_filters(parameters)))
    selected = tuple(_dimension(name, found, dataset) for name, found in codes.items() if found is not None)
    version = "" if is_any_version(address.version) else f"({address.version})"
    return Selection((DatasetSelection(dataset.id + version, selected),), by_id=True)


def _resource(text: str) -> tuple[Sequence[str], str]:
    """The steps of the path behind `data`, decoded, and the parameters as they are."""
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"a data query has {len(text):,} characters, more than {MOST_CHARACTERS:,}")
    steps, parameters = _path(text), text.strip().partition("#")[0].partition("?")[2]
    places = _places(steps)
    if not places:
        raise ValueError(f"not a data query, which is {FORMS}")
    found = [_decoded(step) for step in steps[places[-1] + 1 :]]
    while found and not found[-1]:
        found.pop()
    if not found:
        raise ValueError(f"the data query names no dataset: write {FORMS}")
    return found, parameters


def _path(text: str) -> Sequence[str]:
    return text.strip().partition("#")[0].partition("?")[0].split("/")


def _places(steps: Sequence[str]) -> Sequence[int]:
    return [place for place, step in enumerate(steps) if step in ("data", "Data")]


def _decoded(text: str) -> str:
    try:
        decoded = unquote(text, errors="strict")
    except UnicodeDecodeError as error:
        raise ValueError(f"'{_shown(text)}' in the data query is not UTF-8") from error
    if _UNFIT.search(decoded):
        raise ValueError(f"a blank or a control character in the data query: '{_shown(decoded)}'")
    return decoded


def _shown(text: str) -> str:
    return one_line(text, _SHOWN)


def _address(path: Sequence[str]) -> _Address:
    if path[0] == "provisionagreement":
        raise ValueError("a data query of a provision agreement names no dataset: ask for its dataflow")
    is_rest_3 = path[0] in _CONTEXTS
    named = path[1:4] if is_rest_3 else path[0].split(",")
    rest = path[4:] if is_rest_3 else path[1:]
    if len(named) == 1 and not is_rest_3:
        named = ["", *named]  # in SDMX 2.1 the agency may be left out
    if not 2 <= len(named) <= 3 or len(rest) > 2 - is_rest_3:
        raise ValueError(f"the path of the data query is not {FORMS}")
    if not named[1] or "*" in named[1] or (is_rest_3 and any("," in name for name in named)):
        raise ValueError("the data query names not one dataset: only queries of one can be read")
    agency, id_, version = *named[:2], named[2] if len(named) == 3 else ""
    return _Address(
        agency="" if agency in _ANY_AGENCY else agency,
        id=id_,
        version=version,
        key=rest[0] if rest else "",
        is_rest_3=is_rest_3,
    )


def _dataset(address: _Address, structure: Structure) -> DatasetStructure:
    known = Datasets(structure)
    ids = [f"{address.agency}:{address.id}"] if address.agency else known.called(address.id)
    if len(ids) > 1:
        raise ValueError(
            f"several datasets are called '{_shown(address.id)}': name the agency of {', '.join(ids[:10])}"
        )
    found = known.get(f"{ids[0]}({address.version})" if address.version else ids[0]) if ids else None
    if found is None:
        wanted = ids[0] if ids else address.id
        names = known.ids if ids else {name.partition(":")[2] for name in known.ids}
        near = did_you_mean(wanted, names) if len(wanted) <= _SHOWN else ""
        raise ValueError(f"no dataset '{_shown(wanted)}' in the structure{near}")
    return found


def _filters(parameters: str) -> Iterator[tuple[str, Codes]]:
    """The codes that `c[DIMENSION]` asks for, by dimensions; all other parameters are no selection."""
    seen = set()
    for parameter in parameters.split("&"):
        name, _, value = parameter.partition("=")
        match = _FILTER.fullmatch(unquote(name))
        if match is None or match[1] == TIME:
            continue
        dimension = _decoded(match[1])
        if dimension in seen:
            raise ValueError(f"the data query filters '{_shown(dimension)}' twice: put the codes into one `c[…]`")
        seen.add(dimension)
        yield dimension, _filtered(_shown(dimension), _decoded(value))


def _filtered(dimension: str, value: str) -> Codes:
    if "+" in value:
        raise ValueError(f"c[{dimension}]: no data has two codes at once (`+`): separate codes by `,`")
    codes = []
    for one in value.split(","):
        operation = _OPERATION.fullmatch(one)
        if operation and operation[1] != "eq":
            raise ValueError(f"c[{dimension}]: the operator '{operation[1]}' names no codes: only 'eq' can be read")
        codes.append(operation[2] if operation else one)
    if "" in codes:
        raise ValueError(f"c[{dimension}] lacks a code")
    return None if "*" in codes else tuple(dict.fromkeys(codes))


def _selected(address: _Address, dataset: DatasetStructure, filters: Mapping[str, Codes]) -> dict[str, Codes]:
    """The codes of each dimension, those of the key first; None where all are meant."""
    names = [dimension.id for dimension in dataset.dimensions]
    codes = dict(zip(names, key_codes(address.key, dataset.id, names, is_rest_3=address.is_rest_3), strict=True))
    for name, wanted in filters.items():
        keyed = codes.get(name)
        if keyed is None or wanted is None:
            codes[name] = wanted if keyed is None else keyed
            continue
        allowed = set(wanted)
        codes[name] = tuple(code for code in keyed if code in allowed)
        if not codes[name]:
            raise ValueError(f"the key and c[{_shown(name)}] have no code in common: the data query selects nothing")
    return codes


def _dimension(name: str, codes: Sequence[str], dataset: DatasetStructure) -> DimensionSelection:
    known = codes_of(dataset).get(name) or {}
    return DimensionSelection(name, tuple(Term(code, known.get(code) or None) for code in codes))
