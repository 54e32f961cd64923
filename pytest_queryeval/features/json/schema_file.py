"""Reads a JSON Schema with all files that it refers to, and checks it for errors."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from posixpath import normpath
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

from jsonschema.exceptions import best_match
from jsonschema.validators import Draft202012Validator, validator_for
from jsonschema_specifications import REGISTRY
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import specification_with

from pytest_queryeval.core.errors import CaseError, did_you_mean
from pytest_queryeval.core.json_value import JsonSchema, JsonValue
from pytest_queryeval.documents.document import File, file_at, read_json
from pytest_queryeval.documents.values import json_value
from pytest_queryeval.documents.yaml_nodes import read_yaml
from pytest_queryeval.features.json.difference import path_text
from pytest_queryeval.features.json.schema_child import TooDeep, deep_stack, with_short_repr

DRAFTS = sorted(uri for uri in REGISTRY if uri.endswith("/schema"))
# The keywords of all drafts: those that an answer can break, and all.
RULES = frozenset(keyword for uri in DRAFTS for keyword in validator_for({"$schema": uri}).VALIDATORS)
KEYWORDS = RULES | {
    *("$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$comment", "$defs"),
    *("definitions", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"),
    *("contentEncoding", "contentMediaType", "contentSchema", "then", "else", "minContains", "maxContains"),
}
TYPES = ("array", "boolean", "integer", "null", "number", "object", "string", "any")
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
# Keywords whose schemas apply to the same value: a cycle of references through them would never end.
SAME_VALUE = ("not", "if", "then", "else")
SAME_VALUE_LISTS = ("allOf", "anyOf", "oneOf")
SAME_VALUE_BY_KEY = ("dependentSchemas", "dependencies")


def read_schema(file: File) -> JsonSchema:
    """Return the schema in a file with the files that it refers to, all below its folder; nothing is fetched.

    Raise `CaseError` in these cases:

    - a file is neither JSON nor YAML, or not a schema of its draft (2020-12 by default)
    - a file has another draft than the first
    - a reference has no target, or leads back to itself
    - any answer would satisfy the schema, because it is no schema
    """
    document = _read_document(file)
    if problem := _problem_of_wrapper(document):
        raise file.problem(problem)
    try:
        with deep_stack():
            resources = _Links(file, document).resources
    except TooDeep as error:
        raise file.problem(str(error)) from error
    return JsonSchema(file.shown, document, resources)


def _read_document(file: File) -> JsonValue:
    if file.path.suffix.lower() not in (".yaml", ".yml"):
        return json_value(read_json(file))
    document = read_yaml(file)
    for problem in document.problems:
        raise problem
    return None if document.root is None else json_value(document.root)


def _problem_of_wrapper(document: JsonValue) -> str:
    """Return why an object is no schema, such as one with a schema under another key; empty if it may be one."""
    if not isinstance(document, dict) or not document or _is_schema(document):
        return ""
    others = [key for key in document if key not in KEYWORDS]
    if not others:  # a title alone, or a wrong type, of which the draft complains
        return ""
    path = _path_of_schema(document)
    hint = (
        f": did you mean what is under `{'.'.join(path)}`?" if path else ': write a schema, such as {"type": "object"}'
    )
    return f"no key of it is a rule of JSON Schema, so any answer would do ({', '.join(others)}){hint}"


def _is_schema(document: Mapping[str, JsonValue]) -> bool:
    """Return whether an object has a keyword that limits answers; `type` counts only with one of JSON's types."""
    return any(
        key in RULES and (key != "type" or value in TYPES or isinstance(value, list)) for key, value in document.items()
    )


def _path_of_schema(document: Mapping[str, JsonValue]) -> tuple[str, ...]:
    for key, value in document.items():
        if isinstance(value, dict) and key not in KEYWORDS:
            path = () if _is_schema(value) else _path_of_schema(value)
            if path or _is_schema(value):
                return (key, *path)
    return ()


class _OutsideFolder(Exception):  # noqa: N818 - it becomes an error with its reference
    """The error of a URI that does not lead to a file below the folder of the schema."""


class _Reference(NamedTuple):
    keyword: str
    text: str
    schema: int
    resolver: Any
    file: File


class _Links:
    """Follows all references of a schema; `resources` are the referenced documents by their URIs.

    Raise `CaseError` for a faulty document, a reference without target, or references that lead back to themselves.
    """

    def __init__(self, file: File, document: JsonValue) -> None:
        self.resources: dict[str, JsonValue] = {}
        self._draft = _check_draft(document, file, Draft202012Validator)
        self._draft_name = self._draft.ID_OF(self._draft.META_SCHEMA)
        self._specification = specification_with(self._draft_name)
        self._file = file
        self._checked_ids: set[int] = set()
        self._same_value: dict[int, list[int]] = {}
        self._references: list[_Reference] = []
        registry: Registry[Any] = Registry(retrieve=self._retrieve)  # type: ignore[call-arg]
        self._registry = REGISTRY.combine(registry)
        root = self._specification.create_resource(document)
        # For a schema with an id, such as https://example.com/a.json, the files next to it have URIs of that site.
        self._base = urljoin(root.id() or "", "x")[:-1]
        self._walk(root, self._registry.resolver_with_root(root), file)
        for reference in self._references:  # the list grows meanwhile
            target = _reference_target(reference)
            if id(target.contents) not in self._checked_ids:
                _check_draft(target.contents, reference.file, self._draft)
                self._walk(self._specification.create_resource(target.contents), target.resolver, reference.file)
            self._same_value[reference.schema].append(id(target.contents))
        try:
            TopologicalSorter(self._same_value).prepare()
        except CycleError as error:
            circle = set(error.args[1])
            reference = next(reference for reference in self._references if reference.schema in circle)
            problem = f"`{reference.keyword}` '{reference.text}' leads back to itself without end"
            raise reference.file.problem(problem) from error

    def _walk(self, resource: Resource[Any], resolver: Any, file: File) -> None:
        """Check a schema and all schemas within it, and collect their references; raise `CaseError` for a fault."""
        pending_schemas = [(resource, resolver)]
        while pending_schemas:
            resource, resolver = pending_schemas.pop()
            schema = resource.contents
            if not isinstance(schema, Mapping) or id(schema) in self._checked_ids:
                continue
            self._checked_ids.add(id(schema))
            # One draft for all: jsonschema reads some keywords by the draft of the schema with the reference.
            draft_uri = schema.get("$schema", self._draft_name)
            if str(draft_uri).rstrip("#") != self._draft_name.rstrip("#"):
                raise file.problem(f"$schema '{draft_uri}' is not that of {self._file.shown}, '{self._draft_name}'")
            _check_patterns(schema, file)
            self._same_value[id(schema)] = [id(part) for part in _for_same_value(schema)]
            for keyword in REFERENCES:
                if isinstance(text := schema.get(keyword), str):
                    self._references.append(_Reference(keyword, text, id(schema), resolver, file))
            pending_schemas += [(part, resolver.in_subresource(part)) for part in resource.subresources()]

    def _retrieve(self, uri: str) -> Resource[Any]:
        """Return the document that a URI refers to, and read and check its file at first use.

        Raise `_OutsideFolder` for a URI outside the schema's folder.
        """
        if uri not in self.resources:
            reference = urlsplit(uri.removeprefix(self._base))
            path = normpath(unquote(reference.path))
            if reference.scheme or reference.netloc or path.startswith(("/", "..")) or not uri.startswith(self._base):
                raise _OutsideFolder(uri)
            file = file_at(self._file.folder / path)
            self.resources[uri] = document = _read_document(file)
            _check_draft(document, file, self._draft)
            resource = Resource.from_contents(document, self._specification)
            self._walk(resource, self._registry.resolver(uri), file)
        return Resource.from_contents(self.resources[uri], self._specification)


def _check_draft(document: JsonValue, file: File, default: Any) -> Any:
    """Return the validator class of a schema's draft; raise `CaseError` if it is unknown or its rules are broken.

    `default` is used if the schema names no draft.
    """
    if not isinstance(document, dict | bool):
        raise file.problem("a schema is an object, true or false")
    draft_uri = document.get("$schema") if isinstance(document, dict) else None
    if draft_uri is not None and str(draft_uri).rstrip("#") not in DRAFTS:
        raise file.problem(f"unknown $schema '{draft_uri}'{did_you_mean(str(draft_uri), DRAFTS)}")
    draft = validator_for(document, default=default)
    registry: Registry[Any] = Registry()
    error = best_match(draft(draft.META_SCHEMA, registry=registry).iter_errors(with_short_repr(document)))
    if error:
        # Of alternatives, such as a name or a list of names for `type`, the first is the usual one.
        message = (error.context or [error])[0].message
        raise file.problem(f"{path_text(error.absolute_path)}: {message}: correct the schema")
    return draft


def _check_patterns(schema: Mapping[str, JsonValue], file: File) -> None:
    patterns = schema.get("patternProperties", {})
    for pattern in [schema.get("pattern"), *(patterns if isinstance(patterns, Mapping) else ())]:
        try:
            with warnings.catch_warnings(action="ignore"):
                re.compile(pattern if isinstance(pattern, str) else "")
        except (re.error, OverflowError, RecursionError) as error:
            remedy = (
                r"for `\p{L}`, any letter, write `[^\W\d_]`"
                if "\\p{" in str(pattern).lower()
                else r'correct it, or write "\\" before a character that is meant literally'
            )
            raise file.problem(f"the pattern '{pattern}' is invalid in Python: {error}: {remedy}") from error


def _for_same_value(schema: Mapping[str, JsonValue]) -> Iterator[Any]:
    """Yield the schemas within a schema that apply to the same value as the schema itself.

    Keywords unknown to the draft may have any form.
    """
    yield from (schema[key] for key in SAME_VALUE if key in schema)
    for parts in (schema.get(key) for key in SAME_VALUE_LISTS):
        yield from parts if isinstance(parts, list) else ()
    for by_key in (schema.get(key) for key in SAME_VALUE_BY_KEY):
        yield from by_key.values() if isinstance(by_key, dict) else ()


def _reference_target(reference: _Reference) -> Any:
    """Return the target of a reference with the resolver for its own references; raise `CaseError` if there is none."""
    try:
        return reference.resolver.lookup(reference.text)
    except (Unresolvable, ValueError, TypeError, AttributeError) as error:
        cause: BaseException | None = error
        while cause and not isinstance(cause, CaseError | _OutsideFolder):
            cause = cause.__cause__
        if isinstance(cause, CaseError):
            raise cause from None
        reason = "is neither in the schema nor a file below its folder, and nothing is fetched"
        problem = f"`{reference.keyword}` '{reference.text}' {reason if cause else 'leads to nothing'}"
        raise reference.file.problem(problem) from error
