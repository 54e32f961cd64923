"""Which settings can have an effect on which cases, by what keys, metrics and kinds declare.

A setting that its kind or its metrics cannot use is refused on a case, and in a suite of one kind; in a folder
`queryeval check` reports it.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from typing import TypeAlias

from pytest_queryeval.core.metric import RUN_METRICS
from pytest_queryeval.core.model import ABSTENTION, OWN_METRICS, Case, Criterion
from pytest_queryeval.documents.document import Node, Problems
from pytest_queryeval.documents.values import entries, items, text
from pytest_queryeval.languages import KINDS, Kind
from pytest_queryeval.metrics import METRICS, applies_to, follows_compare, metric_of
from pytest_queryeval.suites.expectations import EXPECT
from pytest_queryeval.suites.keys import COMPARE, KEYS, has_tables

SettingPath: TypeAlias = tuple[str, ...]  # a key, and the names of entries below it that have effects of their own
UNFOLLOWED = "no metric that uses it is computed"
# The cases that metrics do not score, by the criterion of a metric.
_WITHOUT: Mapping[Criterion, str] = {
    "gold": "a case without a gold",
    "expect": "a case without `expect`",
    "scope": "a case without `scope`",
    "answer": "a case without an answer",
    "abstention": "an answerable case",
}
_COLUMNS = ("compare", "numbers", "columns")
# Mappings that are united with those of levels above.
MERGED = {("compare",), ("compare", "numbers"), ("compare", "json"), ("compare", "json", "numbers")}


def settings_of(level: Node, keys: Container[str] = KEYS) -> Iterator[tuple[SettingPath, Node]]:
    """Yield the path and the node of each setting of a level, for the given `keys` only.

    Entries of `metrics`, `thresholds`, `options`, `compare` and `expect` are settings of their own.
    """
    for key, node in entries(level).items():
        if key not in keys:
            continue
        if KEYS[key].inheritance == "merged" and not node.value:
            yield (key,), node
        elif key in ("metrics", "thresholds"):
            metric_nodes = (
                entries(node).items() if node.form == "mapping" else [(text(item), item) for item in items(node)]
            )
            yield from (((key, name), at) for name, at in metric_nodes)
        elif key == "options":
            for owner, options in entries(node).items():
                yield from [((key, owner), options)] * (not options.value)
                yield from (((key, owner, option), at) for option, at in entries(options).items())
        elif key == "compare":
            yield from _entries_below(node, ("compare",))
        elif key == EXPECT:
            removed = [((key, part), at) for part, at in entries(node).items() if at.empty]
            yield from removed if len(removed) == len(entries(node)) else [*removed, ((key,), node)]
        else:
            yield (key,), node


def _entries_below(node: Node, path: SettingPath) -> Iterator[tuple[SettingPath, Node]]:
    for name, value in entries(node).items():
        if (*path, name) in {*MERGED, _COLUMNS} and value.value:
            yield from _entries_below(value, (*path, name))
        else:
            yield (*path, name), value


def why_nothing_changes(path: SettingPath, node: Node, case: Case, above: Sequence[Node]) -> str:
    """Return why an empty value, or null, changes nothing that the levels above state.

    Empty if it changes something.
    """
    if KEYS[path[0]].inheritance not in ("merged", "by group") or not (node.empty or node.value in ([], {})):
        return ""
    if len(path) == 1 or path in MERGED:
        return "it is empty"
    kind = KINDS[case.settings.kind]
    if path[0] == "thresholds" and (path[1] in kind.default_thresholds or path[1] in OWN_METRICS.values()):
        return ""
    forms = (path, ("compare", *path[2:]), ("compare", "json", *path[1:])) if path[0] == "compare" else (path,)
    if any(_stated_at(form, level) is not None for form in forms for level in above):
        return ""
    return "no level above states it" if node.empty else "it is empty"


def _stated_at(path: SettingPath, level: Node) -> Node | None:
    node: Node | None = level
    for key in path:
        node = node.value.get(key) if node is not None and isinstance(node.value, dict) else None
    return node


def is_replaced(path: SettingPath, case: Case, nearer: Sequence[Node]) -> bool:
    """Return whether a level nearer to the case has a value that replaces the value at a path.

    Some mappings are replaced as a whole; settings that levels combine are never replaced.
    """
    match path:  # nearer levels replace these as a whole
        case ("options", _, _):
            path = path[:2]
        case (*mapping, _) if tuple(mapping) == _COLUMNS:
            path = _COLUMNS
        case ("metrics", _):
            path = path[:1]
        case ("thresholds", name):
            return any(_replaces_threshold(entries(level).get("thresholds"), name, case) for level in nearer)
        case (key,) if KEYS[key].inheritance != "nearest":
            return False
    return any(_stated_at(path, level) is not None for level in nearer)


def _replaces_threshold(thresholds: Node | None, name: str, case: Case) -> bool:
    """Return whether the thresholds of a nearer level replace the threshold of a metric.

    `{}` does, and so does a threshold of the same metric or of its group.
    """
    if thresholds is None:
        return False
    return not entries(thresholds) or any(
        other == name
        or (
            not limits.empty
            and METRICS[other].group == METRICS[name].group
            and not {name, other} & {*OWN_METRICS.values()}
            and applies_to(other, case.settings.kind, criteria=case.criteria)
        )
        for other, limits in entries(thresholds).items()
    )


def why_unused(
    path: SettingPath, kind: Kind, *, criteria: Collection[Criterion] | None, computed: Collection[str]
) -> str:
    """Return why cases of a kind cannot use a setting; empty if some of them can.

    `computed` are the metrics that are computed for them; `criteria` is None if they may have any.
    """
    match path:
        case ("metrics" | "thresholds", name):
            return why_inapplicable(name, kind, criteria=criteria)
        case ("options", owner, option):
            return _why_unused_option(owner, option, kind, computed)
        case ("compare", name, *_) if not (KEYS["compare"].used_by(kind) and COMPARE[name].used_by(kind)):
            return _not_of(kind)
        case ("compare", "numbers", "columns", *_) if not has_tables(kind):
            return _not_of(kind)
        case ("compare", "json", name, *_) | ("compare", name, *_):
            is_followed = any(follows_compare(metric, name) for metric in computed)
            return "" if is_followed else UNFOLLOWED
        case _:
            return "" if KEYS[path[0]].used_by(kind) else _not_of(kind)


def why_inapplicable(metric: str, kind: Kind, *, criteria: Collection[Criterion] | None) -> str:
    """Return why a metric does not score cases of a kind with these criteria; empty if it does.

    None means any criteria.
    """
    if not applies_to(metric, kind.name):
        kinds = ", ".join(sorted(name for name in KINDS.available() if applies_to(metric, name)))
        return f"metric '{metric}' is for {kinds}, not for {kind.name}"
    if applies_to(metric, kind.name, criteria=criteria):
        return ""
    if criteria is not None and "answer" not in criteria:
        return f"metric '{metric}' does not apply to `answerable: false`, only '{ABSTENTION}' does"
    return f"metric '{metric}' does not apply to {_WITHOUT[METRICS[metric].criterion]}"


def _why_unused_option(owner: str, option: str, kind: Kind, computed: Collection[str]) -> str:
    if owner not in KINDS:
        return "" if owner in computed or owner in RUN_METRICS else f"the metric '{owner}' is not computed"
    if owner != kind.name:
        return _not_of(kind)
    metrics = [name for name in METRICS.available() if option in METRICS[name].options and applies_to(name, kind.name)]
    if not metrics or any(option in METRICS[name].options for name in computed):
        return ""
    return f"no computed metric has it, as {' and '.join(metrics)} would"


def why_idle_option(option: str, owner: str, case: Case, computed: Collection[str]) -> str:
    """Return which other option the case lacks so that an option has an effect; empty if it needs none or has it."""
    why = ""
    for name in computed:
        if option not in METRICS[name].options or (owner not in KINDS and owner != name):
            continue
        need = METRICS[name].needs.get(option)
        if need is None or metric_of(case.settings, name).options.get(need[0]) == need[1]:
            return ""
        why = f"it needs `{need[0]}: {need[1]}`"
    return why


def _not_of(kind: Kind) -> str:
    return f"cases of kind {kind.name} do not use it"


def check_effects(
    node: Node,
    keys: Container[str],
    kind: Kind,
    problems: Problems,
    *,
    criteria: Collection[Criterion] | None = None,
    computed: Collection[str] | None,
) -> None:
    """Add a problem for each setting of a level that its cases, all of one kind, cannot use.

    Only settings of the given `keys` are checked. `computed` are the metrics that are computed for some of the cases;
    None if that is not known.
    """
    for path, at in settings_of(node, keys):
        if path[0] in ("options", "compare") and computed is None:
            continue
        why = why_unused(path, kind, criteria=criteria, computed=computed or ())
        if why and path[0] in ("metrics", "thresholds"):
            instead = "" if applies_to(path[1], kind.name) else f", or write {kind.default_metrics[0]}"
            problems.append(at.problem(f"{why}: remove it{instead}"))
        elif why:
            instead = ", or add one to `metrics`, such as execution_accuracy" if why == UNFOLLOWED else ""
            problems.append(at.problem(f"`{': '.join(path)}` has no effect, because {why}: remove it{instead}"))
