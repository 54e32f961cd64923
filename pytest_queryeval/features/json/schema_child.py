"""Finds the rules of a JSON Schema that an answer breaks: here for a suite's own answers, else in a child process.

Loaded by `sandbox/host_child.py`. Patterns can run forever and references can multiply, so untrusted answers are
checked in a process that can be stopped. Nothing is fetched: a schema comes with all documents that it refers to.
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
from pytest_queryeval.sandbox.driver import Answer, Settings, Verdict, make_answer
from pytest_queryeval.text.formatting import truncate

MAX_VIOLATIONS = 10
MAX_SEARCHED = 1_000  # violations, of which the first ones are reported
MAX_SHOWN = 60  # characters of a value
MAX_REASON = 300  # characters
MAX_KEY = 300  # characters
MAX_SCHEMAS = 16  # that are kept compiled
MAX_FRAMES = 10_000  # 100 levels of an answer, each through 100 steps of a schema; a stack has room for twice as many
MIN_LARGE = 10**MAX_SHOWN
JSON_WORDS = {"None": "null", "True": "true", "False": "false"}


class TooDeep(Exception):  # noqa: N818 - it is an outcome
    """The error of an answer, or references of a schema, that are nested too deeply to be checked."""


class _ShortRepr:
    """Base of values of any size with a short `repr`, because jsonschema writes whole values into its messages."""

    __slots__ = ()

    def __repr__(self) -> str:
        return short_repr(self)


class _Text(_ShortRepr, str):
    __slots__ = ()


class _Integer(_ShortRepr, int):
    __slots__ = ()


class _List(_ShortRepr, list[Any]):
    __slots__ = ()


class _Object(_ShortRepr, dict[Any, Any]):
    __slots__ = ()


def with_short_repr(value: Any) -> Any:
    """Return a copy of a JSON value in which long texts, large numbers, lists and objects have a short `repr`."""
    match value:
        case str():
            return _Text(value) if len(value) > MAX_SHOWN else value
        case list():
            return _List(map(with_short_repr, value)) if value else value
        case dict():
            return (
                _Object((with_short_repr(key), with_short_repr(item)) for key, item in value.items())
                if value
                else value
            )
        case int() if abs(value) >= MIN_LARGE:
            return _Integer(value)
        case _:
            return value


def short_repr(value: Any, room: int = MAX_SHOWN) -> str:
    """Return the `repr` of a value, truncated if it is much longer than `room` characters."""
    match value:
        case str():
            return repr(truncate(value, room + 1))
        case list():
            return f"[{_join_reprs(value, short_repr, room)}]"
        case dict():
            entries = value.items()
            pairs = _join_reprs(entries, lambda entry, room: ": ".join(short_repr(part, room) for part in entry), room)
            return f"{{{pairs}}}"
        case int() if abs(value) >= MIN_LARGE:
            return f"a number of about {int(value.bit_length() * 0.30103) + 1} digits"
        case _:
            return repr(value)


def _join_reprs(items: Iterable[Any], write: Callable[[Any, int], str], room: int) -> str:
    parts: list[str] = []
    for item in items:
        if room <= 0:
            return ", ".join([*parts, "…"])
        parts.append(write(item, room * 3 // 4))  # less at each level, so that recursion ends
        room -= len(parts[-1]) + 2
    return ", ".join(parts)


def _multiple_of(validator: Any, divisor: Any, instance: Any, _: Any) -> Iterator[ValidationError]:
    """Yield a violation unless a number is an exact decimal multiple: 4.35 is a multiple of 0.01.

    Numbers beyond floats are allowed. This replaces jsonschema's check of `multipleOf`.
    """
    if not validator.is_type(instance, "number"):
        return
    try:
        number, unit = (Fraction(part if isinstance(part, int) else repr(part)) for part in (instance, divisor))
        is_multiple = number % unit == 0
    except ValueError:  # infinite
        is_multiple = False
    if not is_multiple:
        yield ValidationError(f"{instance!r} is not a multiple of {divisor!r}")


def _unique_items(validator: Any, must_be_unique: Any, instance: Any, _: Any) -> Iterator[ValidationError]:
    """Yield a violation for the first repeated item of an array, found in one pass.

    This replaces jsonschema's check of `uniqueItems`, which compares all pairs: 100,000 objects would take hours.
    """
    if not must_be_unique or not validator.is_type(instance, "array"):
        return
    first_indexes: dict[Any, int] = {}
    for index, item in enumerate(instance):
        first_index = first_indexes.setdefault(_hash_key(item), index)
        if first_index != index:
            yield ValidationError(f"items {first_index} and {index} are equal: {short_repr(item)}")
            return


def _hash_key(value: Any) -> Any:
    """Return a hashable key that is equal only for equal JSON values: 1 equals 1.0 and not true."""
    match value:
        case bool():
            return "boolean", value
        case list():
            return "array", tuple(map(_hash_key, value))
        case dict():
            return "object", frozenset((key, _hash_key(item)) for key, item in value.items())
        case _:
            return value


def _any_of(validator: Any, schemas: Any, instance: Any, _: Any) -> Iterator[ValidationError]:
    """Yield a violation if a value fits none of the schemas of `anyOf`; only the first violation of each is found.

    In all there may be millions. If only one schema fits the value itself and is broken below it, its violation is the
    reason.
    """
    errors = []
    for error in _first_errors(validator, schemas, instance):
        if error is None:
            return
        errors.append(error)
    yield _none_fits(instance, errors)


def _one_of(validator: Any, schemas: Any, instance: Any, _: Any) -> Iterator[ValidationError]:
    """Yield a violation if a value fits none of the schemas of `oneOf`, or more than one.

    If several fit, the message names two of them by their numbers from 0.
    """
    errors = list(_first_errors(validator, schemas, instance))
    fitting_numbers = [str(number) for number, error in enumerate(errors) if error is None]
    if not fitting_numbers:
        yield _none_fits(instance, errors)
    elif len(fitting_numbers) > 1:
        yield ValidationError(
            f"{instance!r} fits more than one of the {len(schemas)} schemas: {' and '.join(fitting_numbers[:2])}"
        )


def _first_errors(validator: Any, schemas: Any, instance: Any) -> Iterator[Any]:
    for number, schema in enumerate(schemas):
        yield next(validator.descend(instance, schema, schema_path=number), None)


def _message(error: ValidationError) -> str:
    """Return the message of a violation, truncated, with a value at its start in JSON's words."""
    value, blank, rest = error.message.partition(" ")
    return truncate(f"{JSON_WORDS.get(value, value)}{blank}{rest}", MAX_REASON)


def _none_fits(instance: Any, errors: list[Any]) -> ValidationError:
    errors_below = [error for error in errors if error.path]
    if len(errors_below) == 1:
        return errors_below[0]  # type: ignore[no-any-return]
    reasons: dict[str, None] = {}
    for error in errors:
        # The place of the inner violation, below that of the outer one.
        steps = [f"[{step}]" if isinstance(step, int) else f".{truncate(step, MAX_KEY)}" for step in error.path]
        reasons[f"{''.join(steps)}{': ' if steps else ''}{_message(error)}"] = None
    return ValidationError(f"{instance!r} fits none of the {len(errors)} schemas: {', nor: '.join(islice(reasons, 3))}")


KEYWORDS = {"anyOf": _any_of, "oneOf": _one_of, "uniqueItems": _unique_items, "multipleOf": _multiple_of}


@lru_cache
def _with_keywords(draft: Any) -> Any:
    return extend(  # type: ignore[no-untyped-call]
        draft, {name: check for name, check in KEYWORDS.items() if name in draft.VALIDATORS}
    )


def compile_schema(document: Any, referenced_documents: Mapping[str, Any]) -> Any:
    """Return a validator for a schema of any draft (2020-12 if it names none).

    `referenced_documents` are the documents that it refers to by their URIs; all have the same draft.
    """
    draft: Any = validator_for(document, default=Draft202012Validator)
    rules = specification_with(draft.ID_OF(draft.META_SCHEMA))
    resources = [
        (uri, Resource.from_contents(_prepare(content), rules)) for uri, content in referenced_documents.items()
    ]
    # The default registry would fetch unknown documents.
    registry: Registry[Any] = Registry().with_resources(resources)
    return _with_keywords(draft)(_prepare(document), registry=registry)


def _prepare(document: Any) -> Any:
    """Return a copy of a schema without `$schema`, by which jsonschema would choose its own keywords again.

    Its values have a short `repr`.
    """
    copy = with_short_repr(document)
    if isinstance(copy, dict):
        copy.pop("$schema", None)
    return copy


@contextmanager
def deep_stack() -> Iterator[None]:
    """Raise the recursion limit within the block for deep answers; raise `TooDeep` if even that is exceeded."""
    usual_limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(usual_limit, MAX_FRAMES))
    try:
        yield
    except RecursionError as error:
        raise TooDeep("nested too deeply to be checked") from error
    except BaseException as error:
        # A library in Rust that reaches the recursion limit panics, which is not an Exception.
        if type(error).__name__ != "PanicException":
            raise
        raise TooDeep("nested too deeply to be checked") from None
    finally:
        sys.setrecursionlimit(usual_limit)


def violations(validator: Any, answer: Any) -> list[tuple[tuple[str | int, ...], str]]:
    """Return the first violations by path, at most ten: the steps of the path, and the reason, both unescaped.

    Raise `TooDeep` for a deep answer, and jsonschema's errors if the schema cannot be used.
    """
    with deep_stack():
        reasons = []
        for error in islice(validator.iter_errors(with_short_repr(answer)), MAX_SEARCHED):
            steps = tuple(step if isinstance(step, int) else truncate(step, MAX_KEY) for step in error.path)
            reasons.append((steps, _message(error)))
    reasons.sort(key=lambda violation: [(isinstance(step, str), step) for step in violation[0]])
    return reasons[:MAX_VIOLATIONS]


class Driver(driver.Driver):
    """Checks answers against schemas; it caches the most recently used compiled schemas.

    `settings` of a request have `schema` and `answer`, both marshalled. The schema is its document and a mapping of the
    documents that it refers to.
    """

    def __init__(self) -> None:
        self._validators: OrderedDict[bytes, Any] = OrderedDict()

    def run(self, settings: Settings, query: str, timeout: float) -> Answer:
        """Return an answer with a row for each violation; raise the errors of `violations`."""
        packed_schema = settings["schema"]
        if packed_schema not in self._validators:
            self._validators[packed_schema] = compile_schema(*marshal.loads(packed_schema))  # noqa: S302 - from our own parent
        self._validators.move_to_end(packed_schema)
        if len(self._validators) > MAX_SCHEMAS:
            self._validators.popitem(last=False)
        answer = marshal.loads(settings["answer"])  # noqa: S302 - from our own parent
        return make_answer(("steps", "reason"), violations(self._validators[packed_schema], answer))

    def classify(self, error: Exception) -> Verdict:
        """Return the verdict on an error of `run`: a deep answer is the query's fault, anything else the schema's."""
        if isinstance(error, TooDeep):
            return "failure", "invalid", str(error)
        return "fault", f"{type(error).__name__}: {error}"
