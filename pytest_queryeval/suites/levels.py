"""The levels of a case as nodes: the settings of its folders, those of its file, and the keys of the case."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pytest_queryeval.core.model import Case
from pytest_queryeval.documents.document import Node, Problems, file_at
from pytest_queryeval.documents.json_nodes import read_jsonl
from pytest_queryeval.documents.values import entries
from pytest_queryeval.documents.yaml_nodes import read_yaml
from pytest_queryeval.suites.conversations import turns
from pytest_queryeval.suites.keys import read_check
from pytest_queryeval.suites.settings import FOLDER_FILE
from pytest_queryeval.suites.suites import JSONL_SUFFIX, Suite, case_nodes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CaseLevels:
    """A case with the mappings that its keys stand in."""

    case: Case
    suite: Suite
    shared: tuple[Node, ...]
    """The mappings of its folders from the top, then that of its file, which JSON lines do not have."""
    case_node: Node
    """The mapping of the case itself."""

    @property
    def all(self) -> tuple[Node, ...]:
        """The levels, the nearest one last."""
        return (*self.shared, self.case_node)


def read_levels(suite: Suite) -> list[CaseLevels]:
    """Read the files of a loaded suite once more, and return the levels of its cases."""
    file = file_at(suite.path)
    settings = (read_yaml(file_at(folder.path / FOLDER_FILE)).root for folder in suite.folders)
    shared = [root for root in settings if root is not None]
    nodes: Iterable[Node]
    if file.path.name.endswith(JSONL_SUFFIX):
        nodes = (node for node in read_jsonl(file) if isinstance(node, Node))
    else:
        top = read_yaml(file).root
        assert top is not None
        shared.append(top)
        nodes = case_nodes(entries(top)["cases"], Problems())
    by_id = {entries(turn)["id"].value: turn for node in nodes for turn in turns(node)}
    return [CaseLevels(case=case, suite=suite, shared=tuple(shared), case_node=by_id[case.id]) for case in suite.cases]


def ignored_rules(levels: Iterable[Node]) -> dict[str, str]:
    """Return the rules of `queryeval check` that are ignored below these levels, each with the reason."""
    nodes = [level_entries["check"] for level in levels if "check" in (level_entries := entries(level))]
    return {rule: why for node in nodes for rule, why in read_check(node).items()}
