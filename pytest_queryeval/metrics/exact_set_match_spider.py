"""Spider's exact set match, as published."""

from __future__ import annotations

from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.metric import Score, metric

NO_SCHEMA = Schema()


@metric(kinds=frozenset({"sql"}), input="queries", published=True)
def exact_set_match_spider(gold: str, predicted: str, *, schema: Schema = NO_SCHEMA) -> Score:
    """Return the published verdict, 1 or 0, by the published grammar with all its limits.

    The grammar reads a part of SQLite's SQL; a prediction outside of it scores 0, and `details.spider` says where
    it is. None where gold is outside of it, as a note says: it ends a run of the published tool. `details.spider` has
    what the table of the published tool is made of: gold's hardness, and the totals of ten components. Kept to be
    compared with papers; `exact_set_match` is the sound rule. Source: taoyds/spider, evaluation.py.

    >>> exact_set_match_spider("SELECT count(*) FROM singer", "SELECT count(*) AS n FROM singer").value
    0.0
    """
    from pytest_queryeval.languages.sql.published.match import match_as_published
    from pytest_queryeval.languages.sql.published.tokens import UnreadableQueryError

    try:
        match = match_as_published(gold, predicted, schema)
    except UnreadableQueryError as error:
        return Score(value=None, details={"notes": [f"the published grammar does not read gold: {error}"]})
    return Score(value=float(match.exact), details={"spider": match.to_json()})
