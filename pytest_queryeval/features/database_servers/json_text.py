"""JSON in the cells of databases, in one form for equal values. Imported by child processes."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

_HAS_FRACTION = re.compile(r"[0-9][.eE]")
_MAX_DIGITS = 10_000


def canonical_json(text: str) -> str:
    r"""Return JSON with sorted keys and numbers without zeros at their end; as it came if Python cannot read it.

    >>> canonical_json('{"b": [1,  null],\n "a": 1.50}')
    '{"a": 1.5, "b": [1, null]}'
    """
    try:
        if _HAS_FRACTION.search(text):
            return _json_text(json.loads(text, parse_float=Decimal))
        return json.dumps(json.loads(text), sort_keys=True, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _json_text(value: Any) -> str:
    """Return a value as JSON text: `json` would round numbers to floats."""
    match value:
        case dict():
            items = (f"{json.dumps(key, ensure_ascii=False)}: {_json_text(value[key])}" for key in sorted(value))
            return f"{{{', '.join(items)}}}"
        case list():
            return f"[{', '.join(map(_json_text, value))}]"
        case Decimal() if not value:
            return "0"
        case Decimal() if abs(value.adjusted()) < _MAX_DIGITS:
            digits = f"{value:f}"
            return digits.rstrip("0").rstrip(".") if "." in digits else digits
        case Decimal():
            return str(value)
    return json.dumps(value, ensure_ascii=False)
