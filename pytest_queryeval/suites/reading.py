"""Reader of the keys of a mapping at its level, and which key was probably meant by an unknown one."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from difflib import get_close_matches
from typing import Any

from pytest_queryeval.core.errors import CaseError, QueryEvalError, SuiteError, did_you_mean, nearest
from pytest_queryeval.documents.document import Node, Problems
from pytest_queryeval.documents.values import entries, unexpected
from pytest_queryeval.suites.keys import KEYS, LEVELS, Level
from pytest_queryeval.suites.query_or_answer import GOLD_FORMS, PREDICTED_FORMS

# Names that other tools use for a key.
SYNONYMS = {
    **dict.fromkeys(("prediction", "actual", "output", "generated"), "predicted"),
    **dict.fromkeys(
        ("expected", "reference", "solution", "ground_truth", "target", "sql", "query", "sparql", "answer"), "gold"
    ),
    **dict.fromkeys(("db", "database", "connection", "endpoint"), "source"),
    **dict.fromkeys(("name", "key"), "id"),
    **dict.fromkeys(("input", "prompt", "utterance", "nl"), "question"),
    "hint": "evidence",
    "hardness": "difficulty",
    **dict.fromkeys(("model", "system"), "predictor"),
    "tests": "cases",
}
_CLOSE = 0.85  # the share of equal characters from which a name counts as a misspelt key, whatever its words mean
# Keys that make a mapping a case.
CASE_KEYS = frozenset(("id", "question", "conversation", *GOLD_FORMS, *PREDICTED_FORMS))


def read_keys(node: Node, level: Level, problems: Problems) -> dict[str, Any]:
    """Read the values of all valid keys; add the problems of the others to `problems`."""
    values: dict[str, Any] = {}
    if level == "case" and not isinstance(node.value, dict) and not node.file.is_yaml:
        raise unexpected(node, 'an object, {"id": …, "gold": …}')
    for name, value in entries(node).items():
        try:
            key = KEYS.get(name)
        except QueryEvalError as error:  # of a feature or a package that cannot be imported
            problems.append(value.problem(str(error)))
            continue
        if key is None or level not in key.levels:
            problems.append(value.problem(_key_problem(name, level, entries(node).keys())))
            continue
        try:  # not by `problems.attempt`: None is a value here
            values[name] = key.read(value)
        except (CaseError, SuiteError) as error:
            problems.keep(error)
        except QueryEvalError as error:  # of a feature or a package that cannot be imported
            problems.append(value.problem(str(error)))
    return values


def intended_keys(node: Node, level: Level) -> set[str]:
    """Return the keys that the unknown keys of a mapping probably stand for."""
    allowed = _allowed_at(level)
    return {_intended_key(name, level) for name in entries(node) if name not in allowed}


def _allowed_at(level: Level) -> list[str]:
    return [name for name in KEYS.available() if level in KEYS[name].levels]


def _intended_key(name: str, level: Level) -> str:
    """Return the key of a level that an unknown name probably stands for, as `gold` for `expected_sql`; else ""."""
    allowed_keys = _allowed_at(level)
    if get_close_matches(name.lower(), allowed_keys, n=1, cutoff=_CLOSE):
        return nearest(name, allowed_keys)
    if intended_key := SYNONYMS.get(name.lower()):
        return intended_key if intended_key in allowed_keys else ""
    # The order of SYNONYMS decides: `generated_sql` is predicted, not gold. `model_name` is not an id.
    words = {*name.lower().split("_")} - {"name", "key"}
    intended_key = next((key for synonym, key in SYNONYMS.items() if {synonym, key} & words), "")
    return intended_key if intended_key in allowed_keys else nearest(name, allowed_keys)


def _key_problem(name: str, level: Level, stated_keys: AbstractSet[str]) -> str:
    """Return the problem of a key at a level that does not have it; `stated_keys` are all keys of its mapping."""
    if name in KEYS:
        places = " or ".join(LEVELS[at] for at in KEYS[name].levels)
        return f"'{name}' is not allowed {LEVELS[level]}: it belongs {places}"
    intended = _intended_key(name, level)
    forms = next((forms for forms in (GOLD_FORMS, PREDICTED_FORMS) if intended in forms), (intended,))
    if rival := next((form for form in forms if form in stated_keys), ""):
        hint = f": '{rival}' is there already: remove one of them"
        if rival in GOLD_FORMS and not stated_keys & PREDICTED_FORMS.keys():
            hint += ", or write 'predicted' if it is the prediction"
    else:
        hint = f": did you mean '{intended}'?" if intended else did_you_mean(name, _allowed_at(level))
    if name == "<<":
        hint = ": merge keys are not read: put shared settings into the file or its folder"
    elif name.split(maxsplit=1)[:1] in (["PREFIX"], ["prefix"]):
        hint = ": if it is a line of a query, indent it as the other lines of the block"
    elif " " in name:
        hint = ": quote the value before it, which a comma ends within { }"
    return f"unknown key '{name}'{hint}"
