"""What the reader of trees makes of a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b

from pytest_queryeval.languages.sql.view import EMPTY_VIEW, View

MAX_TEXT = 500  # characters


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A query as a view, for its components, and clause by clause as texts: two queries match iff all texts are equal.

    `outputs` are the texts of its columns by their names; None where `*` hides some. `problem` says why a text could
    not be read as a whole, and `is_unread` is true where nothing of it could.
    """

    view: View = EMPTY_VIEW
    clauses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    outputs: Mapping[str, str] | None = None
    problem: str = ""
    is_unread: bool = False

    @cached_property
    def text(self) -> str:
        """Return the whole query as one text."""
        return short("; ".join(f"{name} {', '.join(texts)}" for name, texts in self.clauses.items() if texts))


def short(text: str) -> str:
    """Return the text, or a digest of a long one, as texts that are repeated within others could grow without end."""
    if len(text) <= MAX_TEXT:
        return text
    return blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()
