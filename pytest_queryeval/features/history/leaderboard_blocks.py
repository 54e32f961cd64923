"""A leaderboard as tables and sentences; its ranking as CSV and as a LaTeX table."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pytest_queryeval.core.errors import ReportError, did_you_mean
from pytest_queryeval.core.model import ALPHA
from pytest_queryeval.features.history.leaderboard import MIN_GROUP, Leaderboard, System
from pytest_queryeval.reports import check_writable
from pytest_queryeval.reports.blocks import (
    NAME_CHARACTERS,
    Block,
    Sentence,
    Table,
    Untrusted,
    guard_cell,
    markdown_lines,
)
from pytest_queryeval.reports.sections import (
    MAX_EXAMPLES,
    baseline_blocks,
    baseline_counts,
    difference_counts,
    leading_names,
)
from pytest_queryeval.results.aggregation import reached_count
from pytest_queryeval.text.formatting import (
    cut_middle,
    escape_invisible,
    format_interval,
    format_score,
    p_text,
    pluralize,
    signed,
)

MAX_METRICS = 100  # next to that of the ranking
RANKING_HEADER = (
    *("system", "rank", "mean", "95 % interval", "n"),
    *("difference", "95 % interval", "p", "passed", "cases"),
)
OTHER_SIDES: Mapping[Literal["worse", "better", "others"], str] = {
    "worse": "with a worse score",
    "better": "with a better score",
    "others": "that differ between these two only",
}
TESTS: Mapping[Literal["mcnemar", "sign_flip"], str] = {
    "mcnemar": "exact McNemar test",
    "sign_flip": "paired randomisation test",
}
CSV_HEADER = (
    *("rank", "system", "metric", "n", "mean", "mean_low", "mean_high"),
    *("difference", "difference_low", "difference_high", "p", "test", "passed", "cases"),
)
# Characters that are special to LaTeX, or that its oldest font encoding prints as other ones.
LATEX = str.maketrans(
    {
        **{character: f"\\{character}" for character in "%&_#${}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "`": "`{}",
        "'": "'{}",
        '"': "''{}",
        "-": "-{}",  # two of them are another character
    }
)


def check_targets(targets: Iterable[Path], suffixes: Collection[str], what: str) -> None:
    """Raise `ReportError` for a target with a suffix that is not in `suffixes`, or that cannot be written.

    `what` is the name of the output in the message.
    """
    for target in targets:
        if target.suffix not in suffixes:
            hint = did_you_mean(target.suffix, suffixes)
            raise ReportError(f"no {what} as '{target.suffix}' for {target}{hint}")
        check_writable(target)


def json_document(value: object) -> bytes:
    """Return a value as the content of a JSON file."""
    return f"{json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1)}\n".encode(errors="backslashreplace")


def markdown_document(blocks: Iterable[Block]) -> bytes:
    """Return blocks as the content of a Markdown file."""
    return ("\n".join(markdown_lines(blocks)) + "\n").encode(errors="backslashreplace")


def leaderboard_blocks(board: Leaderboard) -> Iterator[Block]:
    """Yield who is best, the ranking, means by group and of other metrics, and what makes systems hard to compare."""
    yield finding(board)
    yield ranked_by(board)
    yield ranking_table(board)
    if board["common"]:
        yield (note(board),)
    yield from missing_scores(board)
    if "baseline" not in board:  # whose blocks have both of these
        yield from suite_differences(board["systems"])
        yield from other_metrics(board["systems"])
    if board["groups"]:
        yield (f"means by group, of groups with at least {MIN_GROUP} common cases; the best ones have an asterisk",)
        yield from group_tables(board)
    if "baseline" in board:
        yield from baseline_blocks(board["baseline"])
    elif board["common"]:
        yield sides(board)


def finding(board: Leaderboard) -> Sentence:
    """Return a sentence that says which system is best, and which others may be as good.

    A system may be as good if its p is above ALPHA. Systems with the same best mean are level.
    """
    ranked = [system for system in board["systems"] if system["score"] is not None]
    if not ranked:
        return ("no system has a score of ", Untrusted(board["metric"]))
    best, *runners_up = ranked
    first = [system["name"] for system in ranked if system["rank"] == 1]
    unproven = [system["name"] for system in runners_up if system["difference"] and system["difference"]["p"] > ALPHA]
    mean = format_score(best["score"]["mean"] if best["score"] else None)
    if not runners_up:
        return (Untrusted(best["name"]), " is the only system with a score, ", mean)
    if len(first) > 1:
        return (*leading_names(first, MAX_EXAMPLES), f" are level with {mean}")
    leads = (Untrusted(best["name"]), f" is best with {mean}; ")
    if unproven:
        return (*leads, *leading_names(unproven, MAX_EXAMPLES), " may be as good")
    subject = "the difference" if len(runners_up) == 1 else "each difference"
    return (*leads, f"{subject} to it is significant (p at most {ALPHA:g})")


def ranked_by(board: Leaderboard) -> Sentence:
    """Return a sentence fragment on the number of systems, the metric that ranks them, and the compared cases."""
    first = ", the lowest first" if board["better"] == "lower" else ""
    cases, common = board["cases"], board["common"]
    some = f"{pluralize(common, 'common one')} of " if common < cases else ""
    return (
        f"{pluralize(len(board['systems']), 'system')} by the mean of ",
        Untrusted(board["metric"]),
        f" over {some}{pluralize(cases, 'case')}{first}",
    )


def ranking_table(board: Leaderboard) -> Table:
    """Return the table of the ranking; `note` explains its columns."""
    header = [p_header(board) if name == "p" else name for name in RANKING_HEADER]
    return Table(tuple(header), [_ranking_row(system) for system in board["systems"]])


def p_header(board: Leaderboard) -> str:
    """Return the header of the column of p values, which says whether they are adjusted."""
    return "p adjusted" if _is_adjusted(board) else "p"


def _is_adjusted(board: Leaderboard) -> bool:
    """Return whether the p values of a ranking are adjusted, which needs several differences."""
    return len(board["systems"]) > 2


def note(board: Leaderboard) -> str:
    """Return a sentence that explains the columns of the ranking."""
    adjusted = ", p adjusted: for the number of systems" if _is_adjusted(board) else ""
    return (
        "difference: to the best system, over the same cases; p: two-sided paired test of 'no difference'"
        f"{adjusted}; those with one above 0.05 may be as good as the best"
    )


def _ranking_row(system: System) -> Sequence[str]:
    score, difference, counts = system["score"], system["difference"], system["totals"]
    return (
        Untrusted(system["name"]),
        "-" if system["rank"] is None else str(system["rank"]),
        format_score(score["mean"] if score else None),
        (format_interval(score["ci95"]) if score else "") or "-",
        f"{score['n'] if score else 0:,}",
        signed(difference["change"]) if difference else "-",
        (format_interval(difference["ci95"], signed) if difference else "") or "-",
        p_text(difference["p"]) if difference else "-",
        f"{counts['passed']:,}",
        f"{reached_count(counts):,}",
    )


def missing_scores(board: Leaderboard) -> Iterator[Sentence]:
    """Yield for each system how many of the scored cases it lacks, by the reason; nothing if it lacks none."""
    if board["common"] == board["scored"]:
        return
    shared = f"only {board['common']:,} of {pluralize(board['scored'], 'case')} with a score of "
    yield (
        shared,
        Untrusted(board["metric"]),
        f" {'has' if board['common'] == 1 else 'have'} one in all ranked systems, and only these count",
    )
    for system in board["systems"]:
        if system["score"] is not None:
            for reason, nodeids in system["left_out"].items():
                cases = pluralize(len(nodeids), "case")
                yield (Untrusted(system["name"]), f": {cases} {reason}: ", *leading_names(nodeids, MAX_EXAMPLES))


def suite_differences(systems: Sequence[System]) -> Iterator[Sentence]:
    """Yield how suites differ from that of the best system, and what the best system's suite leaves out."""
    best = Untrusted(systems[0]["name"])
    for changes, names in _names_by_changes(systems, "changes").items():
        yield ("changed besides the system in ", *leading_names(names), " against ", best, f": {changes}")
    for changes, names in _names_by_changes(systems, "eased").items():
        yield ("changed besides the system in ", best, " against ", *leading_names(names), f": {changes}")


def _names_by_changes(systems: Sequence[System], member: Literal["changes", "eased"]) -> dict[str, list[str]]:
    """Return the names of the systems by the text of their changes."""
    names_by_changes: dict[str, list[str]] = {}
    for system in systems:
        if changes := [f"{change['what']} ({pluralize(len(change['cases']), 'case')})" for change in system[member]]:
            names_by_changes.setdefault(", ".join(changes), []).append(system["name"])
    return names_by_changes


def group_tables(board: Leaderboard) -> Iterator[Table]:
    """Yield a table of means for each group; the best means have an asterisk."""
    for group, values in board["groups"].items():
        names = [system["name"] for system in board["systems"] if system["score"] is not None]
        rows = [
            (
                Untrusted(value),
                f"{group_means['n']:,}",
                *(
                    f"{format_score(group_means['means'][name])}{'*' if name in group_means['best'] else ' '}"
                    for name in names
                ),
            )
            for value, group_means in values.items()
        ]
        yield Table((group, "n", *map(Untrusted, names)), rows)


def other_metric_names(systems: Sequence[System]) -> list[str]:
    """Return the distinct names of all metrics that systems have, except that of the ranking."""
    return list(dict.fromkeys(name for system in systems for name in system["metrics"]))


def other_metrics(systems: Sequence[System]) -> Iterator[Block]:
    """Yield a table of means of the other metrics, with whichever are fewer as columns: systems or metrics.

    A sentence follows if there are more than MAX_METRICS metrics.
    """
    names = other_metric_names(systems)
    shown_names = names[:MAX_METRICS]
    if not shown_names:
        return
    columns: list[list[str]] = []
    for name in shown_names:
        means = [system["metrics"].get(name) for system in systems]
        differ = len({mean["n"] for mean in means if mean}) > 1
        numbers = [f" (n {mean['n']:,})" if differ and mean else "" for mean in means]
        cells = [format_score(mean["mean"] if mean else None) for mean in means]
        columns.append([Untrusted(name), *map("".join, zip(cells, numbers, strict=True))])
    corner_and_systems = ["mean", *(Untrusted(system["name"]) for system in systems)]
    if len(systems) < len(shown_names):
        yield Table(tuple(corner_and_systems), columns)
    else:
        header, *rows = zip(corner_and_systems, *columns, strict=True)
        yield Table(header, rows)
    if len(names) > len(shown_names):
        yield (f"and {pluralize(len(names) - len(shown_names), 'metric')} more: the JSON form has all",)


def sides(board: Leaderboard) -> Sentence:
    """Return a sentence on how many cases changed sides from the first report to the last, or only their score."""
    differing = board["differing"]
    ends = ("from ", Untrusted(differing["first"]), " to ", Untrusted(differing["last"]), ": ")
    if "baseline" in board:
        return (*ends, baseline_counts(board["baseline"]))
    regressions, fixes, errors = (len(differing[name]) for name in ("regressed", "fixed", "errors"))
    counts = difference_counts(regressions=regressions, fixes=fixes, errors=errors).values()
    scores = (f"{len(differing[name]):,} {word}" for name, word in OTHER_SIDES.items() if differing[name])
    return (f"of {pluralize(board['common'], 'common case')}, ", *ends, ", ".join((*counts, *scores)))


def leaderboard_csv(board: Leaderboard) -> bytes:
    """Return the ranking as CSV with all digits, in UTF-8; the means of other metrics are the last columns."""
    names = other_metric_names(board["systems"])
    file = io.StringIO(newline="")
    writer = csv.writer(file)
    writer.writerow([*CSV_HEADER, *(guard_cell(f"mean {name}") for name in names)])
    for system in board["systems"]:
        score, difference, counts = system["score"], system["difference"], system["totals"]
        writer.writerow(
            [
                *(system["rank"], guard_cell(system["name"]), guard_cell(board["metric"])),
                *((score["n"], score["mean"], *(score["ci95"] or (None, None))) if score else (0, None, None, None)),
                *((difference["change"], *(difference["ci95"] or (None, None))) if difference else (None, None, None)),
                *((difference["p"], difference["test"]) if difference else (None, None)),
                *(counts["passed"], reached_count(counts)),
                *(mean["mean"] if (mean := system["metrics"].get(name)) else None for name in names),
            ]
        )
    return file.getvalue().encode()


def leaderboard_latex(board: Leaderboard) -> bytes:
    """Return the ranking as a LaTeX table for the package booktabs, with the number of cases and the test."""
    tests = dict.fromkeys(TESTS[system["difference"]["test"]] for system in board["systems"] if system["difference"])
    adjusted = ", adjusted by Holm's method" if _is_adjusted(board) else ""
    tested = f", difference to the best, and its $p$ by the {' or the '.join(tests)}{adjusted}" if tests else ""
    cases = pluralize(board["common"], "common case")
    lines = [
        r"% \usepackage{booktabs}",
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{Mean {_latex_text(board['metric'])} over {cases} with its 95\,\% interval{tested}.}}",
        r"  \label{tab:leaderboard}",
        r"  \begin{tabular}{rlrrrrr}",
        r"    \toprule",
        r"    & system & mean & 95\,\% interval & difference & 95\,\% interval & $p$ \\",
        r"    \midrule",
    ]
    for system in board["systems"]:
        rank, name = ("--" if system["rank"] is None else str(system["rank"])), _latex_text(system["name"])
        _, _, mean, ci95, _, change, change_ci95, p, *_ = _ranking_row(system)
        numbers = map(_latex_number, (mean, ci95, change, change_ci95, p))
        lines.append(rf"    {' & '.join((rank, name, *numbers))} \\")
    lines += [r"    \bottomrule", r"  \end{tabular}", r"\end{table}", ""]
    return "\n".join(lines).encode(errors="backslashreplace")


def _latex_text(text: str) -> str:
    return cut_middle(escape_invisible(" ".join(text.split())), NAME_CHARACTERS).translate(LATEX)


def _latex_number(text: str) -> str:
    """Return a number or an interval with mathematical signs in LaTeX; two hyphens for a missing value `-`."""
    number = re.sub("[-+<]", r"$\g<0>$", text) if text != "-" else "--"
    return f"[{number.replace(' to ', ', ')}]" if " to " in number else number
