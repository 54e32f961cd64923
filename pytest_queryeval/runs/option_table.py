"""The options of runs, each declared once, for pytest, its ini files and `queryeval evaluate`.

pytest imports this module at every start, so it imports the standard library only.
"""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pytest_queryeval.core.cause import CauseMode
    from pytest_queryeval.results.gates import GateMode

_GATES = "complete: evaluate gates if all of their cases ran; selection: on those that ran; off: as in a shard"
_EXCEL_LAYOUT = (
    "sheets of published evaluators in workbooks: published for always, plain for never, requested (the default) if "
    "the run has their metrics"
)


def whole_number(text: str) -> int:
    """Return the integer in the text of an option.

    Raises `ArgumentTypeError`, whose text argparse and pytest show with the option.
    """
    try:
        return int(text)
    except ValueError:
        raise ArgumentTypeError(f"expected a whole number, found '{text}'") from None


class Option(NamedTuple):
    """An option of runs: `--NAME` of `queryeval evaluate`, `--queryeval-NAME` of pytest, `queryeval_NAME` in ini files.

    On command lines, hyphens replace the underscores of NAME.
    """

    name: str
    help: str
    metavar: str = ""
    """The placeholder of the value in usage lines; empty for an option with choices, which are listed there."""
    type: type[str | int | bool | list[str]] = str
    """The type of the value: a non-empty text, a whole number from 1, the texts of a repeatable option, or a flag."""
    choices: Sequence[str] = ()
    """The allowed values; empty if every value of the type is allowed."""
    synonyms: Mapping[str, str] = {}
    """Other words that pytest accepts, and the choices that they stand for."""
    default: str | None = None
    setting: str = ""
    """The description of the setting in ini files; empty for an option without one, as those with numbers are."""
    is_setting_only: bool = False
    """Whether pytest has only the setting and no option on the command line."""

    @property
    def flag(self) -> str:
        """The name on command lines, with hyphens and without `--` or `--queryeval-`."""
        return self.name.replace("_", "-")

    @property
    def arguments(self) -> dict[str, Any]:
        """The keyword arguments to `add_argument` of argparse and `addoption` of pytest."""
        if self.type is bool:
            return {"help": self.help, "action": "store_true"}
        arguments: dict[str, Any] = {"help": self.help, "metavar": self.metavar or "|".join(self.choices)}
        if self.type is list:
            arguments["action"] = "append"
        if self.type is int:
            arguments["type"] = whole_number
        return arguments


def _option(help_: str, metavar: str = "", *, default: str | None = None, **details: Any) -> Any:
    return field(default=default, metadata={"help": help_, "metavar": metavar, "default": default, **details})


@dataclass(frozen=True, kw_only=True)
class OptionValues:
    """The options of a run as the user wrote them; None for a missing option without a default."""

    report: Sequence[str] | None = _option(
        "write a report: PATH.json, a folder for all formats, or github for summary and annotations",
        "PATH",
        type=list,
        setting="reports to write when --queryeval-report is not given",
    )
    name: str | None = _option(
        "name of the run in reports; default: predictor and commit",
        "TEXT",
        setting="name of the run when --queryeval-name is not given",
    )
    predictor: str | None = _option("ask this predictor for all cases, e.g. my_app.py:predict", "SPEC")
    threshold: Sequence[str] | None = _option(
        "require at least VALUE of METRIC, for which higher is better", "METRIC=VALUE", type=list
    )
    limit: int | None = _option("evaluate only the first N cases that are selected", "N", type=int)
    sample: str | None = _option(
        "evaluate N of the cases that are selected, chosen at random in proportion to their files; SEED is 0",
        "N[:SEED]",
    )
    trials: int | None = _option("ask the predictor N times for each case", "N", type=int)
    concurrency: int | None = _option("allow N calls of a predictor at the same time", "N", type=int)
    record: str | None = _option("record predictions and executions in DIR, and use recorded ones", "DIR")
    replay: str | None = _option("use only what DIR contains: no call is made, no query runs", "DIR")
    baseline: str | None = _option("compare with an earlier report, in gates as well", "REPORT.json")
    stop: str | None = _option(
        "run cases in random order, and stop once all gates are decided; SEED is 0; off: run all",
        "decided[:SEED]",
        setting="the value of --queryeval-stop when it is not given",
    )
    spend: Sequence[str] | None = _option(
        "make no more calls once those of the run cost VALUE; NAME is a number that systems report in metadata, or "
        "prediction_seconds; off: no limit",
        "NAME=VALUE",
        type=list,
        setting="the value of --queryeval-spend when it is not given",
    )
    cause: CauseMode = _option(  # noqa: RUF009 - a field
        "look for the causes of wrong answers on local sources (auto, the default), on all (full), or not (off)",
        choices=("auto", "off", "full"),
        default="auto",
        setting="the value of --queryeval-cause when it is not given",
    )
    challenge: bool | None = _option(
        "look for small databases on which right predicted queries and the gold query differ: challenged_accuracy",
        type=bool,
        setting="whether right answers are challenged without --queryeval-challenge",
    )
    gates: GateMode = _option(  # noqa: RUF009 - a field
        _GATES,
        choices=("complete", "selection", "off"),
        synonyms={
            **dict.fromkeys(("on", "true", "yes", "1"), "complete"),
            **dict.fromkeys(("false", "no", "0"), "off"),
        },
        default="complete",
        setting=_GATES,
        is_setting_only=True,
    )
    excel_layout: str = _option(
        _EXCEL_LAYOUT,
        choices=("requested", "published", "plain"),
        default="requested",
        setting=_EXCEL_LAYOUT,
        is_setting_only=True,
    )


OPTIONS = tuple(Option(option.name, **option.metadata) for option in fields(OptionValues))
