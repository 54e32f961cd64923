"""The rules on suites as a whole: settings and sources that no case uses, and repeated questions and golds."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from pytest_queryeval.core.errors import Finding, Location, case_finding, did_you_mean
from pytest_queryeval.core.gates import Gate
from pytest_queryeval.core.groups import GROUPS
from pytest_queryeval.core.model import Case, QueryOrAnswer, Source
from pytest_queryeval.documents.document import Node
from pytest_queryeval.documents.values import entries, items, text
from pytest_queryeval.engines.settings import VARIANTS
from pytest_queryeval.features.check.file_rules import uncollected_suites
from pytest_queryeval.languages import KINDS
from pytest_queryeval.predictors import PREDICTORS
from pytest_queryeval.results.gates.reach import (
    RULE,
    gate_remedy,
    harmless_gates,
    lenient_gates,
    shared_metric,
    undecided_cases,
    ungated_findings,
)
from pytest_queryeval.suites import CaseLevels, Suite, ignored_rules
from pytest_queryeval.suites.effects import (
    SettingPath,
    is_replaced,
    settings_of,
    why_idle_option,
    why_nothing_changes,
    why_unused,
)
from pytest_queryeval.suites.keys import KEYS, has_documents
from pytest_queryeval.suites.settings import FOLDER_FILE
from pytest_queryeval.text.formatting import pluralize


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A mapping with settings in a file, and the cases that it applies to."""

    node: Node
    cases: Sequence[CaseLevels]
    """The cases below this level, to which its settings apply."""
    path: tuple[Node, ...]
    """The levels from the top down to this level, which is the last."""

    def nearer(self, case: CaseLevels) -> tuple[Node, ...]:
        """Return the levels of a case that are nearer to the case than this level."""
        return case.all[len(self.path) :]

    def finding(self, rule: str, node: Node, message: str) -> Finding:
        """Return a finding about a node of this level, silenced if the level or a level above ignores the rule."""
        return Finding(
            rule=rule,
            location=node.location,
            message=message,
            case=self.cases[0].case.id if self.node is self.cases[0].case_node else None,
            silenced=ignored_rules(self.path).get(rule, ""),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Suites:
    """The suites that are checked, with what is known about their golds."""

    root: Path
    """The root folder of a run of these suites."""
    folder: Path | None
    """The folder of all suites; None if only a part of a folder is checked, whose settings others may use."""
    cases: Sequence[CaseLevels]
    columns: Mapping[CaseLevels, Collection[str]]
    """The columns of the golds of a case in lower case; only for cases whose golds are known tables."""

    def named_cases(self, cases: Iterable[CaseLevels]) -> Iterator[tuple[Case, str]]:
        """Yield each case with the path of its file relative to the root, by which gates name it."""
        for levels in cases:
            yield levels.case, self.relative_path(levels.case.location.path)

    def relative_path(self, path: Path) -> str:
        """Return a path relative to the root, with forward slashes."""
        return Path(os.path.relpath(path, self.root)).as_posix()

    def levels(self) -> Iterator[Level]:
        """Yield every level for which all cases below it are known."""
        below: dict[Hashable, list[CaseLevels]] = {}
        nodes_above: dict[Hashable, tuple[Node, ...]] = {}
        for case in self.cases:
            for place, node in enumerate(case.all):
                is_of_suite = node is case.case_node or node.file.path == case.suite.path
                if not is_of_suite and (self.folder is None or not node.file.folder.is_relative_to(self.folder)):
                    continue
                # Several suites may name the file of a case.
                key: Hashable = (node.file.path, node.line, case.case.id) if node is case.case_node else node.file.path
                below.setdefault(key, []).append(case)
                nodes_above.setdefault(key, case.all[: place + 1])
        for key, nodes in nodes_above.items():
            yield Level(node=nodes[-1], cases=below[key], path=nodes)


SuiteRule: TypeAlias = Callable[[Suites], Iterator[Finding]]


def stale_setting(suites: Suites) -> Iterator[Finding]:
    """Yield a finding for each key, option, threshold or source's `variants` without effect on any case below."""
    for level in suites.levels():
        for path, node in settings_of(level.node):
            reasons: dict[str, None] = {}
            for case in level.cases:
                is_gone = is_replaced(path, case.case, level.nearer(case))
                reason = why_nothing_changes(path, node, case.case, level.path[:-1])
                reason = reason or ("a nearer value applies" if is_gone else _why_stale(path, case, level.node))
                reasons[reason] = None
                if not reason:
                    break
            if "" not in reasons:
                why = "; ".join(reasons)
                message = f"`{': '.join(path)}` has no effect on any case below, because {why}: remove it"
                yield level.finding("stale-setting", node, message)
    yield from _stale_variants(suites)


def _stale_variants(suites: Suites) -> Iterator[Finding]:
    """Yield a finding for each source with `variants` on which no case below can run."""
    files = {level.node.location.path for level in suites.levels()}
    reasons: dict[Location, dict[str, str]] = {}  # with why the rule is ignored
    for levels in suites.cases:
        for source in levels.case.settings.sources:
            if VARIANTS in source.settings and source.location is not None and source.location.path in files:
                why = _why_no_variants(source, levels.case)
                reasons.setdefault(source.location, {})[why] = ignored_rules(levels.all).get("stale-setting", "")
    for location, ignored in reasons.items():
        if "" not in ignored:
            message = f"`{VARIANTS}` has no effect on any case below, because {'; '.join(ignored)}: remove it"
            silenced = next(iter(ignored.values()))
            yield Finding(rule="stale-setting", location=location, message=message, silenced=silenced)


def _why_no_variants(source: Source, case: Case) -> str:
    """Return the reason why a case does not run on the variants of its source; empty if it may."""
    if case.settings.gold_source is not None:
        return "golds run on `gold_source`" if source is case.settings.source else "predictions run on `source`"
    if all(gold.query is None for gold in case.golds):
        return "no gold is a query"
    is_query = not isinstance(case.predicted, QueryOrAnswer) or case.predicted.query is not None
    return "" if is_query else "no prediction is a query"


def unused_ignores(suites: Suites, findings: Collection[Finding], rules: Collection[str]) -> Iterator[Finding]:
    """Yield a finding for each of `rules` that a level ignores although its reason silenced no finding."""
    silenced = {(finding.rule, finding.silenced) for finding in findings}
    for level in suites.levels():
        ignored = entries(level.node).get("check")
        nodes = entries(entries(ignored)["ignore"]) if ignored is not None and "ignore" in entries(ignored) else {}
        for rule, node in nodes.items():
            if rule in rules and (rule, text(node)) not in silenced:
                message = f"`check: ignore: {rule}` has no effect: the rule finds nothing here: remove it"
                yield level.finding("stale-setting", node, message)


def _why_stale(path: SettingPath, levels: CaseLevels, level: Node) -> str:
    """Return the reason why a setting of a level has no effect on a case; empty if it has an effect."""
    case, kind = levels.case, KINDS[levels.case.settings.kind]
    computed = {*case.settings.requested_metrics, *levels.gated}
    if why := why_unused(path, kind, criteria=case.criteria, computed=computed):
        return why
    is_of_tables = path[0] == "compare" and path[1] != "json"
    if is_of_tables and has_documents(kind) and level.file.path.name == FOLDER_FILE:
        return "in a folder, cases of kind json follow `compare: {json: …}`"
    if path[0] == "options":
        return why_idle_option(path[2], path[1], case, computed)
    return KEYS[path[0]].idle(case, computed)


def unknown_column(suites: Suites) -> Iterator[Finding]:
    """Yield a finding for each column with its own tolerance that no gold answer below has."""
    for level in suites.levels():
        column_names = [suites.columns[case] for case in level.cases if case in suites.columns]
        for path, node in settings_of(level.node) if column_names else ():
            if path[:3] == ("compare", "numbers", "columns") and not any(
                path[3].casefold() in names for names in column_names
            ):
                hint = did_you_mean(path[3], {name for names in column_names for name in names}) or ": correct the name"
                message = f"`{': '.join(path)}`: no gold answer below has this column{hint}"
                yield level.finding("unknown-column", node, message)


def unknown_where(suites: Suites) -> Iterator[Finding]:
    """Yield a finding for each value in the `where` of a gate that no case below its folder has."""
    for level in suites.levels():
        gates = entries(level.node).get("gates")
        known_values: dict[str, set[str]] = {}
        for name, node in _conditions_of(gates) if gates is not None else ():
            if name not in known_values:
                named_cases = suites.named_cases(level.cases)
                known_values[name] = {value for case, path in named_cases for value in GROUPS[name].values(case, path)}
            if (value := text(node)) not in known_values[name]:
                hint = did_you_mean(value, known_values[name]) or ": correct it, or remove it"
                yield level.finding("unknown-where", node, f"no case below has the {name} '{value}'{hint}")


def _conditions_of(gates: Node) -> Iterator[tuple[str, Node]]:
    """Yield the groups that gates name and their values, including those under `not`."""
    for gate in items(gates):
        where = entries(gate).get("where")
        conditions = dict(entries(where)) if where is not None else {}
        excluded = conditions.pop("not", None)
        yield from conditions.items()
        yield from entries(excluded).items() if excluded is not None else ()


def unused_source(suites: Suites) -> Iterator[Finding]:
    """Yield a finding for each named source that no case below runs on."""
    for level in suites.levels():
        source_nodes = entries(level.node).get("sources")
        used_sources = {(source.name, source.location) for case in level.cases for source in case.case.settings.sources}
        for name, node in entries(source_nodes).items() if source_nodes is not None else ():
            if (name, node.location) not in used_sources:
                message = f"no case below runs on the source '{name}': remove it, or name it under `source`"
                yield level.finding("unused-source", node, message)


def nothing_required(suites: Suites) -> Iterator[Finding]:
    """Yield findings for cases whose wrong answers decide nothing, and for gates that any bad system meets."""
    by_suite: dict[Path, list[CaseLevels]] = {}
    for levels in suites.cases:
        by_suite.setdefault(levels.suite.path, []).append(levels)
    ungated: list[Case] = []
    by_place: dict[tuple[Location, str, str], list[Case]] = {}
    lenient: dict[Finding, None] = {}
    harmless = _harmless_gates(suites, [of_suite[0].suite for of_suite in by_suite.values()])
    harmless_only = [gate for gate, _ in harmless]
    for of_suite in by_suite.values():
        suite, silenced = of_suite[0].suite, of_suite[0].suite.values.get("check", {}).get(RULE, "")
        all_gates = [gate for folder in suite.folders for gate in folder.gates]
        gates = [gate for gate in all_gates if gate not in harmless_only]
        lenient |= dict.fromkeys(lenient_gates(gates, silenced))
        lenient |= {replace(finding, silenced=silenced): None for gate, finding in harmless if gate in all_gates}
        places = {levels.case.id: _thresholds_of(levels) for levels in of_suite}
        for case in undecided_cases(suites.named_cases(of_suite), gates):
            if case.settings.on_miss == "xfail" and case.settings.thresholds:
                ungated.append(case)
            else:
                key = places[case.id], case.settings.on_miss, case.settings.ignored_rules.get(RULE, "")
                by_place.setdefault(key, []).append(case)
    yield from lenient
    yield from ungated_findings(ungated)
    for (place, on_miss, silenced), cases in by_place.items():
        metric = shared_metric(cases)
        remedies = [f"write `thresholds: {{{metric or 'METRIC'}: 1}}`"] * (on_miss == "fail" or not metric)
        remedies += [gate_remedy(metric)] * bool(metric)
        problem = f"no threshold and no gate requires anything of the answers to {pluralize(len(cases), 'case')}"
        yield Finding(rule=RULE, location=place, message=f"{problem}: {', or '.join(remedies)}", silenced=silenced)


def _harmless_gates(suites: Suites, suite_files: Iterable[Suite]) -> list[tuple[Gate, Finding]]:
    """Return the `harmless_gates` of the folders for which all cases are known; empty for a part of a folder."""
    if suites.folder is None:
        return []
    folders = {folder.path: folder for suite in suite_files for folder in suite.folders}
    below = (folder for path, folder in folders.items() if path.is_relative_to(suites.folder))
    gates = [gate for folder in below for gate in folder.gates]
    return harmless_gates(gates, suites.named_cases(suites.cases), suites.relative_path)


def _thresholds_of(levels: CaseLevels) -> Location:
    """Return the place of a case's nearest thresholds; the place of the case if it has none."""
    nodes = [entries(level)["thresholds"] for level in levels.all if "thresholds" in entries(level)]
    return nodes[-1].location if nodes else levels.case.location


def missing_question(suites: Suites) -> Iterator[Finding]:
    """Yield findings for cases without a question that a predictor would be asked.

    Without a predictor, only cases in tables count.
    """
    cases_by_remedy: dict[tuple[Location, str], list[Case]] = {}
    for levels in _cases_to_run(suites):
        case, predictor = levels.case, levels.case.settings.predictor
        is_asked = case.row is not None if predictor is None else PREDICTORS[predictor.kind].calls
        if case.no_question and case.predicted is None and is_asked:
            cases_by_remedy.setdefault((case.location, case.no_question), []).append(case)
    for (location, remedy), cases in cases_by_remedy.items():
        others = f" (of {pluralize(len(cases), 'case')})" if len(cases) > 1 else ""
        yield case_finding("missing-question", cases[0], f"{remedy}{others}", location)


def duplicate_question(suites: Suites) -> Iterator[Finding]:
    """Yield a finding for each case with the question of an earlier case.

    Text, evidence, conversation, source and schema have to be the same.
    """
    first: dict[Hashable, CaseLevels] = {}
    for levels in _cases_to_run(suites):
        case = levels.case
        question = " ".join(case.question.split())
        if not question:
            continue
        messages = tuple((message.role, message.content) for message in case.conversation)
        key = (_queried_data(levels), question, " ".join(case.evidence.split()), messages)
        if (first_case := first.setdefault(key, levels)) is not levels:
            message = f"the question is that of {_case_name(first_case, levels)}: remove one, or ask for something else"
            yield case_finding("duplicate-question", levels.case, message)


def duplicate_gold(suites: Suites) -> Iterator[Finding]:
    """Yield a finding for each case with the gold query of an earlier case that has another question."""
    first: dict[Hashable, CaseLevels] = {}
    for levels in _cases_to_run(suites):
        case, kind = levels.case, KINDS[levels.case.settings.kind]
        queries = [gold.query for gold in case.golds if gold.query is not None and kind.has_queries]
        for text_ in dict.fromkeys(kind.normal_text(query, case.settings.gold_settings.dialect) for query in queries):
            first_case = first.setdefault((_queried_data(levels), text_), levels)
            if first_case is not levels and first_case.case.question.split() != case.question.split():
                name = _case_name(first_case, levels)
                message = f"the gold query is that of {name}, which has another question: check both"
                yield case_finding("duplicate-gold", levels.case, message)
                break


def _cases_to_run(suites: Suites) -> Iterator[CaseLevels]:
    """Yield the cases that are not skipped, each once, even if several suites name the file of a case."""
    cases = {(levels.case.location, levels.case.id): levels for levels in suites.cases if levels.case.skip is None}
    yield from cases.values()


def _queried_data(levels: CaseLevels) -> Hashable:
    """Return what identifies the data that a case's queries are about: kind, sources and schema."""
    case = levels.case
    return case.settings.kind, tuple(source.key for source in case.settings.sources), case.db_schema


def _case_name(first_case: CaseLevels, levels: CaseLevels) -> str:
    location, case_location = (case.row or case.location for case in (first_case.case, levels.case))
    is_line = location.path == case_location.path and not location.cell
    return f"'{first_case.case.id}' ({f'line {location.line}' if is_line else location})"


SUITE_RULES: Mapping[str, SuiteRule] = {
    "stale-setting": stale_setting,
    "unknown-column": unknown_column,
    "unused-source": unused_source,
    "uncollected-suite": uncollected_suites,
    "unknown-where": unknown_where,
    "nothing-required": nothing_required,
    "missing-question": missing_question,
    "duplicate-question": duplicate_question,
    "duplicate-gold": duplicate_gold,
}
