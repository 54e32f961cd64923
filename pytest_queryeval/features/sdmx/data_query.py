"""Reads SDMX REST data queries as selections.

The syntax is that of https://github.com/sdmx-twg/sdmx-rest: `data/AGENCY,ID,VERSION/KEY` of SDMX 2.1 and
`data/dataflow/AGENCY/ID/VERSION/KEY?c[DIMENSION]=CODE` of SDMX 3.0, alone or after the address of a service.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from itertools import chain
from math import prod
from string import ascii_letters, digits
from typing import TypeAlias
from urllib.parse import unquote

from pytest_queryeval.core.errors import did_you_mean
from pytest_queryeval.core.table import DatasetSelection, DimensionSelection, Selection, Term
from pytest_queryeval.features.sdmx.structure import (
    TIME,
    Datasets,
    DatasetStructure,
    Structure,
    codes_of,
    is_any_version,
)
from pytest_queryeval.text.formatting import one_line

SelectedCodes: TypeAlias = tuple[str, ...] | None  # None for all codes, explicitly or not
MAX_SHOWN = 60  # characters
MAX_NAMES = 30


def key_codes(key: str, dataset: str, dimensions: Sequence[str], *, is_sdmx_3: bool) -> tuple[SelectedCodes, ...]:
    """Return the codes of each dimension that a key selects, None for all; raise `ValueError` if it does not fit.

    Dots separate dimensions, and `+` separates codes of a dimension; an empty part, or `*`, means all codes. A key of
    SDMX 2.1 has a part for each dimension, or is `all`. In SDMX 3.0, parts at the end may be left out, and commas
    separate several keys. Several keys must be all combinations of their codes: `A.X,B.Y` selects two of the four
    series of `A` or `B` and `X` or `Y`, so it is rejected.
    """
    if not key or (key.lower() == "all" and not is_sdmx_3):
        return (None,) * len(dimensions)
    if "," in key and not is_sdmx_3:
        raise ValueError(f"a key of SDMX 2.1 separates codes by `+`, not by `,`: '{one_line(key, MAX_SHOWN)}'")
    keys = key.split(",") if is_sdmx_3 else [key]
    distinct_keys = list(
        dict.fromkeys(_codes_of_parts(single_key, dataset, dimensions, may_be_short=is_sdmx_3) for single_key in keys)
    )
    columns = list(zip(*distinct_keys, strict=True))
    varying_columns = [column for column in columns if len(set(column)) > 1]
    if len(varying_columns) > 1:
        if any(codes is None or len(codes) > 1 for codes in chain.from_iterable(varying_columns)):
            raise ValueError("the keys differ in several dimensions and need one code in each of these: write one key")
        if len(distinct_keys) < prod(len(set(column)) for column in varying_columns):
            raise ValueError("the keys are not all combinations of their codes, so they are not a selection")
    return tuple(
        None if None in column else tuple(dict.fromkeys(chain.from_iterable(codes or () for codes in column)))
        for column in columns
    )


def _codes_of_parts(
    key: str, dataset: str, dimensions: Sequence[str], *, may_be_short: bool
) -> tuple[SelectedCodes, ...]:
    number = key.count(".") + 1
    if number > len(dimensions) or (number < len(dimensions) and not may_be_short):
        names = ", ".join([*dimensions[:MAX_NAMES], *(["…"] if len(dimensions) > MAX_NAMES else [])])
        parts = f"{number:,} part{'s' * (number != 1)}"
        raise ValueError(f"the key has {parts} for the {len(dimensions):,} dimensions of {dataset}: {names}")
    part_codes: list[SelectedCodes] = []
    for part in key.split("."):
        codes = tuple(dict.fromkeys(part.split("+"))) if part else ("*",)
        if "" in codes:
            raise ValueError(f"a code is missing next to a `+` of the key: '{one_line(part, MAX_SHOWN)}'")
        part_codes.append(None if "*" in codes else codes)
    return (*part_codes, *(None,) * (len(dimensions) - number))


MAX_CHARACTERS = 100_000
FORMS = "data/AGENCY,ID,VERSION/KEY or data/dataflow/AGENCY/ID/VERSION/KEY"
_FORBIDDEN = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_CONTEXTS = ("dataflow", "datastructure", "*")
_ANY_AGENCY = ("", "*", "all", "ALL")
# A line break next to a mark of a URL is within the URL.
_LINE_BREAK = re.compile(r"(?<=[/?&=])[ \t]*+\\?\r?\n[ \t]*+(?=\S)|(?<![ \t])[ \t]*+\\?\r?\n[ \t]*+(?=[?&/])")
_WORD = re.compile(r"""[^\s"'`<>(){}|\\^\u00ab\u00bb\u2018-\u201f]+""")
_ADDRESS = re.compile(r"https?://|[dD]ata/")
_IN_PATHS = f"{ascii_letters}{digits}./-"
_QUERY = re.compile(r"(?:\A|/)[dD]ata/[^/]")
_NEXT_CODE = re.compile(r"[ \t]+[A-Z0-9_.+*-]+(?![\w])")
_FILTER_ELSEWHERE = re.compile(r"\bc\[")
_FILTER = re.compile(r"c\[([^\[\]]*)\]")
_OPERATION = re.compile(r"(eq|ne|lt|le|gt|ge|co|nc|sw|ew):(.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Resource:
    """The dataset and the key in the path of a query."""

    agency: str
    """The agency; empty for any agency."""
    id: str
    version: str
    """The version; empty for any version."""
    key: str
    is_sdmx_3: bool


def data_query_in(text: str) -> str:
    """Return the data query in an answer, without quotes, markup, commands and sentences around it.

    If no part looks like a data query, the whole text is returned. Raise `ValueError` if several parts do, or if there
    are filters outside of the query.

    >>> data_query_in("It is `data/ECB,EXR/M.USD..`, for monthly rates.")
    'data/ECB,EXR/M.USD..'
    """
    plain_text = _LINE_BREAK.sub("", unescape(text))
    words = {_without_punctuation(match[0]): match for match in _WORD.finditer(plain_text)}
    queries = [word for word in words if _QUERY.search(word)]
    if len(queries) > 1:
        raise ValueError(f"the text has several data queries: {', '.join(map(_excerpt, queries))}")
    if not queries:
        return text
    match = words[queries[0]]
    if not plain_text[: match.start()].strip() and _NEXT_CODE.match(plain_text, match.end()):
        return text  # a code behind a blank belongs to the query
    if _FILTER_ELSEWHERE.search(unquote(plain_text.replace(match[0], ""))):
        raise ValueError("filters (`c[…]`) stand outside of the URL: write them into it")
    return queries[0]


def _without_punctuation(word: str) -> str:
    """Return a word without punctuation and emphasis around it; a full stop at its end may be a part of its key."""
    address = _ADDRESS.search(word)
    prefix = word[: address.start()] if address else ""
    if address and not address[0].endswith("://"):
        prefix = prefix.rstrip(_IN_PATHS)
    emphasis = prefix[len(prefix.rstrip("*_")) :]
    word = word[len(prefix) :].rstrip(",;:!?")
    if emphasis and word.rstrip(".,;:").endswith(emphasis):
        word = word.rstrip(".,;:").removesuffix(emphasis)
    if word.count("]") > word.count("["):
        word = word.rpartition("]")[0]
    return word.rstrip(".") if "?" in word else word


def is_data_query(text: str) -> bool:
    """Return whether a text looks like a data query: a segment of its path is `data`."""
    return _path_start(_split(text)[0]) > 0


def read_data_query(text: str, structure: Structure | None) -> Selection:
    """Return the selection of a data query; its terms have the names of their codes in the structure.

    Dimensions without codes in the query are left out, and time selects nothing. A filter `c[NAME]` is kept even if
    NAME is not a dimension of the dataset. Raise `ValueError` with one sentence if the text is no data query or there
    is no structure. Also raise it if the structure lacks the dataset, or the key does not fit the dimensions.
    """
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"a data query has {len(text):,} characters, more than {MAX_CHARACTERS:,}")
    path, parameters = _split(text)
    if not (start := _path_start(path)):
        raise ValueError(f"not a data query, which is {FORMS}")
    resource = _read_path([_decode(segment) for segment in path[start:]])
    if structure is None:
        raise ValueError("a data query can be read only with `structure`, which lists the dimensions of its key")
    dataset = _find_dataset(resource, structure)
    filters = dict(_filters(parameters))
    names = [dimension.id for dimension in dataset.dimensions]
    codes = dict(zip(names, key_codes(resource.key, dataset.id, names, is_sdmx_3=resource.is_sdmx_3), strict=True))
    for name, filter_codes in filters.items():
        key_codes_of_dimension = codes.get(name)
        if key_codes_of_dimension is None or filter_codes is None:
            codes[name] = filter_codes if key_codes_of_dimension is None else key_codes_of_dimension
            continue
        filtered_codes = set(filter_codes)
        codes[name] = tuple(code for code in key_codes_of_dimension if code in filtered_codes)
        if not codes[name]:
            raise ValueError(f"the key and c[{_excerpt(name)}] have no code in common: the data query selects nothing")
    codes_by_dimension = codes_of(dataset)
    dimensions = []
    for name, selected_codes in codes.items():
        if selected_codes is not None:
            labels = codes_by_dimension.get(name) or {}
            terms = tuple(Term(code, labels.get(code) or None) for code in selected_codes)
            dimensions.append(DimensionSelection(name, terms))
    version = "" if is_any_version(resource.version) else f"({resource.version})"
    return Selection((DatasetSelection(dataset.id + version, tuple(dimensions)),), by_id=True)


def _split(text: str) -> tuple[Sequence[str], str]:
    """Return the segments of the path and the text of the parameters, both without decoding."""
    path, _, parameters = text.strip().partition("#")[0].partition("?")
    return path.split("/"), parameters


def _path_start(path: Sequence[str]) -> int:
    """Return the index after the last segment `data`; 0 without such a segment."""
    return max((place for place, segment in enumerate(path, start=1) if segment in ("data", "Data")), default=0)


def _decode(text: str) -> str:
    try:
        decoded_text = unquote(text, errors="strict")
    except UnicodeDecodeError as error:
        raise ValueError(f"'{_excerpt(text)}' in the data query is not UTF-8") from error
    if _FORBIDDEN.search(decoded_text):
        raise ValueError(f"a space or a control character in the data query: '{_excerpt(decoded_text)}'")
    return decoded_text


def _excerpt(text: str) -> str:
    return one_line(text, MAX_SHOWN)


def _read_path(path: list[str]) -> _Resource:
    while path and not path[-1]:
        path.pop()
    if not path:
        raise ValueError(f"the data query names no dataset: write {FORMS}")
    if path[0] == "provisionagreement":
        raise ValueError("a data query of a provision agreement names no dataset: query its dataflow")
    is_sdmx_3 = path[0] in _CONTEXTS
    id_parts = path[1:4] if is_sdmx_3 else path[0].split(",")
    key_parts = path[4:] if is_sdmx_3 else path[1:]
    if len(id_parts) == 1 and not is_sdmx_3:
        id_parts = ["", *id_parts]  # in SDMX 2.1 the agency may be left out
    if not 2 <= len(id_parts) <= 3 or len(key_parts) > 2 - is_sdmx_3:
        raise ValueError(f"the path of the data query is not {FORMS}")
    if not id_parts[1] or "*" in id_parts[1] or (is_sdmx_3 and any("," in name for name in id_parts)):
        raise ValueError("the data query names not one dataset: only queries of one can be read")
    agency, id_, version = *id_parts[:2], id_parts[2] if len(id_parts) == 3 else ""
    return _Resource(
        agency="" if agency in _ANY_AGENCY else agency,
        id=id_,
        version=version,
        key=key_parts[0] if key_parts else "",
        is_sdmx_3=is_sdmx_3,
    )


def _find_dataset(resource: _Resource, structure: Structure) -> DatasetStructure:
    datasets = Datasets(structure)
    ids = [f"{resource.agency}:{resource.id}"] if resource.agency else datasets.of_any_agency(resource.id)
    if len(ids) > 1:
        raise ValueError(
            f"several datasets are called '{_excerpt(resource.id)}': name the agency of {', '.join(ids[:10])}"
        )
    dataset = datasets.get(f"{ids[0]}({resource.version})" if resource.version else ids[0]) if ids else None
    if dataset is None:
        dataset_id = ids[0] if ids else resource.id
        names = datasets.ids if ids else {name.partition(":")[2] for name in datasets.ids}
        hint = did_you_mean(dataset_id, names) if len(dataset_id) <= MAX_SHOWN else ""
        raise ValueError(f"no dataset '{_excerpt(dataset_id)}' in the structure{hint}")
    return dataset


def _filters(parameters: str) -> Iterator[tuple[str, SelectedCodes]]:
    """Yield the dimensions in parameters `c[DIMENSION]` with their codes, None for all codes; skip other parameters.

    Raise `ValueError` for a repeated dimension, a missing code, and operators other than `eq`.
    """
    filtered_dimensions = set()
    for parameter in parameters.split("&"):
        name, _, value = parameter.partition("=")
        match = _FILTER.fullmatch(unquote(name))
        if match is None or match[1] == TIME:
            continue
        dimension = _decode(match[1])
        shown_name = _excerpt(dimension)
        if dimension in filtered_dimensions:
            raise ValueError(f"the data query filters '{shown_name}' twice: put the codes into one `c[…]`")
        filtered_dimensions.add(dimension)
        value = _decode(value)
        if "+" in value:
            raise ValueError(f"c[{shown_name}]: no data has two codes at once (`+`): separate codes by `,`")
        codes = []
        for condition in value.split(","):
            operation = _OPERATION.fullmatch(condition)
            if operation and operation[1] != "eq":
                raise ValueError(
                    f"c[{shown_name}]: the operator '{operation[1]}' names no codes: only 'eq' can be read"
                )
            codes.append(operation[2] if operation else condition)
        if "" in codes:
            raise ValueError(f"c[{shown_name}] lacks a code")
        yield dimension, None if "*" in codes else tuple(dict.fromkeys(codes))
