"""What the plugin adds to pytest: options of its command line, settings of its ini files, and a hook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import pytest

from pytest_queryeval.runs.option_table import OPTIONS, Option, OptionValues

if TYPE_CHECKING:
    from pytest_queryeval.predictors import CaseView

JUNIT_GATES, JUNIT_PROPERTIES = "queryeval_junit_gates", "queryeval_junit_properties"
JUNIT_SETTINGS = {
    JUNIT_GATES: (False, "whether gates are test cases of --junitxml, as they are of junit.xml in a folder of reports"),
    JUNIT_PROPERTIES: (True, "whether test cases of junit.xml have scores; some readers of such files refuse these"),
}
_SETTING_TYPES: Mapping[type, Literal["bool", "linelist"]] = {bool: "bool", list: "linelist"}


def add_options(parser: pytest.Parser) -> None:
    """Add all options to pytest's command line, and all settings to its ini files."""
    group = parser.getgroup("queryeval", "query evaluation")
    for option in OPTIONS:
        if not option.is_setting_only:
            group.addoption(f"--queryeval-{option.flag}", default=None, **option.arguments)  # None: not given
        if option.setting:
            kind: Literal["bool", "linelist", "string"] = _SETTING_TYPES.get(option.type, "string")
            parser.addini(f"queryeval_{option.name}", option.setting, type=kind, default=option.default)
    for name, (default, description) in JUNIT_SETTINGS.items():
        parser.addini(name, description, type="bool", default=default)


def read_options(config: pytest.Config) -> OptionValues:
    """Return the options of a run: from the command line, otherwise from the ini file, otherwise the defaults.

    Raises `pytest.UsageError` for a value that is not among the choices.
    """
    return OptionValues(**{option.name: _value(option, config) for option in OPTIONS})


def _value(option: Option, config: pytest.Config) -> Any:
    setting = f"queryeval_{option.name}"
    value = None if option.is_setting_only else config.getoption(setting)
    if value is not None:
        return _choice(f"--queryeval-{option.flag}", value, option) if option.choices else value
    if not option.setting:
        return None
    value = config.getini(setting)
    return _choice(setting, value, option) if option.choices else value or None


def _choice(name: str, value: str, option: Option) -> str:
    """Return the choice that a word or its synonym names, in any case; raises `pytest.UsageError` for other words."""
    word = value.strip().lower()
    choice = option.synonyms.get(word, word)
    if choice not in option.choices:
        *first_choices, last_choice = option.choices
        raise pytest.UsageError(f"{name}: expected {', '.join(first_choices)} or {last_choice}, found '{value}'")
    return choice


@pytest.hookspec(firstresult=True)
def pytest_queryeval_predict(case: CaseView, config: pytest.Config) -> object:
    """Return the answer to a case: a query's text, for JSON and SDMX also a value, or a `Prediction`.

    It is called, in turn, for cases that neither state an answer nor have a `predictor`, and where a suite says
    `predictor: hook`. The first answer that is not None counts.
    """
