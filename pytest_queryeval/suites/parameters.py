"""`parametrize`: a case for each combination of values, which replace `{name}` in what the case states."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product

from pytest_queryeval.core.errors import did_you_mean
from pytest_queryeval.core.mappings import excluding
from pytest_queryeval.core.shapes import SCALAR, list_shape, shape
from pytest_queryeval.documents.document import Node
from pytest_queryeval.documents.values import entries, items, text

PARAMETRIZE = "parametrize"
MAX_COMBINATIONS = 10_000  # of one case
MAX_LABEL = 40  # characters of a value in an id
NOT_IN_IDS = re.compile(r"[^\w\-.:/]+|::+")
_PLACEHOLDER = re.compile(r"\{([^\W\d]\w*)\}")


@shape({"type": "object", "minProperties": 1, "additionalProperties": {**list_shape(SCALAR), "minItems": 1}})
def read_combination(node: Node) -> tuple[int, tuple[str, ...]]:
    """Return the number of a combination, from 1, and its values as `name=value`.

    `parametrized` makes the node of them.
    """
    number, *values = items(node)
    return int(text(number)), tuple(map(text, values))


def parametrized(case: Node) -> list[Node]:
    """Return a case node for each combination of the parameters, the last parameter varying fastest.

    A case without parameters is returned itself. `{name}` is replaced wherever the case states it: by the value itself
    if it is the whole text, otherwise by the value's text. Raises `CaseError` for parameters that cannot be read or
    occur nowhere, and for combinations with the same id.
    """
    if not isinstance(case.value, dict) or PARAMETRIZE not in case.value:
        return [case]
    at = case.value[PARAMETRIZE]
    parameters = _read_parameters(at)
    stated = excluding(case.value, ("id", PARAMETRIZE))
    found = {key: set(_placeholders(node, parameters)) for key, node in stated.items()}
    placeholders = set[str]().union(*found.values())
    for name in parameters:
        if name not in placeholders:
            near = did_you_mean(name, placeholders - parameters.keys())
            remedy = near or ": write it into the question or the gold, or remove the parameter"
            raise at.problem(f"{{{name}}} occurs nowhere in the case{remedy}")
    to_fill = {key: stated[key] for key, names in found.items() if names & parameters.keys()}
    id_ = case.value.get("id")
    # One that is refused, or missing, is reported as that of any case.
    has_id = id_ is not None and isinstance(id_.value, str) and id_.value and not NOT_IN_IDS.search(id_.value)
    cases: dict[str, Node] = {}
    for combination in product(*parameters.values()):
        labels = dict(zip(parameters, (label for label, _ in combination), strict=True))
        if (of_id := "-".join(labels.values())) in cases:
            raise at.problem(f"two combinations have the id [{of_id}]: write one of their values otherwise")
        values = dict(zip(parameters, (value for _, value in combination), strict=True))
        parts = (str(len(cases) + 1), *(f"{name}={label}" for name, label in labels.items()))
        case_entries = {
            **stated,
            **{key: _filled(node, values) for key, node in to_fill.items()},
            PARAMETRIZE: Node([Node(part, at.line, "quoted", at.file) for part in parts], at.line, "sequence", at.file),
        }
        if id_ is not None:
            generated = Node(f"{id_.value}[{of_id}]", id_.line, "generated", id_.file, "id")
            case_entries["id"] = generated if has_id else id_
        cases[of_id] = Node(case_entries, case.line, "mapping", case.file, case.key)
    return [*cases.values()]


def _read_parameters(at: Node) -> Mapping[str, Sequence[tuple[str, Node]]]:
    """Return the values of each parameter with their labels, which stand for the values in ids; raises `CaseError`."""
    parameters = entries(at)
    if not parameters:
        raise at.problem(f"{PARAMETRIZE} has no parameters: write {{year: [2023, 2024]}}")
    for name, values in parameters.items():
        if not _PLACEHOLDER.fullmatch(f"{{{name}}}"):
            raise values.problem(f"'{name}' cannot be a parameter: a name has letters, digits and _ only")
        if not items(values):
            raise values.problem(f"{name} has no values: add one")
    number = math.prod(len(items(values)) for values in parameters.values())
    if number > MAX_COMBINATIONS:
        problem = f"{PARAMETRIZE} has {number:,} combinations, more than {MAX_COMBINATIONS:,}"
        raise at.problem(f"{problem}: leave out values, or split the case")
    return {name: _labelled(name, items(values)) for name, values in parameters.items()}


def _labelled(name: str, values: Sequence[Node]) -> list[tuple[str, Node]]:
    """Return the values with labels for ids: their text, or the parameter's name and a number.

    A number is used for long texts, and for texts that are alike in ids. Raises `CaseError` for equal values.
    """
    values = [Node("null", value.line, "plain", value.file) if value.empty else value for value in values]
    texts = [(text(value), value.plain) for value in values]
    if twice := next((value for value, times in Counter(texts).items() if times > 1), None):
        raise values[texts.index(twice)].problem(f"{name} has the value '{twice[0]}' twice: remove one")
    labels = [NOT_IN_IDS.sub(" ", text(value)).strip().replace(" ", "-") for value in values]
    times = Counter(labels)
    return [
        (
            label if times[label] == 1 and re.search(r"\w", label) and len(label) <= MAX_LABEL else f"{name}{place}",
            value,
        )
        for place, (label, value) in enumerate(zip(labels, values, strict=True))
    ]


def _placeholders(node: Node, parameters: Collection[str]) -> Iterator[str]:
    """Yield the names in braces within a node; raises `CaseError` for a parameter that YAML reads as a mapping."""
    if isinstance(node.value, str):
        yield from _PLACEHOLDER.findall(node.value)
    elif isinstance(node.value, list):
        for item in node.value:
            yield from _placeholders(item, parameters)
    else:
        for name, value in node.value.items():
            if name in parameters and value.plain and not value.value:
                raise node.problem(f'without quotes {{{name}}} is a mapping: write "{{{name}}}"')
            yield from _PLACEHOLDER.findall(name)
            yield from _placeholders(value, parameters)


def _filled(node: Node, values: Mapping[str, Node]) -> Node:
    """Return a copy of a node with values instead of `{name}`; raises `CaseError` if two keys become the same."""
    content, form = node.value, node.form
    if isinstance(content, list):
        content = [_filled(item, values) for item in content]
    elif isinstance(content, dict):
        content = {_filled_text(name, values): _filled(item, values) for name, item in content.items()}
        if len(content) < len(node.value):
            raise node.problem(f"{node.key}: two keys are the same once the values are in them")
    elif "{" not in content:
        return node
    elif (whole := _PLACEHOLDER.fullmatch(content)) and whole[1] in values:
        content, form = values[whole[1]].value, values[whole[1]].form
    else:
        content = _filled_text(content, values)
    return Node(content, node.line, form, node.file, node.key, node.column)


def _filled_text(written: str, values: Mapping[str, Node]) -> str:
    return _PLACEHOLDER.sub(lambda match: str(values[match[1]].value) if match[1] in values else match[0], written)
