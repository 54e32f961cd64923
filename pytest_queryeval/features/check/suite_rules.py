"""The rules on suites as a whole: settings and sources that no case uses, questions and golds that occur twice."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from pytest_queryeval.core.errors import Finding, case_finding, did_you_mean
from pytest_queryeval.documents.document import Node
from pytest_queryeval.documents.values import entries, items, text
from pytest_queryeval.languages import KINDS
from pytest_queryeval.metrics import METRICS, applies_to
from pytest_queryeval.suites import CaseLevels, ignored_rules
from pytest_queryeval.suites.keys import KEYS

# Settings that cases of these kinds cannot use; kinds of other packages may use all of them.
UNUSED_BY: Mapping[str, frozenset[str]] = {
    "source": frozenset({"json", "sdmx"}),
    "gold_source": frozenset({"json", "sdmx"}),
    "max_rows": frozenset({"json", "sdmx"}),
    "allow_empty": frozenset({"json", "sdmx"}),
    "db_schema": frozenset({"sparql", "json", "sdmx"}),
    "json_schema": frozenset({"sql", "sparql", "sdmx"}),
    "structure": frozenset({"sql", "sparql", "json"}),
}
COMPARE_UNUSED_BY: Mapping[str, frozenset[str]] = {"rdf_terms": frozenset({"sql"})}
NO_TABLES = frozenset({"json", "sdmx"})  # `compare` is about tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A mapping with settings."""

    node: Node
    cases: Sequence[CaseLevels]
    """The cases below it."""
    path: tuple[Node, ...]
    """The levels from the top down to it."""

    def nearer(self, case: CaseLevels) -> tuple[Node, ...]:
        """Return the levels of a case that are nearer to it than this one."""
        return case.all[len(self.path) :]

    def finding(self, rule: str, node: Node, message: str) -> Finding:
        """Return a finding about a node of this level."""
        return Finding(
            rule=rule,
            location=node.location,
            message=message,
            case=self.cases[0].case.id if self.node is self.cases[0].case_node else None,
            silenced=ignored_rules(self.path).get(rule, ""),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Suites:
    """The suites that are checked."""

    folder: Path | None
    """The folder with all of them; None for a part of a folder, whose settings other suites may use."""
    cases: Sequence[CaseLevels]
    columns: Mapping[CaseLevels, Collection[str]]
    """The names of the columns of gold in lower case, of cases whose golds are tables and known."""

    def levels(self) -> Iterator[Level]:
        """Yield every level all of whose cases are known."""
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
KeyPath: TypeAlias = tuple[str, ...]  # a key, and the names of entries below it that have effects of their own


def stale_setting(suites: Suites) -> Iterator[Finding]:
    """Find keys, options and thresholds that no case below can use."""
    for level in suites.levels():
        for path, node in _settings(level.node):
            replaced = [_is_replaced(path, case, level.nearer(case)) for case in level.cases]
            if any(_uses(case, path) for case, gone in zip(level.cases, replaced, strict=True) if not gone):
                continue
            why = "every case has a nearer value" if all(replaced) else "no case has the kind or requests the metric"
            message = f"`{': '.join(path)}` has no effect on any case below, since {why}: remove it"
            yield level.finding("stale-setting", node, message)


def _settings(level: Node) -> Iterator[tuple[KeyPath, Node]]:
    """Yield the settings of a level that cases may be unable to use."""
    for key, node in entries(level).items():
        if key in ("metrics", "thresholds"):
            metric_nodes = (
                entries(node).items() if node.form == "mapping" else [(text(item), item) for item in items(node)]
            )
            yield from (((key, name), at) for name, at in metric_nodes)
        elif key == "options":
            for owner, options in entries(node).items():
                yield from (((key, owner, option), at) for option, at in entries(options).items())
        elif key == "compare":
            yield from _entries_below(node, ("compare",), {("compare", "numbers"), ("compare", "numbers", "columns")})
        # Keys that have no effect where every case has a nearer value, or a kind that cannot use them.
        elif key in UNUSED_BY or KEYS[key].inheritance == "nearest":
            yield (key,), node


def _entries_below(node: Node, path: KeyPath, merged: Collection[KeyPath]) -> Iterator[tuple[KeyPath, Node]]:
    """Yield the entries of a mapping; those at `merged` paths are replaced by their own entries."""
    for name, value in entries(node).items():
        if (*path, name) in merged:
            yield from _entries_below(value, (*path, name), merged)
        else:
            yield (*path, name), value


def _is_replaced(path: KeyPath, case: CaseLevels, nearer: Sequence[Node]) -> bool:
    """Return whether one of the nearer levels of a case has a value that replaces the one at a path."""
    match path:  # nearer levels replace these as a whole
        case ("options", _, _):
            path = path[:2]
        case ("metrics", _):
            path = path[:1]
        case ("thresholds", name):
            return any(_replaces_threshold(entries(level).get("thresholds"), name, case) for level in nearer)
    for level in nearer:
        node: Node | None = level
        for key in path:
            node = node.value.get(key) if node is not None and isinstance(node.value, dict) else None
        if node is not None:
            return True
    return False


def _replaces_threshold(thresholds: Node | None, name: str, case: CaseLevels) -> bool:
    """Return whether the thresholds of a nearer level replace the one of a metric: those of its group do, and `{}`."""
    if thresholds is None:
        return False
    return not entries(thresholds) or any(
        other == name
        or (not limits.empty and METRICS[other].group == METRICS[name].group and _uses(case, ("thresholds", other)))
        for other, limits in entries(thresholds).items()
    )


def _uses(case: CaseLevels, path: KeyPath) -> bool:
    """Return whether a setting at a path can have an effect on a case."""
    kind = case.case.settings.kind
    match path:
        case ("metrics" | "thresholds", name):
            return applies_to(name, kind, answerable=case.case.answerable)
        case ("options", owner, option):
            # Whether the case is scored with an option of a metric, or of its kind.
            gates = (gate.required for folder in case.suite.folders for gate in folder.gates)
            gated = {gate["metric"] for gate in gates if gate["metric"] in METRICS}
            requested = [name for name in {*case.case.settings.requested_metrics, *gated} if applies_to(name, kind)]
            if owner not in KINDS:
                return owner in requested
            if owner != kind:
                return False
            of_metrics = any(option in METRICS[name].options for name in METRICS.available() if applies_to(name, kind))
            return not of_metrics or any(option in METRICS[name].options for name in requested)
        case ("compare", name, *_):
            return kind not in COMPARE_UNUSED_BY.get(name, frozenset()) | NO_TABLES
        case _:
            return kind not in UNUSED_BY.get(path[0], frozenset())


def unknown_column(suites: Suites) -> Iterator[Finding]:
    """Find columns with their own tolerance that no gold below has."""
    for level in suites.levels():
        column_names = [suites.columns[case] for case in level.cases if case in suites.columns]
        for path, node in _settings(level.node) if column_names else ():
            if path[:3] == ("compare", "numbers", "columns") and not any(
                path[3].casefold() in names for names in column_names
            ):
                hint = did_you_mean(path[3], {name for names in column_names for name in names}) or ": correct the name"
                message = f"`{': '.join(path)}`: no gold below has this column{hint}"
                yield level.finding("unknown-column", node, message)


def unused_source(suites: Suites) -> Iterator[Finding]:
    """Find named sources that no case below runs on."""
    for level in suites.levels():
        source_nodes = entries(level.node).get("sources")
        used_sources = {(source.name, source.location) for case in level.cases for source in case.case.settings.sources}
        for name, node in entries(source_nodes).items() if source_nodes is not None else ():
            if (name, node.location) not in used_sources:
                message = f"no case below runs on the source '{name}': remove it, or name it under `source`"
                yield level.finding("unused-source", node, message)


def duplicate_question(suites: Suites) -> Iterator[Finding]:
    """Find cases that ask the same as another one: text, evidence, conversation, source and schema are the same."""
    first: dict[Hashable, CaseLevels] = {}
    for levels in _to_run(suites):
        case = levels.case
        question = " ".join(case.question.split())
        if not question:
            continue
        messages = tuple((message.role, message.content) for message in case.conversation)
        key = (_place(levels), question, " ".join(case.evidence.split()), messages)
        if (first_case := first.setdefault(key, levels)) is not levels:
            message = f"the question is that of {_case_name(first_case, levels)}: remove one, or ask for something else"
            yield case_finding("duplicate-question", levels.case, message)


def duplicate_gold(suites: Suites) -> Iterator[Finding]:
    """Find cases with another question and the gold query of another case, which then counts twice."""
    first: dict[Hashable, CaseLevels] = {}
    for levels in _to_run(suites):
        case, kind = levels.case, KINDS[levels.case.settings.kind]
        queries = [gold.query for gold in case.golds if gold.query is not None and kind.has_queries]
        for text_ in dict.fromkeys(kind.normal_text(query, case.settings.gold_settings.dialect) for query in queries):
            first_case = first.setdefault((_place(levels), text_), levels)
            if first_case is not levels and first_case.case.question.split() != case.question.split():
                message = f"gold is that of {_case_name(first_case, levels)}, which has another question: check both"
                yield case_finding("duplicate-gold", levels.case, message)
                break


def _to_run(suites: Suites) -> Iterator[CaseLevels]:
    """Yield the cases that are not skipped, each once: several suites may name the file of a case."""
    cases = {(levels.case.location, levels.case.id): levels for levels in suites.cases if levels.case.skip is None}
    yield from cases.values()


def _place(levels: CaseLevels) -> Hashable:
    """Return what a case's queries are about."""
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
    "duplicate-question": duplicate_question,
    "duplicate-gold": duplicate_gold,
}
