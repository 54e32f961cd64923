"""Ranks cases by how likely their golds are wrong, each with the evidence, such as systems that agree against it.

Each report is a system. Its queries are run again, and answers are compared as the cases compare them.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pytest_queryeval.cli.conftests import read_suites, root_of
from pytest_queryeval.cli.output import MAX_LISTED, Result, notifier, with_progress, wrap_write_errors
from pytest_queryeval.core.errors import QueryEvalError, ReportError
from pytest_queryeval.core.features import feature
from pytest_queryeval.core.files import write_atomically
from pytest_queryeval.core.mappings import excluding
from pytest_queryeval.core.model import Case
from pytest_queryeval.engines import is_local
from pytest_queryeval.evaluation.extensions import Recording
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.review.answers import System, SystemAnswer, read_systems, verdict_contradictions
from pytest_queryeval.features.review.page import ReviewTask, load_server, serve_review
from pytest_queryeval.features.review.page.reviewed import AuditReview, GoldReview
from pytest_queryeval.features.review.ranking import (
    RankedCase,
    RankingSummary,
    examine_case,
    rank_cases,
    ranking_data,
    ranking_summary,
    review_lines,
    review_summary,
    summary_lines,
)
from pytest_queryeval.features.review.reviews_key import reviews_of
from pytest_queryeval.reports import check_writable
from pytest_queryeval.reports.html import assets, template
from pytest_queryeval.results.audit_file import Audit, read_audit
from pytest_queryeval.suites import Suite
from pytest_queryeval.text.formatting import cut, one_line, pluralize

EXAMPLE = "queryeval review suites model_a.json model_b.json"
OK = 0
NODEID_CHARACTERS = 300
PAGE_SUFFIX = ".html"
MAX_LIVE_CASES = 200  # of a source that is a service
MAX_PAGE_CASES = 500
QUERY_CHARACTERS = 5_000
TEXT_CHARACTERS = 2_000
_tell = notifier("review")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the paths of suites and reports, and the options of the command."""
    path_help = "a suite file, or a folder with suites"
    parser.add_argument("path", type=Path, nargs="?", metavar="PATH", help=path_help)
    report_help = "a report.json on these suites, one for each system"
    parser.add_argument("reports", type=Path, nargs="*", metavar="REPORT.json", help=report_help)
    replay_help = "take the answers of sources from this recording"
    parser.add_argument("--replay", type=Path, metavar="DIR", help=replay_help)
    html_help = "write the first cases with evidence as a page to read"
    parser.add_argument("--html", type=Path, metavar="FILE", help=html_help)
    parser.add_argument("--summary", action="store_true", help="only sum up what reviewers decided so far")
    serve_help = "open a page on this machine to decide on the golds; write it after all paths"
    parser.add_argument("--serve", type=_port, nargs="?", const=0, metavar="PORT", help=serve_help)
    audit_help = "what was judged in this file of `queryeval audit`; without PATH, with --serve: judge its answers"
    parser.add_argument("--audit", type=Path, metavar="FILE", help=audit_help)


def _port(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected a port, found '{text}': write --serve after all paths, or --serve=PORT"
        ) from None


def run(arguments: argparse.Namespace) -> Result:
    """Rank the cases of suites by how likely their golds are wrong, and return or serve the ranking.

    With `--summary`, only sum up decisions; with `--audit` and no suites, serve the answers of an audit. The exit
    status is always 0. Raise `SuiteError` for suites that cannot be read. Raise `ReportError` for arguments that do not
    fit, and if no case has a gold. Raise `QueryEvalError` for a report or a recording that cannot be used, or a page
    that cannot be written.
    """
    _check_arguments(arguments)
    if arguments.path is None:
        return _serve(AuditReview(arguments.audit), "Audit", arguments.serve)
    suites, left_out = read_suites(arguments.path)
    for why in left_out:
        _tell(f"not examined: {why}")
    reviews = review_summary(suites)
    if arguments.summary:
        return Result(status=OK, lines=review_lines(reviews), data={"summary": {"reviews": reviews}})
    if arguments.serve is not None:
        _check_serving(suites)  # raises now what would be raised after a long ranking
    root = root_of([arguments.path])
    all_cases = {_nodeid(case, suite, root): case for suite in suites for case in suite.cases}
    cases = {nodeid: case for nodeid, case in all_cases.items() if not case.lacks_gold}
    if not cases:
        raise ReportError("no case has a gold to be reviewed")
    if len(cases) < len(all_cases):
        _tell(f"not examined: {pluralize(len(all_cases) - len(cases), 'case')} without a gold")
    systems = read_systems(arguments.reports, cases)
    audit = read_audit(arguments.audit) if arguments.audit is not None else Audit()
    recording = _recording(arguments.replay, root)
    chosen = cases if recording is not None else _within_bound(cases, systems)
    with Session(_tell, recording=recording) as session:
        ranking = rank_cases(
            examine_case(case, nodeid, answers, session, verdict_contradictions(audit, nodeid, answers))
            for nodeid, case in with_progress(chosen.items(), _tell, total=len(chosen))
            for answers in [_answers_by_system(nodeid, systems)]
        )
    if arguments.serve is not None:
        suites_of_cases = {_nodeid(case, suite, root): suite for suite in suites for case in suite.cases}
        return _serve(GoldReview(ranking, suites_of_cases), "Review of golds", arguments.serve)
    data = ranking_data(ranking)
    summary = ranking_summary(ranking, systems, reviews, not_run=len(cases) - len(chosen))
    lines = [*_case_lines(ranking), *summary_lines(summary)]
    if arguments.html is not None:
        with wrap_write_errors(arguments.html):
            write_atomically(arguments.html, ranking_page(ranking, summary))
        lines.append(f"page: {arguments.html}")
    return Result(status=OK, lines=lines, data={"cases": data, "summary": summary})


def _check_arguments(arguments: argparse.Namespace) -> None:
    """Raise `ReportError` for arguments that do not fit each other, and for a page that cannot be written."""
    if arguments.path is None and arguments.audit is not None and arguments.serve is None:
        raise ReportError(
            f"--audit {arguments.audit}: add --serve to judge its answers, or suites and reports to see what was judged"
        )
    if arguments.audit is None and arguments.path is None:
        raise ReportError("name a suite file, or a folder with suites")
    others = {"REPORT.json": arguments.reports, "--replay": arguments.replay, "--html": arguments.html}
    others |= {"--serve": None if arguments.serve is None else [arguments.serve], "--audit": arguments.audit}
    if arguments.summary and (stray := next((name for name, value in others.items() if value), "")):
        raise ReportError(f"{stray} has no effect next to --summary, which only sums up decisions: leave one out")
    if arguments.html is not None and arguments.html.suffix != PAGE_SUFFIX:
        raise ReportError(f"--html {arguments.html}: write a name that ends in {PAGE_SUFFIX}")
    if arguments.html is not None:
        check_writable(arguments.html)


def _check_serving(suites: Sequence[Suite]) -> None:
    """Raise `ReportError` with all that serving lacks: packages, and review files of suites."""
    problems: list[str] = []
    needs: list[Callable[[], object]] = [load_server, *(partial(reviews_of, suite) for suite in suites)]
    for load in needs:
        try:
            load()
        except ReportError as error:
            problems.append(str(error))
    if problems:
        raise ReportError("; ".join(problems))


def _nodeid(case: Case, suite: Suite, root: Path) -> str:
    return f"{Path(os.path.relpath(suite.path, root)).as_posix()}::{case.id}"


def _serve(review: ReviewTask[Any], title: str, port: int) -> Result:
    """Serve the page until Ctrl-C, and return how much was decided; port 0 is the usual port, or a free one."""
    serve_review(review, title=title, port=port or None, tell=_tell)
    return Result(status=OK, lines=review.appended_lines(), data={})


def _recording(folder: Path | None, root: Path) -> Recording | None:
    """Return the recording to replay, None without a folder; raise `QueryEvalError` if the folder contains none."""
    if folder is None:
        return None
    recording: Recording = feature("recording").Recording(Path.cwd() / folder, replay=True, root=root)
    try:
        recording.check()
    except QueryEvalError as error:
        raise QueryEvalError(f"--replay: {error}") from error
    return recording


def _answers_by_system(nodeid: str, systems: Sequence[System]) -> dict[str, SystemAnswer]:
    return {system.name: system.answers[nodeid] for system in systems if nodeid in system.answers}


def _within_bound(cases: Mapping[str, Case], systems: Sequence[System]) -> dict[str, Case]:
    """Return the cases to examine.

    For each service, these are at most MAX_LIVE_CASES cases, which most systems answer wrongly.
    """
    examined: Counter[tuple[str, str]] = Counter()
    left_out: set[str] = set()
    misses = {
        nodeid: sum(answer.is_wrong for answer in _answers_by_system(nodeid, systems).values()) for nodeid in cases
    }
    for nodeid in sorted(cases, key=lambda nodeid: -misses[nodeid]):
        for source in cases[nodeid].settings.sources:
            if not is_local(source):
                examined[source.key] += 1
                left_out |= {nodeid} if examined[source.key] > MAX_LIVE_CASES else set()
    return excluding(cases, left_out)


def _case_lines(ranking: Sequence[RankedCase]) -> Iterator[str]:
    """Yield the first cases with their evidence, and the number of cases with evidence."""
    suspected = [ranked for ranked in ranking if ranked.evidence]
    for rank, ranked in enumerate(suspected[:MAX_LISTED], 1):
        yield f"{rank:,}. {one_line(ranked.title, NODEID_CHARACTERS)}"
        yield from (f"   {evidence['text']}" for evidence in ranked.evidence)
    if len(suspected) > MAX_LISTED:
        yield f"and {len(suspected) - MAX_LISTED:,} more: --json lists all of them"
    yield f"evidence on {len(suspected):,} of {pluralize(len(ranking), 'case')}"


def ranking_page(ranking: Sequence[RankedCase], summary: RankingSummary) -> bytes:
    """Return the HTML page of a ranking as bytes; untrusted text is escaped, and the page loads nothing."""
    suspected = [
        {
            "data": data,
            "title": ranked.title,
            "question": cut(ranked.case.question, TEXT_CHARACTERS),
            "evidence": cut(ranked.case.evidence, TEXT_CHARACTERS),
            "answerable": ranked.case.answerable,
        }
        for ranked, data in zip(ranking, ranking_data(ranking), strict=True)
        if data["evidence"]
    ]
    text = template(Path(__file__).parent / "ranking.html.jinja").render(
        title="Golds to look at",
        suspected=suspected,
        shown=suspected[:MAX_PAGE_CASES],
        cases=pluralize(len(ranking), "case"),
        summary=summary,
        notes=list(summary_lines(summary)),
        cut=lambda query: cut(query, QUERY_CHARACTERS),
        **assets(),
    )
    return text.encode(errors="backslashreplace")
