"""Which rules of a JSON Schema an answer breaks: for a suite's own answers, and in a child process for all others.

Loaded by `sandbox/host_child.py`. Patterns can run for ever
and references can multiply, so answers that nobody vouches for are checked where that can be stopped. Nothing is
fetched: a schema comes with all documents that it refers to.
"""

from __future__ import annotations

import marshal
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Any

from jsonschema.exceptions import ValidationError
from jsonschema.validators import Draft202012Validator, extend, validator_for
from referencing import Registry, Resource
from referencing.jsonschema import specification_with

from pytest_queryeval.sandbox import driver
from pytest_queryeval.sandbox.driver import Answer, Verdict

VIOLATIONS = 10
SEARCHED = 1_000  # violations among which the first ones are chosen
SHOWN_CHARACTERS = 60  # of a value
REASON_CHARACTERS = 300
KEY_CHARACTERS = 300
SCHEMAS = 16
FRAMES = (
    10_000  # 100 levels of an answer, each through 100 steps of a schema; the stack of a thread holds twice as many
)
LARGE = 10**SHOWN_CHARACTERS


class TooDeep(Exception):  # noqa: N818 - it is an outcome
    """The answer, or the schema's references, go deeper than can be followed."""


class _Text(str):
    """Text of any length whose `repr` is short."""

    __slots__ = ()

    def __repr__(self) -> str:
        return shown(self)


class _Whole(int):
    """An integer of any size whose `repr` is short."""

    __slots__ = ()

    def __repr__(self) -> str:
        return shown(self)


class _List(list[Any]):
    """A list of any length whose `repr` is short."""

    __slots__ = ()

    def __repr__(self) -> str:
        return shown(self)


class _Object(dict[Any, Any]):
    """An object of any size whose `repr` is short."""

    __slots__ = ()

    def __repr__(self) -> str:
        return shown(self)


def quiet(value: Any) -> Any:
    """A copy of a JSON value that has a short `repr`: jsonschema writes whole values into its messages."""
    match value:
        case str():
            return _Text(value) if len(value) > SHOWN_CHARACTERS else value
        case list():
            return _List(map(quiet, value)) if value else value
        case dict():
            return _Object((quiet(key), quiet(item)) for key, item in value.items()) if value else value
        case int() if abs(value) >= LARGE:
            return _Whole(value)
        case _:
            return value


def shown(value: Any, room: int = SHOWN_CHARACTERS) -> str:
    """The value as Python writes it, cut where it is much longer than `room` characters."""
    match value:
        case str():
            return repr(value[:room] + "…" * (len(value) > room))
        case list():
            return f"[{_listed(value, lambda item, left: shown(item, left), room)}]"
        case dict():
            entries = value.items()
            return f"{{{_listed(entries, lambda entry, left: ': '.join(shown(part, left) for part in entry), room)}}}"
        case int() if abs(value) >= LARGE:
            return f"a number of about {int(value.bit_length() * 0.30103) + 1} digits"
        case _:
            return repr(value)


def _listed(items: Iterable[Any], write: Callable[[Any, int], str], room: int) -> str:
    parts: list[str] = []
    for item in items:
        if room <= 0:
            return ", ".join([*parts, "…"])
        parts.append(write(item, room * 3 // 4))  # less at each level, so that it ends
        room -= len(parts[-1]) + 2
    return ", ".join(parts)


def _multiple_of(validator: Any, divisor: Any, instance: Any, _: Any) -> Iterator[ValidationError]:
    """Exact in decimals, 4.35 is a multiple of 0.01; and numbers beyond a float's range are no error."""
    if validator.is_type(instance, "number") and not _is_multiple(instance, divisor):
        yield ValidationError(f"{instance!r} is not a multiple of {divisor!r}")


def _is_multiple(number: float, divisor: float) -> bool:
    try:
        return _exact(number) % _exact(divisor) == 0
    except ValueError:  # infinite
        return False


def _exact(number: float) -> Fraction:
    return Fraction(number if isinstance(number, int) else repr(number))


def _unique_items(validator: Any, wanted: Any, instance: Any, _: Any) -> Iterator[ValidationError]:
    """In one pass: comparing all pairs of 100,000 objects would take hours."""
    if not wanted or not validator.is_type(instance, "array"):
        return
    first: dict[Any, int] = {}
    for index, item in enumerate(instance):
        earlier = first.setdefault(_hashable(item), index)
        if earlier != index:
            yield ValidationError(f"items {earlier} and {index} are equal: {shown(item)}")
            return


def _hashable(value: Any) -> Any:
    """What is equal for equal JSON values only: 1 is 1.0 and not true."""
    match value:
        case bool():
            return "boolean", value
        case list():
            return "array", tuple(map(_hashable, value))
        case dict():
            return "object", frozenset((key, _hashable(item)) for key, item in value.items())
        case _:
            return value


def _any_of(validator: Any, schemas: Any, instance: Any, _: Any) -> Iterator[ValidationError]:
    """With the first violation of each schema only: all of them may be millions.

    Where one schema alone fits the value itself, and breaks only below it, that is the one that was meant.
    """
    errors = []
    for error in _first_errors(validator, schemas, instance):
        if error is None:
            return
        errors.append(error)
    yield _none_fits(instance, errors)


def _one_of(validator: Any, schemas: Any, instance: Any, _: Any) -> Iterator[ValidationError]:
    """As `_any_of`; where several fit it names two of them by their numbers, from 0 as in paths."""
    errors = list(_first_errors(validator, schemas, instance))
    fitting = [str(number) for number, error in enumerate(errors) if error is None]
    if not fitting:
        yield _none_fits(instance, errors)
    elif len(fitting) > 1:
        yield ValidationError(
            f"{instance!r} fits more than one of the {len(schemas)} schemas: {' and '.join(fitting[:2])}"
        )


def _first_errors(validator: Any, schemas: Any, instance: Any) -> Iterator[Any]:
    for number, schema in enumerate(schemas):
        yield next(validator.descend(instance, schema, schema_path=number), None)


def _none_fits(instance: Any, errors: list[Any]) -> ValidationError:
    below = [error for error in errors if error.path]
    if len(below) == 1:
        return below[0]  # type: ignore[no-any-return]
    said = dict.fromkeys(f"{_within(error)}{error.message[:REASON_CHARACTERS]}" for error in errors)
    return ValidationError(f"{instance!r} fits none of the {len(errors)} schemas: {', nor: '.join(islice(said, 3))}")


def _within(error: ValidationError) -> str:
    """The place of an inner violation, below that of the outer one."""
    steps = [f"[{step}]" if isinstance(step, int) else f".{step[:KEY_CHARACTERS]}" for step in error.path]
    return f"{''.join(steps)}: " if steps else ""


KEYWORDS = {"anyOf": _any_of, "oneOf": _one_of, "uniqueItems": _unique_items, "multipleOf": _multiple_of}


@lru_cache
def _strengthened(draft: Any) -> Any:
    return extend(  # type: ignore[no-untyped-call]
        draft, {name: check for name, check in KEYWORDS.items() if name in draft.VALIDATORS}
    )


def compiled(document: Any, others: Mapping[str, Any]) -> Any:
    """A validator for a schema of any draft (2020-12 where it names none).

    `others` are the documents that it refers to, by their URIs, of the same draft.
    """
    draft: Any = validator_for(document, default=Draft202012Validator)
    rules = specification_with(draft.ID_OF(draft.META_SCHEMA))
    found = [(uri, Resource.from_contents(_prepared(other), rules)) for uri, other in others.items()]
    # A registry of our own: the default one would fetch what it does not know.
    registry: Registry[Any] = Registry().with_resources(found)
    return _strengthened(draft)(_prepared(document), registry=registry)


def _prepared(document: Any) -> Any:
    """The schema without the name of its draft, by which jsonschema would go back to keywords of its own."""
    copy = quiet(document)
    if isinstance(copy, dict):
        copy.pop("$schema", None)
    return copy


@contextmanager
def deep_stack() -> Iterator[None]:
    """Room for deep answers: each level takes several calls, and the usual 1,000 are soon used up."""
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(max(usual, FRAMES))
    try:
        yield
    except RecursionError as error:
        raise TooDeep("nested too deeply to be checked") from error
    except BaseException as error:
        # A library in Rust, called where no call is left, panics, which is no Exception.
        if type(error).__name__ != "PanicException":
            raise
        raise TooDeep("nested too deeply to be checked") from None
    finally:
        sys.setrecursionlimit(usual)


def violations(validator: Any, answer: Any) -> list[tuple[tuple[str | int, ...], str]]:
    """The first violations by their path, at most ten: the steps to the place, and the reason, not yet printable.

    Raises `TooDeep`, and jsonschema's errors where the schema cannot be used.
    """
    with deep_stack():
        errors = islice(validator.iter_errors(quiet(answer)), SEARCHED)
        found = [(_steps(error), error.message[:REASON_CHARACTERS]) for error in errors]
    return sorted(found, key=lambda violation: [(isinstance(step, str), step) for step in violation[0]])[:VIOLATIONS]


def _steps(error: ValidationError) -> tuple[str | int, ...]:
    return tuple(step if isinstance(step, int) else step[:KEY_CHARACTERS] for step in error.path)


class Driver(driver.Driver):
    """Keeps the last schemas compiled; `settings` of a request hold `schema` and `answer`, marshalled.

    The schema is its document and a mapping of the documents that it refers to.
    """

    def __init__(self) -> None:
        self._compiled: OrderedDict[bytes, Any] = OrderedDict()

    def run(self, settings: dict[str, Any], query: str, timeout: float) -> Answer:
        """Check the answer; a row a violation. Raises like `violations`."""
        validator = self._validator(settings["schema"])
        answer = marshal.loads(settings["answer"])  # noqa: S302 - from our own parent
        rows = iter(violations(validator, answer))
        return ("steps", "reason"), lambda count: list(islice(rows, count))

    def classify(self, error: Exception) -> Verdict:
        """Whose fault it is, and of what kind: loading has checked the schema, so hardly anything is left."""
        if isinstance(error, TooDeep):
            return "failure", "invalid", str(error)
        return "fault", f"{type(error).__name__}: {error}"

    def _validator(self, packed: bytes) -> Any:
        if packed not in self._compiled:
            self._compiled[packed] = compiled(*marshal.loads(packed))  # noqa: S302 - from our own parent
        self._compiled.move_to_end(packed)
        if len(self._compiled) > SCHEMAS:
            self._compiled.popitem(last=False)
        return self._compiled[packed]
