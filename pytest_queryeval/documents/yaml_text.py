"""Writer of YAML text that is read back equal."""

from __future__ import annotations

import re
from typing import Any

import yaml

# The writer of libyaml is several times as fast as the one in Python, which is used where PyYAML was built without it.
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_BLOCK = re.compile(r"[^\x00-\x09\x0b-\x1f\x7f-\xa0\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]*")
_LINE_CHARACTERS = 2**31 - 1  # no line is broken: a text that is wrapped is refused as a query


class _Dumper(_DUMPER):  # type: ignore[misc]  # chosen above
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: Any, text: str) -> Any:
    """Return lines as a block, and anything that could be read as a number or a comment in quotes."""
    style: str | None = '"'
    if "\n" in text and _BLOCK.fullmatch(text):
        style = "|"
    elif text[:1].isalpha() and "--" not in text and "#" not in text:
        style = None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def to_yaml(value: Any) -> str:
    """Return a JSON value as YAML; mappings keep their order."""
    text: str = yaml.dump(value, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=_LINE_CHARACTERS)
    return text
