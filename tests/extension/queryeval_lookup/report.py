"""A report as rows of a LaTeX table."""

from collections.abc import Mapping
from typing import Any


def render_tex(report: Mapping[str, Any]) -> bytes:
    rows = [f"{name.replace('_', ' ')} & {measured['mean']} \\\\" for name, measured in report["metrics"].items()]
    return "\n".join([*rows, ""]).encode()
