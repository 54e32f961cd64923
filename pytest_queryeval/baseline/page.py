"""Blocks as a small page of HTML: static, without script, every text escaped."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_queryeval.baseline.blocks import Block, Foreign, Rows
from pytest_queryeval.errors import ReportError
from pytest_queryeval.visible import visible_line

TEMPLATE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title>
<style>
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 2rem auto; max-width: 72rem; padding: 0 1rem; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { border: 1px solid #8888; padding: .3rem .6rem; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
</style>
</head>
<body>
<h1>{{ title }}</h1>
{% for block in blocks %}
{%- if block is table %}
<div class="wide" role="region" aria-label="table {{ loop.index }}" tabindex="0">
<table>
<thead><tr>{% for cell in block.header %}<th scope="col">{{ cell | shown }}</th>{% endfor %}</tr></thead>
<tbody>
{%- for row in block.rows %}
<tr>{% for cell in row %}<td>{{ cell | shown }}</td>{% endfor %}</tr>
{%- endfor %}
</tbody>
</table>
</div>
{%- else %}
<p>{% for part in block %}{% if part is foreign %}<code>{{ part | shown }}</code>{% else %}{{ part }}{% endif %}\
{% endfor %}</p>
{%- endif %}
{%- endfor %}
</body>
</html>
"""


def page(title: str, blocks: Iterable[Block]) -> bytes:
    """The page; raises `ReportError` where jinja2 is not installed."""
    try:
        from jinja2 import Environment
    except ModuleNotFoundError as error:
        raise ReportError("a page of HTML needs jinja2: pip install 'pytest-queryeval[html]'") from error
    environment = Environment(autoescape=True)
    environment.tests |= {
        "table": lambda block: isinstance(block, Rows),
        "foreign": lambda part: isinstance(part, Foreign),
    }
    environment.filters["shown"] = lambda text: visible_line(text, len(text) + 1)
    made = environment.from_string(TEMPLATE).render(title=title, blocks=list(blocks))
    return f"{made}\n".encode(errors="backslashreplace")
