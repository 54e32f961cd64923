"""Statements that no model should write, by engine and by the kind of failure in which they end: `hostile/*.yaml`.

`schema` makes the tables. `commands` and `guarded` are unsafe whether a source is only read or may be changed;
commands also behind a statement that is allowed. `reading` and `writing` have those for the one and for the other.
`«9*x»` is a text nine times, `«name»` one of `TEXTS` or of the `texts` of a file. `{folder}` and the like are places
that a test fills.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import yaml

Failures: TypeAlias = Mapping[str, Sequence[str]]
_MARK = re.compile(r"«(?:(\d+)\*)?(.+?)»", re.DOTALL)
TEXTS = {
    "cross": " ".join(f"?a{n} ?b{n} ?c{n} ." for n in range(8)),
    "doubling": ", ".join(f"c{n} as (select a.x from c{n - 1} a, c{n - 1} b)" for n in range(1, 26)),
    "growth": " ".join(f"BIND(CONCAT(?t{n}, ?t{n}, ?t{n}, ?t{n}) AS ?t{n + 1})" for n in range(30)),
    "replaced": "REPLACE(" * 6 + "?t" + ', ".", "$0$0$0$0$0$0$0$0")' * 6,
    "twenty": ", ".join(f"concerts c{n}" for n in range(20)),
}


@cache
def statements(engine: str) -> dict[str, Any]:
    """All statements for an engine, as they are written to it."""
    sections = yaml.safe_load((Path(__file__).parent / "hostile" / f"{engine}.yaml").read_text(encoding="utf-8"))
    texts = TEXTS | sections.pop("texts", {})

    def written(match: re.Match[str]) -> str:
        return match[2] * int(match[1]) if match[1] else texts[match[2]]

    def filled(section: Any) -> Any:
        if isinstance(section, dict):
            return {kinds: filled(queries) for kinds, queries in section.items()}
        return _MARK.sub(written, section) if isinstance(section, str) else [filled(query) for query in section]

    return filled(sections)


def hostile(engine: str, section: str = "reading", allowed: str = "select 1") -> Failures:
    """The statements for sources that are read or written, by kinds of failure; `allowed` is one that is.

    Of commands that only read, some are no statements of the database.
    """
    of_engine = statements(engine)
    commands = of_engine.get("commands", [])
    hidden = [f"{allowed};\n-- ;\n{command} /* ; */;;" for command in commands]
    kinds = "unsafe invalid" if section == "reading" else "unsafe"
    shared = [*of_engine[section].get(kinds, []), *commands, *hidden, *of_engine.get("guarded", [])]
    return {**of_engine[section], kinds: shared} if shared else of_engine[section]
