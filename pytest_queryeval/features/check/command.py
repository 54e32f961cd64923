"""Examines suites before a system is evaluated by them: runs every gold query, and calls no predictor."""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_queryeval.cli.conftests import read_suites, root_of
from pytest_queryeval.cli.output import Result, notifier, with_progress
from pytest_queryeval.core.errors import CHECK_RULES, Finding, SourceError
from pytest_queryeval.documents.document import file_at
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.check.gold_rules import findings_of, run_golds
from pytest_queryeval.features.check.suite_rules import SUITE_RULES, Suites, unused_ignores
from pytest_queryeval.suites import CaseLevels, read_levels
from pytest_queryeval.text.formatting import one_line, pluralize

EXAMPLE = "queryeval check suites --strict"
OK, FOUND = 0, 1
MESSAGE_CHARACTERS = 1_000
# What they find depends on time, chance, the state of servers, or which suites are checked together.
VARYING_RULES = frozenset(
    {
        *("gold-fails", "gold-slow", "gold-unstable", "unknown-term", "lost-answer", "cut-answer"),
        *("review-conflict", "review-future", "review-stale"),
        *("uncollected-suite", "duplicate-question", "duplicate-gold"),
    }
)
_tell = notifier("check")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments: the suites, and how they are checked."""
    parser.add_argument("path", type=Path, metavar="PATH", help="a suite file, or a folder with suites")
    parser.add_argument("--no-run", action="store_true", help="run no queries: only rules that read the suites")
    parser.add_argument("--strict", action="store_true", help="exit with 1 for warnings too")


def run(arguments: argparse.Namespace) -> Result:
    """Check the suites, and return the findings; the status is 1 if there is an error, or with `--strict` a warning.

    Otherwise it is 0. Raise `SuiteError` for suites that cannot be read.
    """
    suites, left_out = read_suites(arguments.path, check_files=True)
    for why in left_out:
        _tell(f"not checked: {why}")
    start = file_at(arguments.path).path
    # Suites that were left out may use what the others do not.
    folder = start if start.is_dir() and not left_out else None
    cases = [case for suite in suites for case in read_levels(suite)]
    columns: dict[CaseLevels, set[str]] = {}
    all_findings = [*_gold_findings(cases, columns, run_queries=not arguments.no_run)]
    checked_suites = Suites(root=root_of([arguments.path]), folder=folder, cases=cases, columns=columns)
    all_findings += dict.fromkeys(finding for suite in suites for finding in suite.findings)
    all_findings += [finding for rule in SUITE_RULES.values() for finding in rule(checked_suites)]
    judged_rules = SUITE_RULES if arguments.no_run else CHECK_RULES
    all_findings += unused_ignores(checked_suites, all_findings, judged_rules.keys() - VARYING_RULES)
    all_findings.sort(key=lambda finding: (finding.location, finding.rule))
    findings = [finding for finding in all_findings if not finding.silenced]
    levels = Counter(finding.level for finding in findings)
    rules = Counter(finding.rule for finding in findings)
    silenced = len(all_findings) - len(findings)
    summary = (
        f"{pluralize(levels['error'], 'error')}, {pluralize(levels['warning'], 'warning')}"
        f" in {pluralize(len(cases), 'case')}" + (f"; {silenced:,} silenced" if silenced else "")
    )
    lines = []
    for finding in findings:
        about = "" if finding.case is None else f"case '{finding.case}': "
        message = one_line(f"{about}{finding.message}", MESSAGE_CHARACTERS)
        lines.append(f"{finding.location}: {finding.level} [{finding.rule}] {message}")
    return Result(
        status=FOUND if levels["error"] or (arguments.strict and findings) else OK,
        lines=[*lines, summary],
        data={"findings": [*map(_finding_json, findings)], "summary": dict(sorted(rules.items()))},
    )


def _gold_findings(
    cases: Sequence[CaseLevels], columns: dict[CaseLevels, set[str]], *, run_queries: bool
) -> Iterator[Finding]:
    """Yield the findings of all golds, and add the names of their columns in lower case to `columns`.

    Cases that are skipped or withdrawn are left out. A source that cannot answer gives one finding for all its cases.
    """
    faults: dict[str, list[CaseLevels]] = defaultdict(list)
    to_check = [levels for levels in cases if levels.case.skip is None and not levels.case.withdrawal]
    with Session(_tell) as session:
        for levels in with_progress(to_check, _tell, total=len(to_check)):
            try:
                for gold in run_golds(levels.case, session, run_queries=run_queries):
                    if gold.table is not None:
                        columns.setdefault(levels, set()).update(name.casefold() for name in gold.table.columns)
                    yield from findings_of(gold)
            except SourceError as error:
                faults[str(error)].append(levels)
    for message, failed in faults.items():
        case = failed[0].case.on_gold_source
        yield Finding(
            rule="gold-fails",
            location=(case.settings.source and case.settings.source.location) or case.location,
            message=f"{message} (golds of {pluralize(len(failed), 'case')} do not run)",
            case=case.id if len(failed) == 1 else None,
            silenced=case.settings.ignored_rules.get("gold-fails", ""),
        )


def _finding_json(finding: Finding) -> dict[str, object]:
    """Return a finding as the object that `--json` prints."""
    return {
        "rule": finding.rule,
        "level": finding.level,
        "path": finding.location.path.as_posix(),
        "line": finding.location.line,
        "case": finding.case,
        "message": one_line(finding.message, MESSAGE_CHARACTERS),
    }
