"""Challenges as JSON, and back again, for files that keep them."""

from __future__ import annotations

from typing import get_args

from pytest_queryeval.core.answer_json import (
    Entry,
    JsonObject,
    decode_answer,
    decode_lines,
    decode_text,
    encode,
    encode_answer,
    encode_lines,
)
from pytest_queryeval.core.challenge import Challenge, ChallengeVerdict, Refutation
from pytest_queryeval.core.table import Table

_VERDICTS = frozenset(get_args(ChallengeVerdict))


def encode_challenge(challenge: Challenge) -> JsonObject:
    """Return a challenge as values that JSON has; raise TypeError for a cell that JSON cannot hold."""
    return {
        "verdict": challenge.verdict,
        "tried": challenge.tried,
        "rules": list(challenge.rules),
        "reason": encode(challenge.reason),
        "refutation": None if challenge.refutation is None else _encode_refutation(challenge.refutation),
    }


def _encode_refutation(refutation: Refutation) -> JsonObject:
    return {
        "script": encode_lines(refutation.script),
        "size": refutation.size,
        "gold": encode_answer(refutation.gold),
        "predicted": encode_answer(refutation.predicted),
        "unlike": refutation.is_unlike,
    }


def decode_challenge(entry: Entry) -> Challenge:
    """Return the challenge in an entry; raise ValueError, TypeError or KeyError if it holds none."""
    verdict: ChallengeVerdict = entry["verdict"]
    if verdict not in _VERDICTS or (verdict == "refuted") != (entry["refutation"] is not None):
        raise ValueError("an unknown verdict, or one without its counterexample")
    return Challenge(
        verdict=verdict,
        tried=int(entry["tried"]),
        rules=tuple(map(decode_text, entry["rules"])),
        reason=decode_text(entry["reason"]),
        refutation=None if entry["refutation"] is None else _decode_refutation(entry["refutation"]),
    )


def _decode_refutation(entry: Entry) -> Refutation:
    gold, predicted = decode_answer(entry["gold"]), decode_answer(entry["predicted"])
    if not isinstance(gold, Table) or not isinstance(predicted, Table):
        raise ValueError("a counterexample without two tables")
    return Refutation(
        script=decode_lines(entry["script"]),
        size=int(entry["size"]),
        gold=gold,
        predicted=predicted,
        is_unlike=entry["unlike"] is True,
    )
