"""What bodies of answers that are no answers say to people.

Also imported by child processes.
"""

from __future__ import annotations

import re

from pytest_queryeval.text.redaction import redact

ERROR_BYTES = 4_000
_TAGS = re.compile(r"<(?:script|style)\b.*?</(?:script|style)>|<[^<>]*>", re.DOTALL | re.IGNORECASE)


def message(content_type: str, body: bytes, most: int = ERROR_BYTES) -> str:
    """Return what the first `most` bytes of an error's body say, as one text without markup.

    Servers repeat what they were sent: secrets are taken out before anything is cut, or a part of one would stay.
    """
    text = redact(body[: 2 * ERROR_BYTES].decode("utf-8", "replace"))[:most]
    if "html" in content_type:
        text = _TAGS.sub(" ", text)
    text = " ".join(text.split())
    return f": {text}" if text else ""
