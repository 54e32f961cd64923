"""Makes a graph: started with the arguments SCRIPT and DATABASE. A problem is one line on stderr, exit status 1."""

from __future__ import annotations

import sys
from pathlib import Path

import ladybug

from queryeval_cypher.tokens import first_line, statements


def main() -> int:
    """Run the statements of the script; return the exit status."""
    script, database = sys.argv[1:]
    place = script
    try:
        text = Path(script).read_text(encoding="utf-8-sig")
        with ladybug.Database(database) as graph, ladybug.Connection(graph) as connection:
            for line, tokens in statements(text):
                place = f"{script}:{line}"
                connection.execute(text[tokens[0].start : tokens[-1].end])
    except (OSError, RuntimeError, ValueError) as error:
        sys.stderr.write(f"{place}: {first_line(error).partition(' (line: ')[0]}\n")  # a line of the statement
        return 1
    return 0
