"""What the reader of trees makes of a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

from pytest_queryeval.languages.sql.view import View

MAX_TEXT = 500  # characters


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A query as a view, for its components, and clause by clause as texts: two queries match iff all texts are equal.

    `outputs` are the texts of its columns by their names; None where `*` hides some. `broken` says what is wrong with a
    text of which only a part could be read. The whole query has its `features`, and `common_queries` is the number of
    queries in its WITH.
    """

    view: View
    clauses: Mapping[str, tuple[str, ...]]
    outputs: Mapping[str, str] | None = None
    broken: str = ""
    features: frozenset[str] = frozenset()
    common_queries: int = 0

    @cached_property
    def text(self) -> str:
        """Return the whole query as one text."""
        return short("; ".join(f"{name} {', '.join(texts)}" for name, texts in self.clauses.items() if texts))


def short(text: str) -> str:
    """Return the text, or a digest of a long one, as texts that are repeated within others could grow without end."""
    if len(text) <= MAX_TEXT:
        return text
    return blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()
