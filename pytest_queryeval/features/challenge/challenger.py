"""Challenges a predicted query whose answer is right: looks for a small database on which its answer is wrong.

Challenges are kept in the user's cache folder for later runs and for other processes.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

from pytest_queryeval.core.answer_json import read_challenge
from pytest_queryeval.core.case_report import ChallengeReport
from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.files import KEPT_SECONDS, cache_folder, write_atomically
from pytest_queryeval.core.json_value import JsonValue, to_jsonable
from pytest_queryeval.core.model import (
    CHALLENGED_ACCURACY,
    Case,
    ChallengeVerdict,
    Execution,
    Prediction,
    QueryOrAnswer,
)
from pytest_queryeval.evaluation.scoring import Scoring
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.strength.counterexample import constraints, find_counterexample
from pytest_queryeval.languages.sparql.query import read_query, tokens
from pytest_queryeval.languages.sql import ParsedQuery, parse_query
from pytest_queryeval.results.case_json import refutation_json
from pytest_queryeval.text.formatting import one_line

QUOTES = frozenset("'\"`[$")
FORMAT = 9  # of challenges that are kept: greater after each change of how they are made or written
REASON_CHARACTERS = 4_000
NO_QUERY = "one of the answers is stored, without a query"
# With several golds, the verdict is the first of these that any of them has: for `refuted` all have to be refuted.
_STRONGEST_FIRST = ("same", "proved", "stands", "unchallenged", "refuted")


def challenge_answer(case: Case, gold: Execution, predicted: Execution, session: Session) -> ChallengeReport:
    """Return the challenge of a predicted query: whether small databases distinguish it from the gold query.

    If the case has several golds, `gold` and every other gold query that accepts the predicted answer are tried. The
    result is then the challenge with the strongest verdict in favour of the predicted query.
    """
    golds = [session.execute_cached(content, case) for content in case.golds if len(case.golds) > 1]
    prediction = Prediction(QueryOrAnswer(query=predicted.query), predictor="")
    also_accepting = [
        execution
        for execution in golds
        if execution.query != gold.query
        and Scoring(case, execution, predicted, prediction, session).value("execution_accuracy") == 1.0
    ]
    queries = [execution.query for execution in (gold, *also_accepting)]
    if any(_have_same_text(case, query, predicted.query) for query in queries):
        return _challenge_report("same")
    challenges = [_challenge_pair(case, query, predicted.query, session) for query in queries]
    return min(challenges, key=lambda challenge: _STRONGEST_FIRST.index(challenge["verdict"]))


def _challenge_pair(case: Case, gold: str | None, predicted: str | None, session: Session) -> ChallengeReport:
    """Return the challenge of a predicted query by one gold query: recorded, kept in the cache folder, or new.

    The challenge is added to the recording, if there is one. If a query is None, or the recording lacks the challenge
    in a replay, the pass is unchallenged. Raise `SourceError` if that replay requires `challenged_accuracy`.
    """
    if gold is None or predicted is None:
        return _unchallenged(NO_QUERY)
    recording = session.recording
    try:
        challenge = None if recording is None else recording.load_challenge(gold, predicted, case)
    except SourceError as error:
        if CHALLENGED_ACCURACY in case.settings.required_metrics:
            raise
        return _unchallenged(str(error))
    if challenge is None:
        with session.analysis():
            challenge = _kept_challenge(case, gold, predicted, session)
        if recording is not None:
            recording.save_challenge(gold, predicted, case, challenge)
    return challenge


def _have_same_text(case: Case, gold: str | None, predicted: str | None) -> bool:
    """Return whether two queries differ only in layout, comments, and the case of keywords and names.

    The result is False if a query is None or cannot be parsed.
    """
    if gold is None or predicted is None:
        return False
    if gold == predicted:
        return True
    if case.settings.kind == "sparql":
        return _words_of_sparql(gold) == _words_of_sparql(predicted)
    parsed_queries = [parse_query(text, case.settings.dialect) for text in (gold, predicted)]
    if any(query.whole_tree is None for query in parsed_queries):
        return False
    return _words_of_sql(parsed_queries[0]) == _words_of_sql(parsed_queries[1])


def _words_of_sparql(text: str) -> tuple[Mapping[str, str], list[str]]:
    """Return the prefixes and the words of a SPARQL query.

    The words include those of the prologue if it has a BASE, which resolves IRIs.
    """
    query = read_query(text)
    words = tokens(query.text)
    has_base = any(word.is_word("BASE") for word in words)
    return query.prefixes, [word.text for word in (words if has_base else query.tokens)]


def _words_of_sql(query: ParsedQuery) -> list[str]:
    """Return the words of a SQL query without semicolons; words without quotes are in lower case.

    Trees are no help here: the parser reads `mod(x, 2)` and `x % 2`, or two names of a type, as one.
    """
    words = [query.text[token.start : token.end + 1] for token in query.statements.tokens]
    return [word if QUOTES & set(word) or not word.isascii() else word.lower() for word in words if word != ";"]


def _kept_challenge(case: Case, gold: str, predicted: str, session: Session) -> ChallengeReport:
    """Return the challenge in the cache folder for these queries, constraints and policy, else a new challenge.

    A new challenge first tries to prove two SQL queries equal, then searches small databases. It is saved unless its
    verdict is 'unchallenged', which is also the verdict if the constraints cannot be read.
    """
    try:
        text, tables = constraints(case, gold, predicted, session)
    except SourceError as error:
        return _unchallenged(str(error))
    settings = case.settings
    assert settings.source is not None  # or the queries would have no answers
    store = session.cached(("challenges",), ChallengeStore)
    policy = to_jsonable(asdict(settings.policy))
    key = store.key(settings.kind, settings.source.engine, settings.dialect, gold, predicted, policy, text)
    challenge = store.load(key)
    if challenge is None:
        rules: tuple[str, ...] = ()
        if settings.kind == "sql" and tables:
            from pytest_queryeval.features.strength.sql.proof import prove, with_nullable_keys

            rules = prove(gold, predicted, settings.dialect, with_nullable_keys(tables), settings.policy)
        challenge = (
            {**_challenge_report("proved"), "rules": [*rules]} if rules else _search(case, gold, predicted, session)
        )
        if challenge["verdict"] != "unchallenged":
            store.save(key, challenge)
    return challenge


def _challenge_report(verdict: ChallengeVerdict, tried: int = 0) -> ChallengeReport:
    return {"verdict": verdict, "tried": tried, "counterexample": None, "unlike": None}


def _unchallenged(reason: str) -> ChallengeReport:
    return {**_challenge_report("unchallenged"), "reason": one_line(reason, REASON_CHARACTERS)}


def _search(case: Case, gold: str, predicted: str, session: Session) -> ChallengeReport:
    try:
        counterexample, ruled_out, tried = find_counterexample(case, gold, predicted, session)
    except SourceError as error:
        return _unchallenged(str(error))
    if counterexample is not None:
        return {**_challenge_report("refuted", tried), "counterexample": refutation_json(counterexample)}
    if tried:
        unlike = None if ruled_out is None else refutation_json(ruled_out)
        return {**_challenge_report("stands", tried), "unlike": unlike}
    return _unchallenged("the queries run in no small database")


class ChallengeStore:
    """A folder with one file for each challenge; a file that was not used for 30 days is removed.

    A damaged file counts as missing. If the folder cannot be written, nothing is kept and no error is raised.
    """

    def __init__(self) -> None:
        self._folder: Path | None = None
        with suppress(OSError):
            self._folder = cache_folder("challenges")
            for path in self._folder.glob("*.json"):
                with suppress(OSError):  # another process may be removing it too
                    if path.stat().st_mtime < time.time() - KEPT_SECONDS:
                        path.unlink()

    def key(self, *facts: JsonValue) -> str:
        """Return a digest that names the challenge for these facts, this FORMAT and this version of the package."""
        content = json.dumps([FORMAT, version("pytest-queryeval"), *facts], sort_keys=True)
        return sha256(content.encode()).hexdigest()

    def load(self, key: str) -> ChallengeReport | None:
        """Return the stored challenge of a key, and note its use; None if there is none, or if its file is damaged."""
        if self._folder is None:
            return None
        with suppress(OSError, ValueError, TypeError, KeyError):
            path = self._folder / f"{key}.json"
            challenge = read_challenge(json.loads(path.read_bytes()))
            os.utime(path)
            return challenge
        return None

    def save(self, key: str, challenge: ChallengeReport) -> None:
        """Store a challenge under its key; do nothing if the folder cannot be written."""
        if self._folder is not None:
            with suppress(OSError, TypeError):
                write_atomically(self._folder / f"{key}.json", json.dumps(challenge).encode())
