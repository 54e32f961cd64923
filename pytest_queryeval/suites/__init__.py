"""Reader of suite files: `load_cases` for all below a path, `load_suite` for one file; the levels of cases as nodes."""

from __future__ import annotations

import glob
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_queryeval.core.errors import CaseError, Finding, Location, QueryEvalWarning, SuiteError
from pytest_queryeval.core.mappings import grouped
from pytest_queryeval.core.model import UNANSWERABLE_CRITERIA, Case
from pytest_queryeval.documents.document import File, Node, Problems, file_at, read_jsonl
from pytest_queryeval.documents.tables import is_table
from pytest_queryeval.documents.values import entries, required_text, unexpected
from pytest_queryeval.documents.yaml_nodes import read_yaml
from pytest_queryeval.languages import KINDS
from pytest_queryeval.metrics import METRICS
from pytest_queryeval.suites.answers import split_turns
from pytest_queryeval.suites.case_tables import CASE_TABLE_KEYS, CaseTable, read_case_table, row_nodes
from pytest_queryeval.suites.cases import CaseReader
from pytest_queryeval.suites.effects import check_effects
from pytest_queryeval.suites.keys import KEYS, read_check
from pytest_queryeval.suites.parameters import parametrized
from pytest_queryeval.suites.predictors import check_predictor_files
from pytest_queryeval.suites.settings import (
    CASE_KEYS,
    FOLDER_FILE,
    Folder,
    FolderCache,
    Values,
    folder_chain,
    inherit_values,
    read_keys,
)
from pytest_queryeval.suites.variables import MissingExtraError, check_required

YAML_SUFFIXES = (".queryeval.yaml", ".queryeval.yml")
JSONL_SUFFIX = ".queryeval.jsonl"
SUITE_PATTERNS = f"*{YAML_SUFFIXES[0]} or *{JSONL_SUFFIX}"
NEEDED = "write `kind: sql`, a `source`, a `predictor`, and a list of `cases`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A suite file that was read: its cases, and the settings that apply to all of them."""

    path: Path
    cases: tuple[Case, ...]
    folders: tuple[Folder, ...]
    """The folders with settings from the root down to that of the file."""
    values: Values
    """The values of keys that apply to all of its cases."""
    findings: tuple[Finding, ...] = ()
    """What was found in the tables that it names, and by keys that change it in the files that those name."""


def is_suite_file(path: Path) -> bool:
    """Return whether a file name is that of a suite, and the file is not hidden.

    >>> is_suite_file(Path("sql/concerts.queryeval.yaml")), is_suite_file(Path("sql/queryeval.yaml"))
    (True, False)
    """
    return path.name.endswith((*YAML_SUFFIXES, JSONL_SUFFIX)) and not path.name.startswith(".")


def load_cases(path: str | Path, *, root: Path | None = None, require_prediction: bool = True) -> tuple[Case, ...]:
    """Return the cases of one suite file, or of all suite files below a folder, as `load_suites` reads them.

    Findings of keys that change suites, such as stale decisions on golds, are warned of as `QueryEvalWarning`.
    """
    suites = load_suites(path, root=root, require_prediction=require_prediction)
    for message, place in finding_messages(finding for suite in suites for finding in suite.findings):
        warnings.warn(f"{place}: {message}", QueryEvalWarning, stacklevel=2)
    return tuple(case for suite in suites for case in suite.cases)


def finding_messages(findings: Iterable[Finding]) -> Iterator[tuple[str, Location]]:
    """Yield, for each rule, a message on its first finding that is not silenced, and the finding's place.

    The message says how many more findings the rule has.
    """
    by_rule = grouped((finding.rule, finding) for finding in findings if not finding.silenced)
    for rule, (first, *others) in by_rule.items():
        more = f" (and {len(others):,} more: `queryeval check` lists them)" if others else ""
        about = "" if first.case is None else f"case '{first.case}': "
        yield f"{rule}: {about}{first.message}{more}", first.location


def load_suites(
    path: str | Path, *, root: Path | None = None, require_prediction: bool = True, check_files: bool = False
) -> tuple[Suite, ...]:
    """Return one suite file, or all suite files below a folder, in the order of their paths.

    Settings come from each `queryeval.yaml` between `root` and the file; `root` is the current folder if that contains
    `path`, else the folder of `path`. Raises `SuiteError` with all problems of all files. Without `require_prediction`,
    a case may lack both `predicted` and a predictor. `check_files` looks for files that keys name. A file that requires
    an extra that is not installed is left out, with a `QueryEvalWarning`.
    """
    start = file_at(path).path
    is_folder = os.path.isdir(start)  # noqa: PTH112 - unlike Path.is_dir, for any name
    files = suite_files(start)
    if root is None:
        folder, current_folder = start if is_folder else start.parent, Path.cwd()
        root = current_folder if folder.is_relative_to(current_folder) else folder
    root = file_at(root).path
    problems, folders, suites = Problems(), FolderCache(), list[Suite]()
    for file in files:
        try:
            suite = problems.attempt(
                load_suite,
                file,
                root=root,
                folders=folders,
                require_prediction=require_prediction,
                check_files=check_files,
            )
        except MissingExtraError as error:
            warnings.warn(f"{file}: {error}", QueryEvalWarning, stacklevel=2)
            continue
        suites += [suite] if suite else ()
    problems.raise_any()
    return tuple(suites)


def load_suite(
    path: Path,
    *,
    root: Path,
    folders: FolderCache | None = None,
    require_prediction: bool = True,
    check_files: bool = False,
    check_predictors: bool = False,
    apply_changes: bool = True,
) -> Suite:
    """Return one suite file with the folder settings that apply to it.

    Pass the same `folders` to all calls of a run, so that each folder is read once. `check_files` looks for files that
    keys name, and `check_predictors` for the local files and functions of the predictors that will answer the cases.
    Without `apply_changes`, keys that change a suite, such as `reviews`, have no effect.

    Raises `SuiteError` with all problems of the file, or of the folder settings above it. Raises `MissingExtraError` if
    the file is to be skipped, because an extra that it requires is not installed.
    """
    file = file_at(path)
    chain = folder_chain(file.folder, file_at(root).path, {} if folders is None else folders)
    shared: Values = {}
    for folder in chain:
        shared = inherit_values(shared, folder.values, is_folder=True)
    problems = Problems()
    reader = CaseReader(shared, problems, require_prediction=require_prediction, gated=metrics_of_gates(chain))
    problems.attempt(_read_lines if path.name.endswith(".jsonl") else _read_document, file, reader)
    cases, values = reader.cases, reader.shared
    if not cases and not problems:
        problems.append(file.problem("it has no cases: add one"))
    if check_predictors:
        predictor_specs = (
            case.settings.predictor
            for case in cases
            if case.settings.predictor and case.predicted is None and case.skip is None
        )
        for predictor in {id(spec): spec for spec in predictor_specs}.values():  # once for each: cases share the object
            problems.attempt(check_predictor_files, predictor)
    problems.raise_any()
    suite = Suite(path=file.path, cases=tuple(cases), folders=chain, values=values, findings=tuple(reader.findings))
    for name in values if check_files else ():
        problems.attempt(KEYS[name].check_files, values[name])
    problems.raise_any()
    for name in values if apply_changes else ():
        if (change := KEYS[name].change) is not None:
            suite = problems.attempt(change, values[name], suite) or suite
    problems.raise_any()
    return suite


def metrics_of_gates(folders: Iterable[Folder]) -> set[str]:
    """Return the known metrics that gates of these folders name, which are computed for the cases below."""
    names = {gate.required.get("metric", "") for folder in folders for gate in folder.gates}
    return {name for name in names if name in METRICS}


def suite_files(path: Path) -> list[Path]:
    """Return the suite files below a folder, in the order of their paths; for any other path, the path itself.

    Raises `SuiteError` for a folder without suites, and for a file that is not YAML or JSON lines. A path that does not
    exist is returned too.
    """
    if not os.path.isdir(path):  # noqa: PTH112 - unlike Path.is_dir, for any name
        if path.is_file() and path.suffix not in (".yaml", ".yml", ".jsonl"):
            raise SuiteError(
                [file_at(path).problem(f"is not a suite: name a folder, or a file called {SUITE_PATTERNS}")]
            )
        return [path]
    if not (files := sorted(suites_below(path))):
        raise SuiteError(
            [file_at(path).problem(f"no suite below: add a file called {SUITE_PATTERNS}, or name another folder")]
        )
    return files


def suites_below(folder: Path) -> Iterator[Path]:
    """Yield the suite files below a folder, except in hidden folders.

    A file that links also lead to is yielded once.
    """
    for place, folders, names in os.walk(folder, followlinks=True):
        folders[:] = [name for name in folders if not _is_hidden(name)]
        folders[:] = [name for name in folders if not leads_back(Path(place, name), folder, _is_hidden)]
        yield from (path for name in names if is_suite_file(path := Path(place, name)))


def leads_back(folder: Path, root: Path, is_skipped: Callable[[str], bool]) -> bool:
    """Return whether a folder is a link to a folder that is searched for suites anyway, or that contains the root.

    `is_skipped` says by its name whether a folder below the root is not searched.
    """
    if not folder.is_symlink():
        return False
    target, real_root = (Path(os.path.realpath(path)) for path in (folder, root))
    if real_root.is_relative_to(target):
        return True
    return target.is_relative_to(real_root) and not any(map(is_skipped, target.relative_to(real_root).parts))


def _is_hidden(name: str) -> bool:
    return name.startswith(".")


def _read_lines(file: File, reader: CaseReader) -> None:
    for node in read_jsonl(file):
        if isinstance(node, CaseError):
            reader.problems.append(node)
        else:
            reader.read(node)


def _read_document(file: File, reader: CaseReader) -> None:
    problems = reader.problems
    document = read_yaml(file)
    problems.extend(document.problems)
    top = document.root
    if top is None:
        raise file.problem(f"the file is empty: {NEEDED}")
    if not isinstance(top.value, dict):
        if isinstance(top.value, list):
            if top.value and all(isinstance(item.value, dict) and "role" in item.value for item in top.value):
                raise top.problem(f"this is a conversation and not a suite: {_as_case_file(file)}")
            top_type, remedy = (
                "list",
                "put `cases:` above it, with `kind` and `source` unless a queryeval.yaml sets them",
            )
        else:
            top_type, remedy = "text", NEEDED
        raise top.problem(f"expected a mapping at the top of a suite, found a {top_type}: {remedy}")
    if "cases" not in top.value and not CASE_KEYS.isdisjoint(top.value):
        hint = "write `kind`, `predictor` and `cases:` above it and indent it as an item, `- id: …`"
        raise top.problem(f"this is a case and not a suite: {hint}; or {_as_case_file(file)}")
    problems.attempt(check_required, top)
    values = read_keys(top, "file", problems)
    if "cases" not in values:
        raise top.problem("a suite needs `cases`: add a list of them")
    reader.begin(inherit_values(reader.shared, values))
    predictor = reader.shared.get("predictor")
    has_predictor = predictor is not None and predictor.kind != "inline"
    try:
        for node in case_nodes(values["cases"], problems, empty_is_predicted=not has_predictor):
            reader.read(node, values["cases"])
    except (CaseError, SuiteError) as error:
        problems.keep(error)
    if len(reader.kinds) == 1:
        shared_settings = dict.fromkeys(case.settings for case in reader.cases)
        requested = {name for case_settings in shared_settings for name in case_settings.requested_metrics}
        computed = None if problems else requested.union(reader.gated)
        criteria = {*reader.criteria, *UNANSWERABLE_CRITERIA} if "answer" in reader.criteria else None
        check_effects(top, values, KINDS[reader.kinds.pop()], problems, criteria=criteria, computed=computed)


def _as_case_file(file: File) -> str:
    name = file.path.name.replace(".queryeval.", ".")
    return f"rename the file to {name} and write `cases: {name}` into a suite next to it"


def case_nodes(cases: Node, problems: Problems, *, empty_is_predicted: bool = False) -> Iterator[Node]:
    """Yield the nodes of the cases under `cases`: of the list there, or of the table or files that it names.

    Raises `CaseError` for other values. Problems of single files and rows are added to `problems`. With
    `empty_is_predicted` an empty cell below `predicted` is an empty answer, otherwise no answer.
    """
    if isinstance(cases.value, list):
        yield from cases.value
    elif isinstance(cases.value, dict) and not cases.value.keys().isdisjoint(CASE_TABLE_KEYS):
        yield from row_nodes(read_case_table(cases), problems, empty_is_predicted=empty_is_predicted)
    elif isinstance(cases.value, dict) or cases.empty:
        for key, node in entries(cases).items() if isinstance(cases.value, dict) else ():
            if isinstance(node.value, str) and is_table(node.value):
                raise node.problem(f"unknown key '{key}': write {{file: {node.value}}}")
        raise unexpected(cases, "a list", ": write each case as an item, `- {id: …, gold: …}`")
    else:
        for file in _files_of(cases):
            try:
                if is_table(file.path):
                    yield from row_nodes(CaseTable(file=file), problems, empty_is_predicted=empty_is_predicted)
                    continue
                document = read_yaml(file)
                problems.extend(document.problems)
                if document.root is None:
                    raise file.problem("it has no cases: add one")
                # One case, or a list of cases.
                yield from document.root.value if isinstance(document.root.value, list) else [document.root]
            except CaseError as error:
                problems.append(error)


def _files_of(cases: Node) -> list[File]:
    """Return the files that a glob names, in the order of their paths, without suites and folder settings.

    Raises `CaseError` if no file is left.
    """
    pattern = required_text(cases)
    try:
        names = glob.glob(pattern, root_dir=cases.file.folder, recursive=True)  # noqa: PTH207 - pathlib's has no `..`
    except (OSError, ValueError) as error:
        raise cases.problem(f"'{pattern}' cannot be searched: {error}") from error
    paths = [cases.file.folder / name for name in sorted(names)]
    paths = [path for path in paths if path.is_file() or not path.exists()]  # links to nothing cannot be read
    files = [file_at(path) for path in paths if not is_suite_file(path) and path.name != FOLDER_FILE]
    if not files:
        if paths:
            raise cases.problem(
                f"'{pattern}' names suites and settings only, not files of cases: name such a file, as cases/a.yaml, or"
                " list the cases here"
            )
        raise cases.problem(
            f"no file in {cases.file.folder} fits '{pattern}': correct the path, which is relative to the suite"
        )
    return files


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CaseLevels:
    """A case with the mappings that its settings come from."""

    case: Case
    suite: Suite
    shared: tuple[Node, ...]
    """The mappings of its folders from the top, then that of its file, which JSON lines do not have."""
    case_node: Node
    """The mapping of the case itself."""

    @property
    def gated(self) -> set[str]:
        """The metrics that gates above the case name."""
        return metrics_of_gates(self.suite.folders)

    @property
    def all(self) -> tuple[Node, ...]:
        """The mappings of folders, file and case; the last is the nearest to the case."""
        return (*self.shared, self.case_node)


def read_levels(suite: Suite) -> list[CaseLevels]:
    """Read the files of a loaded suite again, and return the levels of each of its cases."""
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
    combinations = (combination for node in nodes for combination in parametrized(node))
    by_id = {entries(turn)["id"].value: turn for node in combinations for turn in split_turns(node)}
    return [CaseLevels(case=case, suite=suite, shared=tuple(shared), case_node=by_id[case.id]) for case in suite.cases]


def ignored_rules(levels: Iterable[Node]) -> dict[str, str]:
    """Return the rules of `queryeval check` that these levels ignore, with the reasons."""
    nodes = [level_entries["check"] for level in levels if "check" in (level_entries := entries(level))]
    return {rule: why for node in nodes for rule, why in read_check(node).items()}
