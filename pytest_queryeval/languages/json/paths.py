"""The paths of JSON answers: a step from an object is a key, a step from a list an index, or the same for all items."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.languages.json.equality import equal
from pytest_queryeval.languages.json.options import Depth, Lists
from pytest_queryeval.text.plain import shortened, without_middle

# None is the step to any item of a list whose positions do not count.
Step: TypeAlias = "str | int | None"
Values: TypeAlias = Sequence[JsonValue]
PATH_CHARACTERS = 200
_CONTAINERS = (dict, list)
_SHORT = ("\\b", "\\t", "\\n", "\\f", "\\r", "\\'", "\\\\")
_ESCAPES = {code: f"\\u{code:04x}" for code in range(32)}
_ESCAPES |= {ord(character): escape for character, escape in zip("\b\t\n\f\r'\\", _SHORT, strict=True)}


def is_leaf(value: JsonValue) -> bool:
    """Whether no path goes on from the value: a scalar, an empty object or an empty list."""
    return not (value and isinstance(value, _CONTAINERS))


def values_by_path(
    gold: JsonValue, predicted: JsonValue, *, depth: Depth = "top", lists: Lists = "index"
) -> Iterator[tuple[Values, Values]]:
    """What gold and predicted hold on each path below them that one of both has; nothing for one that has it not.

    `depth` top is the first step only. With `lists` set a path may hold several values, else one at most. The order is
    always the same; on the top level it is gold's.
    """
    ahead: list[tuple[Values, Values]] = [((gold,), (predicted,))]
    while ahead:
        for both in _steps(*ahead.pop(), lists):
            yield both
            if depth == "all" and not (all(map(is_leaf, both[0])) and all(map(is_leaf, both[1]))):
                ahead.append(both)


def _steps(gold: Values, predicted: Values, lists: Lists) -> Iterator[tuple[Values, Values]]:
    wanted, found = _next(gold, lists), _next(predicted, lists)
    for step, values in wanted.items():
        yield values, found.get(step, ())
    for step, values in found.items():
        if step not in wanted:
            yield (), values


def _next(values: Values, lists: Lists) -> Mapping[Step, Values]:
    """What the values hold one step on."""
    if len(values) == 1:
        return _step(values[0], lists)
    found: dict[Step, list[JsonValue]] = {}
    for value in values:
        for step, items in _step(value, lists).items():
            found.setdefault(step, []).extend(items)
    return found


def _step(value: JsonValue, lists: Lists) -> Mapping[Step, Values]:
    if isinstance(value, dict):
        return {key: (item,) for key, item in value.items()}
    if not isinstance(value, list) or not value:
        return {}
    return {None: value} if lists == "set" else {index: (item,) for index, item in enumerate(value)}


def leaves(value: JsonValue) -> int:
    """How many paths from the value end in a leaf; one where it is a leaf itself."""
    if isinstance(value, dict):
        return sum(map(leaves, value.values())) if value else 1
    if isinstance(value, list):
        return sum(map(leaves, value)) if value else 1
    return 1


def equal_leaves(gold: JsonValue, predicted: JsonValue) -> int:
    """How many paths end in an equal leaf on both sides; lists by index."""
    if isinstance(gold, dict) and isinstance(predicted, dict) and gold and predicted:
        return sum(equal_leaves(item, predicted[key]) for key, item in gold.items() if key in predicted)
    if isinstance(gold, list) and isinstance(predicted, list) and gold and predicted:
        return sum(map(equal_leaves, gold, predicted))
    # Here one of both is a leaf, or they are an object and a list.
    return equal(gold, predicted)


def path_text(steps: Iterable[str | int]) -> str:
    r"""The path as JSONPath writes it (RFC 9535), keys in quotes where they need them; its middle cut where it is long.

    >>> print(path_text(["query", "a b", 0, "it's"]))
    $.query['a b'][0]['it\'s']
    """
    return without_middle("$" + "".join(map(_step_text, steps)), PATH_CHARACTERS)


def _step_text(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    key = shortened(step, PATH_CHARACTERS)
    return f".{key}" if key.isidentifier() else f"['{key.translate(_ESCAPES)}']"
