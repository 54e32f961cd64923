"""The commands `merge` and `render`."""

from __future__ import annotations

from pytest_queryeval.cli.command import Command

MERGE = Command(module=f"{__name__}.merge_command", summary="unite the reports of shards, evaluate the gates")
RENDER = Command(module=f"{__name__}.render_command", summary="render a report.json in other formats")
