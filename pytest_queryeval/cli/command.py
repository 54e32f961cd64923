"""A command of the console script."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command of the console script, whose module is imported when the command is used."""

    module: str
    """Its full name; it has `EXAMPLE`, `add_arguments(parser)` and `run(arguments)`, which returns a `Result`."""
    summary: str
    """Its line in the list of all commands."""
