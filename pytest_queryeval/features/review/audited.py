"""Judgements in an audit that contradict the verdict: the strongest reason to look at a gold."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_queryeval.core.model import QueryOrAnswer
from pytest_queryeval.features.review.systems import SystemAnswer
from pytest_queryeval.results.audit_file import AnswerName, Audit, prediction_digest
from pytest_queryeval.text.formatting import one_line


def against_verdict(audit: Audit, nodeid: str, answers: Mapping[str, SystemAnswer]) -> list[str]:
    """Return a sentence on each answer to a case that passes although its reviewers call it wrong, or the reverse.

    `answers` have the names of systems. An answer on which reviewers contradict each other is left out.
    """
    sentences = []
    for system, answer in answers.items():
        if not isinstance(answer.prediction, QueryOrAnswer) or answer.prediction.query is None:
            continue
        digest = prediction_digest({"query": answer.prediction.query})
        judgements = audit.judgements.get(AnswerName(nodeid, digest), {})
        reviewers = one_line(", ".join(name for name, judgement in judgements.items() if judgement != "unclear"))
        clear_judgements = {*judgements.values()} - {"unclear"}
        if clear_judgements == {"right"} and answer.is_wrong:
            sentences.append(f"the answer of {system} misses, but is right ({reviewers})")
        elif clear_judgements == {"wrong"} and answer.is_right:
            sentences.append(f"the answer of {system} passes, but is wrong ({reviewers})")
    return sentences
