"""The key `reviews`: the review files of suites, and how their decisions change cases."""

from __future__ import annotations

import glob
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

from pytest_queryeval.core.errors import (
    Finding,
    Location,
    QueryEvalError,
    ReportError,
    case_finding,
    nearest,
    nearest_file,
)
from pytest_queryeval.core.mappings import grouped
from pytest_queryeval.core.model import ABSTENTION, UNANSWERABLE_CRITERIA, Case, QueryOrAnswer, Review, ReviewDecision
from pytest_queryeval.core.shapes import TEXT, shape
from pytest_queryeval.documents.document import File, Node, file_at
from pytest_queryeval.documents.values import required_text
from pytest_queryeval.features.review.decisions import CaseKey, GoldDecision, gold_digest, read_decisions
from pytest_queryeval.languages import KINDS
from pytest_queryeval.metrics import NUMBERS_FIELDS
from pytest_queryeval.suites import JSONL_SUFFIX, Suite, is_suite_file, load_suite, suites_below
from pytest_queryeval.suites.effects import why_unused
from pytest_queryeval.suites.keys import Key
from pytest_queryeval.suites.settings import (
    FOLDER_FILE,
    Values,
    applicable_thresholds,
    unanswerable_values,
    with_compare,
)
from pytest_queryeval.text.formatting import one_line

CLOCK_DIFFERENCE = timedelta(minutes=5)  # of two machines
MAX_CHARACTERS = 200  # of the name of a case in a message


@dataclass(frozen=True, kw_only=True)
class Reviews:
    """The review files that a value of the key names; they are read once, on first use."""

    node: Node
    pattern: str

    @property
    def file(self) -> File:
        """The suite or settings file that contains the key."""
        return self.node.file

    def file_of(self, reviewer: str) -> Path:
        """Return the file to which a reviewer's decisions are appended; with a glob, each reviewer has a file.

        Raise `CaseError` for a glob that has other wildcards than a single `*` in the name of the file.
        """
        folder, name = os.path.split(self.pattern)
        if not glob.has_magic(self.pattern):
            return self.file.folder / self.pattern
        if glob.has_magic(folder) or name.count("*") != 1 or glob.has_magic(name.replace("*", "")):
            raise self.node.problem("has no place for a reviewer's file: write one `*`, as in reviews/*.jsonl")
        stem = re.sub(r"[^\w.-]+", "-", reviewer).strip(".-") or "reviewer"
        return self.file.folder / folder / name.replace("*", stem.lower())

    def check_files(self) -> None:
        """Raise `CaseError` if there is no file with the name, or if a glob seems mistyped.

        The files of a glob may be created later. So a glob without files is only refused if other files contain
        decisions on cases here, or if its folder is missing and similar to another.
        """
        is_glob = glob.has_magic(self.pattern)
        name = _folder_of(self.pattern) if is_glob else self.pattern
        path = self.file.folder / name
        near = nearest_file(path)
        if os.path.exists(path) or (is_glob and not near):  # noqa: PTH110 - for any name
            if is_glob and not self._names_of(self.pattern):
                self._check_other_files()
            return
        hint = near or ": correct the name, or create an empty file, to which `queryeval review` appends"
        kind = "folder" if is_glob else "file"
        raise self.node.problem(f"there is no {kind} '{one_line(name, MAX_CHARACTERS)}'{hint}")

    def _check_other_files(self) -> None:
        for folder in dict.fromkeys((os.path.dirname(self.pattern), _folder_of(self.pattern))):  # noqa: PTH120
            for name in self._names_of(os.path.join(folder, "*")):  # noqa: PTH118
                suffix = Path(name).suffix
                if "json" not in suffix or not self._decides_here(self.file.folder / name):
                    continue
                with_suffix = str(Path(self.pattern).with_suffix(suffix))
                right = with_suffix if name in self._names_of(with_suffix) else str(Path(name).with_name(f"*{suffix}"))
                raise self.node.problem(
                    f"no file fits '{one_line(self.pattern, MAX_CHARACTERS)}', but '{one_line(name, MAX_CHARACTERS)}'"
                    f" has decisions on cases here: did you mean '{one_line(right, MAX_CHARACTERS)}'?"
                )

    def _decides_here(self, path: Path) -> bool:
        """Return whether a readable file contains a decision on a case to which this value of the key applies."""
        scope = self.file.folder if self.file.path.name == FOLDER_FILE else self.file.path
        with suppress(QueryEvalError):
            return any(decision.case.suite.is_relative_to(scope) for decision in read_decisions(path))
        return False

    def _names_of(self, pattern: str) -> Sequence[str]:
        """Return the names of files that match a pattern, without suites and settings files if it is a glob.

        Raise `CaseError` for a pattern that cannot be searched.
        """
        try:
            names = sorted(glob.glob(pattern, root_dir=self.file.folder, recursive=True))  # noqa: PTH207
        except (OSError, ValueError) as error:
            raise self.node.problem(f"'{pattern}' cannot be searched: {error}") from error
        if not glob.has_magic(pattern):
            return names
        return [name for name in names if not is_suite_file(Path(name)) and Path(name).name != FOLDER_FILE]

    @cached_property
    def decisions(self) -> Mapping[CaseKey, Sequence[GoldDecision]]:
        """The decisions on each case in their order; raise `CaseError` or `SuiteError` for an invalid line."""
        paths = [self.file.folder / name for name in self._names_of(self.pattern)]
        all_decisions = [decision for path in paths for decision in read_decisions(path)]
        return grouped((decision.case, decision) for decision in sorted(all_decisions, key=_sort_key))

    @cached_property
    def named_by_digest(self) -> Mapping[str, Sequence[CaseKey]]:
        """The cases that decisions name, by the digest of their golds."""
        names: defaultdict[str, dict[CaseKey, None]] = defaultdict(dict)
        for name, decisions in self.decisions.items():
            for decision in decisions:
                if decision.digest is not None:
                    names[decision.digest][name] = None
        return {digest: list(cases) for digest, cases in names.items()}

    @cached_property
    def missing_suites(self) -> frozenset[Path]:
        """The suites that decisions name and that do not exist."""
        suites = {name.suite for name in self.decisions}
        return frozenset(path for path in suites if not os.path.isfile(path))  # noqa: PTH113 - for any name

    @cached_property
    def digests(self) -> Mapping[CaseKey, str]:
        """The digests of all cases below the folder of the key, without suites that cannot be read."""
        digests: dict[CaseKey, str] = {}
        for path in suites_below(self.file.folder):
            try:
                suite = load_suite(path, root=Path(path.anchor), require_prediction=False, apply_changes=False)
            except QueryEvalError:
                continue
            digests |= {CaseKey(suite.path, case.id): gold_digest(case) for case in suite.cases}
        return digests

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """The number of cases below the folder of the key by digest."""
        return Counter(self.digests.values())

    def of_case(self, name: CaseKey, digest: str) -> Sequence[GoldDecision]:
        """Return the decisions on a case in their order, including decisions under a former name of the case.

        A decision with the same digest that names no existing case has a former name, if no other case below the folder
        has the same question and golds.
        """
        former_names = [
            other_name
            for other_name in self.named_by_digest.get(digest, ())
            if other_name != name
            and other_name not in self.digests
            and (other_name.suite.is_relative_to(self.file.folder) or other_name.suite in self.missing_suites)
            and self.counts[digest] == 1
        ]
        candidates = (decision for former in former_names for decision in self.decisions[former])
        moved = [decision for decision in candidates if decision.digest == digest]
        decisions = [*self.decisions.get(name, ()), *moved]
        return sorted(decisions, key=_sort_key) if moved else decisions

    def orphaned_decisions(self, suite: Suite) -> Iterator[GoldDecision]:
        """Yield the last decision on each case that does not exist, in this suite or because its suite does not exist.

        A decision on the golds of exactly one case is left out, because it applies to that case.
        """
        ids = {case.id for case in suite.cases}
        for name, decisions in self.decisions.items():
            is_gone = name.id not in ids if name.suite == suite.path else name.suite in self.missing_suites
            if is_gone and self.counts[decisions[-1].digest or ""] != 1:
                yield decisions[-1]


def _folder_of(pattern: str) -> str:
    """Return the folders of a glob before its first part with a wildcard; `.` if there are none."""
    parts = pattern.split("/")
    return "/".join(parts[: next(place for place, part in enumerate(parts) if glob.has_magic(part))]) or "."


class NoReviewFileError(ReportError):
    """Raised if a suite names no review file."""


def reviews_of(suite: Suite) -> Reviews:
    """Return the review files of a suite; raise `NoReviewFileError` with the line to add if it names none."""
    reviews = suite.values.get("reviews")
    if not isinstance(reviews, Reviews):
        place = file_at(suite.path).shown
        place = place.parent / FOLDER_FILE if place.name.endswith(JSONL_SUFFIX) else place
        raise NoReviewFileError(
            f"no review file for {file_at(suite.path).shown}: add to {place}: reviews: reviews.jsonl"
        )
    return reviews


@shape(TEXT)
def read_reviews(node: Node) -> Reviews:
    """Return the review files that a node names, by a name or a glob."""
    return Reviews(node=node, pattern=required_text(node))


def apply_reviews(reviews: Reviews, suite: Suite) -> Suite:
    """Return a suite with the decisions on its cases applied, and with a finding for each decision that is not applied.

    Decisions in the future also become findings. Raise `CaseError` and `SuiteError` for review files that cannot be
    read, and for answers that a case cannot have.
    """
    ignored = suite.cases[0].settings.ignored_rules
    findings: list[Finding] = []
    for decision in reviews.orphaned_decisions(suite):
        name = decision.case
        missing_case = one_line(f"{file_at(name.suite).shown}::{name.id}", MAX_CHARACTERS)
        near = nearest(name.id, [case.id for case in suite.cases]) if name.suite == suite.path else ""
        remedy = f"did you mean '{one_line(near, MAX_CHARACTERS)}'?" if near else "correct the line, or remove it"
        findings.append(
            Finding(
                rule="review-stale",
                location=decision.location,
                message=f"the decision is not applied, {missing_case} does not exist: {remedy}",
                silenced=ignored.get("review-stale", ""),
            )
        )
    cases: list[Case] = []
    latest_time = datetime.now(UTC) + CLOCK_DIFFERENCE
    for case in suite.cases:
        digest = gold_digest(case)
        decisions = reviews.of_case(CaseKey(suite.path, case.id), digest)
        for decision in decisions:
            if decision.at > latest_time:
                message = (
                    f"{_shown_decision(decision)} in the future, so that no decision of today replaces it: correct `at`"
                )
                findings.append(case_finding("review-future", case, message))
        current, stale = current_decisions(decisions, digest)
        for decision in stale:
            message = f"question or gold has changed since {_shown_decision(decision)}: review it again"
            findings.append(case_finding("review-stale", case, message))
        if disagree(current):
            text = ", ".join(map(_shown_decision, current))
            message = f'reviewers disagree: {text}: settle it by a line with "settles": true'
            findings.append(case_finding("review-conflict", case, message))
            current = []
        cases.append(_with_decisions(case, current, suite.values) if current else case)
    return replace(suite, cases=tuple(cases), findings=(*suite.findings, *findings))


def _shown_decision(decision: GoldDecision) -> str:
    return f"{decision.reviewer} decided '{decision.decision}' ({decision.location})"


def current_decisions(
    decisions: Sequence[GoldDecision], digest: str
) -> tuple[Sequence[GoldDecision], Sequence[GoldDecision]]:
    """Return the last decision of each reviewer on a case with this digest: current decisions, then stale ones.

    Stale decisions are on other golds. Decisions before one that settles the case do not count.
    """
    settling = [place for place, decision in enumerate(decisions) if decision.settles]
    latest: dict[str, GoldDecision] = {}
    for decision in decisions[settling[-1] if settling else 0 :]:
        latest.pop(decision.reviewer, None)  # in the order of the decisions that count
        latest[decision.reviewer] = decision
    stale = [decision for decision in latest.values() if decision.digest not in (None, digest)]
    return [decision for decision in latest.values() if decision not in stale], stale


def disagree(decisions: Iterable[GoldDecision]) -> bool:
    """Return whether decisions conflict: `right` and `ambiguous` agree, and `unsure` agrees with all others."""
    words = {"right" if decision.decision == "ambiguous" else decision.decision for decision in decisions}
    return len(words - {"unsure"}) > 1


def _with_decisions(case: Case, decisions: Sequence[GoldDecision], values: Values) -> Case:
    """Return a case with decisions applied that agree with each other.

    `values` are the values of keys of its suite. Answers become golds, or replace them if gold is `wrong`; without an
    answer, such a case is withdrawn. `unanswerable` removes the golds, and `compare` changes the policy. `unsure`
    counts only if there is no other decision. Raise `CaseError` for an answer or a setting that the case cannot have.
    """
    effective = [decision for decision in decisions if decision.decision != "unsure"]
    words = {decision.decision for decision in effective or decisions}
    word: ReviewDecision = "ambiguous" if "ambiguous" in words else words.pop()
    reviewers = tuple(decision.reviewer for decision in effective or decisions)
    for decision in effective:
        if decision.answers and not case.answerable:
            raise decision.line.problem(f"'{case.id}' has `answerable: false`: replace it with a gold in the suite")
        if decision.answers and case.lacks_gold:
            raise decision.line.problem(f"'{case.id}' has no gold, only `expect`: write the answer as its gold")
        for name in dict.fromkeys("numbers" if field in NUMBERS_FIELDS else field for field in decision.compare):
            kind, computed = KINDS[case.settings.kind], case.settings.metrics
            if reason := why_unused(("compare", name), kind, criteria=case.criteria, computed=computed):
                raise decision.line.problem(f"`compare: {name}` has no effect on '{case.id}': {reason}: remove it")
    answers = _distinct(answer.as_gold(case) for decision in effective for answer in decision.answers)
    golds = {
        "wrong": answers or case.golds,
        "unanswerable": (),
    }.get(word, _distinct((*case.golds, *answers)))
    settings, is_withdrawn = case.settings, word == "wrong" and not answers
    compare = {name: value for decision in effective for name, value in decision.compare.items()}
    if compare and case.answerable and not is_withdrawn:
        settings = replace(settings, policy=with_compare(settings.policy, compare))
    if word == "unanswerable" and case.answerable:
        levels = unanswerable_values(values)["thresholds"]
        thresholds = applicable_thresholds(levels, KINDS[settings.kind], criteria=UNANSWERABLE_CRITERIA)
        settings = replace(settings, metrics=(ABSTENTION,), thresholds=thresholds)
    return replace(
        case,
        golds=golds,
        answerable=case.answerable and word != "unanswerable",
        settings=settings,
        review=Review(
            decision=word,
            reviewers=reviewers,
            notes=tuple(decision.note for decision in effective or decisions if decision.note),
            golds=case.golds,
            policy=case.settings.policy,
            metrics=case.settings.metrics,
            thresholds=case.settings.thresholds,
            withdrawal=f"gold is wrong ({', '.join(reviewers)}), no right answer is known" if is_withdrawn else "",
        ),
    )


def _distinct(golds: Iterable[QueryOrAnswer]) -> tuple[QueryOrAnswer, ...]:
    distinct_golds: list[QueryOrAnswer] = []  # some cannot be hashed
    for gold in golds:
        distinct_golds += [gold] if gold not in distinct_golds else ()
    return tuple(distinct_golds)


def _sort_key(decision: GoldDecision) -> tuple[datetime, Location]:
    return decision.at, decision.location


REVIEWS = Key(
    name="reviews",
    description="a file with what people decided on golds, or a glob with a file for each reviewer: reviews/*.jsonl",
    levels=("folder", "file"),
    read=read_reviews,
    change=apply_reviews,
    check_files=Reviews.check_files,
)
