"""What the schemas for editors say of files, with the values that editors read: those of YAML 1.2."""

import json
import re
from functools import lru_cache
from pathlib import Path

import jsonschema_rs
import yaml

from pytest_queryeval.engines import ENGINES
from pytest_queryeval.languages import KINDS
from pytest_queryeval.metrics import METRICS
from pytest_queryeval.predictors import PREDICTORS
from pytest_queryeval.suites import is_suite_file
from pytest_queryeval.suites.editor_schema import (
    editor_schema,
)  # white box: whatever secrets other tests have registered

REGISTRIES = (ENGINES, KINDS, METRICS, PREDICTORS)
WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


def value_of(node):
    """The value of a node by the core schema of YAML 1.2; infinity and NaN, which JSON has not, as texts."""
    if isinstance(node, yaml.SequenceNode):
        return [value_of(item) for item in node.value]
    if isinstance(node, yaml.MappingNode):
        return {key.value: value_of(item) for key, item in node.value}
    if node.style:
        return node.value
    if node.value in WORDS:
        return WORDS[node.value]
    if INTEGER.fullmatch(node.value):
        return int(node.value, 0 if node.value[:2] in ("0o", "0x") else 10)
    return float(node.value) if FLOAT.fullmatch(node.value) else node.value


def read_yaml(text):
    """The value of a text; an empty mapping if there is none."""
    root = yaml.compose(text, Loader=yaml.CBaseLoader)
    return value_of(root) if root else {}


def objections(path):
    """What an editor says of a suite or of a folder's settings."""
    name = "suite" if is_suite_file(path) else "settings"
    return [
        f"{'/'.join(map(str, error.instance_path))}: {error.message}"
        for error in validator(name).iter_errors(read_yaml(Path(path).read_text(encoding="utf-8")))
    ]


def schema(name):
    """The schema of suites or settings, with what is registered now."""
    return json.loads(json.dumps(editor_schema(name)))


def validator(name):
    members = tuple(
        (member, getattr(registry[member], "settings", None) is None)
        for registry in REGISTRIES
        for member in registry.names()
    )
    return _validator(name, members)


@lru_cache(maxsize=16)
def _validator(name, _):
    return jsonschema_rs.Draft7Validator(schema(name))
