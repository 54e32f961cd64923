"""report.json: the report as it is."""

from __future__ import annotations

import json

from pytest_queryeval.core.report import Report


def render_json(report: Report) -> bytes:
    """One JSON document, a line a case, so that two reports can be compared with line tools; never NaN."""
    head = {name: value for name, value in report.items() if name != "cases"}
    opening = json.dumps(head, ensure_ascii=False, allow_nan=False, indent=1).removesuffix("\n}")
    cases = ",\n".join(json.dumps(case, ensure_ascii=False, allow_nan=False) for case in report["cases"])
    # A lone surrogate, as in a path that is no UTF-8, is written as the escape that JSON has for it.
    return f'{opening},\n "cases": [\n{cases}\n]}}\n'.encode(errors="backslashreplace")
