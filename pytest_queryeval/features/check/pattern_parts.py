"""The triple patterns of a SPARQL query as queries of their own, which show where an endpoint loses an answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pytest_queryeval.languages.sparql.tree import Triple, Writer
from pytest_queryeval.languages.sparql.tree_reader import UnreadableError, read_tree


@dataclass(frozen=True, slots=True)
class PatternPart:
    """A triple pattern that every solution of a query has."""

    text: str
    query: str
    """Asks for a solution of the pattern."""
    shorter: str
    """The pattern without steps of its path that may be left out, whose solutions are among its own; may be empty."""
    shorter_query: str


def pattern_parts(query: str, prefixes: Mapping[str, str]) -> Iterator[PatternPart]:
    """Yield the required triple patterns of a query; none for one that cannot be read."""
    try:
        tree = read_tree(query, prefixes)
    except UnreadableError:
        return
    writer = Writer({**tree.prefixes, **prefixes, **tree.prefixes})
    dataset = "".join(f"{part} " for part in tree.tree.dataset)
    for pattern in tree.tree.where.elements if tree.tree.where else ():
        if isinstance(pattern, Triple):
            shorter = replace(pattern, path=_without_optional_steps(pattern.path))
            is_shorter = len(shorter.path) < len(pattern.path)
            yield PatternPart(
                writer.line(pattern),
                f"ASK {dataset}{{ {_written(pattern)} }}",
                writer.line(shorter) if is_shorter else "",
                f"ASK {dataset}{{ {_written(shorter)} }}" if is_shorter else "",
            )


def _written(pattern: Triple) -> str:
    return Writer({}).line(pattern)


def _without_optional_steps(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return a path without its steps with `*` or `?`; as it is where it has parentheses, `|`, or no other step."""
    if not {"(", "|", "!", "^"}.isdisjoint(path):
        return path
    steps = "".join(f" {part} " for part in path).split(" / ")
    required = [step.split() for step in steps if step.split()[-1] not in ("*", "?")]
    parts = [part for number, step in enumerate(required) for part in (("/", *step) if number else step)]
    return tuple(parts) or path
