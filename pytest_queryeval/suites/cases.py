"""Reader of cases, with the settings that apply to them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_queryeval.core.errors import CaseError, Finding, Location, SourceError
from pytest_queryeval.core.model import (
    Abstention,
    Case,
    Criterion,
    GoldTranslation,
    QueryOrAnswer,
    Settings,
    criteria_of,
)
from pytest_queryeval.core.table import Table
from pytest_queryeval.documents.document import File, Node, Problems, parse_json
from pytest_queryeval.documents.tables import TableFile
from pytest_queryeval.documents.values import entries, read_each, text
from pytest_queryeval.engines import ENGINES
from pytest_queryeval.languages import KINDS, Kind
from pytest_queryeval.metrics import need_answers
from pytest_queryeval.suites.answers import CONVERSATION, GOLD_FORMS, read_golds, read_predicted, split_turns
from pytest_queryeval.suites.case_tables import COLUMNS
from pytest_queryeval.suites.effects import check_effects
from pytest_queryeval.suites.expectations import EXPECT, expects_anything
from pytest_queryeval.suites.keys import CORE_KEYS, KEYS, filled_fields
from pytest_queryeval.suites.parameters import parametrized
from pytest_queryeval.suites.settings import (
    SuiteSettings,
    Values,
    added,
    inherit_values,
    intended_keys,
    likely_header,
    read_keys,
    resolve,
    unanswerable_values,
    unread_key,
)
from pytest_queryeval.suites.sources import load_schema

UNREAD_COLUMN = "unread-column"
_PLAIN_HEADER = re.compile(r"[^\W\d][\w ()/.-]*")  # that YAML reads without quotes


class CaseReader:
    """Reads the cases of one suite file, which inherit the values `shared`.

    Problems are added to `problems`. `gated` are the metrics that gates above the file name. Results are in `cases`,
    `kinds` (names of their kinds), `criteria` (what their answers are judged by) and `findings` (about their tables).
    """

    def __init__(
        self, shared: Values, problems: Problems, *, require_prediction: bool, gated: Collection[str] = ()
    ) -> None:
        self.shared = shared
        self.problems = problems
        self.gated = gated
        self.cases: list[Case] = []
        self.kinds: set[str] = set()
        self.criteria: set[Criterion] = set()
        self.findings: dict[Finding, None] = {}
        self._shared_settings: dict[frozenset[Criterion], SuiteSettings] = {}
        self._is_broken = False
        self._require_prediction = require_prediction
        self._ids: dict[str, Location] = {}

    def begin(self, shared: Values) -> None:
        """Set the values that the following cases inherit.

        If there are problems already, missing settings are not reported, because a problem may be why they are missing.
        """
        self.shared, self._is_broken = shared, bool(self.problems)

    def read(self, node: Node, cases: Node | None = None) -> None:
        """Read the cases of a node, and add them to `cases`: one for each combination of parameters and each turn.

        A case in a row of a table is located at `cases`, where the suite names the table.
        """
        if isinstance(node.file, TableFile) and node.file.unread:
            self._find_unread_columns(node.file)
        combinations = self.problems.attempt(parametrized, node) or []
        if combinations != [node] and isinstance(node.value, dict) and "id" in node.value:
            self._check_id(str(node.value["id"].value), node, self.problems)
        for combination in combinations:
            self.cases += self._read_turns(combination, cases)

    def _read_turns(self, node: Node, cases: Node | None) -> list[Case]:
        nodes = self.problems.attempt(split_turns, node) or ()
        read_cases = [case for case_node in nodes if (case := self._read_case(case_node, cases))]
        if len(read_cases) < len(nodes) or not isinstance(node.value, dict) or CONVERSATION not in node.value:
            return read_cases
        name = text(entries(node)["id"])
        return [
            replace(case, turn={"conversation": name, "number": number, "of": len(read_cases)})
            if KINDS[case.settings.kind].answer_type is Table
            else case
            for number, case in enumerate(read_cases, start=1)
        ]

    def _read_case(self, node: Node, cases: Node | None) -> Case | None:
        problems = Problems()
        values = problems.attempt(read_keys, node, "case", problems)
        if values is None:
            self.problems.extend(problems)
            return None
        self._check_id(values.get("id"), node, problems)
        suite_settings = None
        criteria = self._criteria(values, node)
        if not (problems or self._is_broken):
            suite_settings = problems.attempt(self._settings, values, node, criteria)
        name = suite_settings.settings.kind if suite_settings else values.get("kind", self.shared.get("kind"))
        kind = KINDS[name] if name else None
        golds = predicted = None
        if kind is not None:
            self.kinds.add(kind.name)
            self.criteria |= criteria
            computed = {*suite_settings.settings.requested_metrics, *self.gated} if suite_settings else None
            check_effects(node, values, kind, problems, criteria=criteria, computed=computed)
            # A gold under a misspelt key is reported once, as an unknown key.
            if entries(node).keys() & GOLD_FORMS.keys() or not intended_keys(node, "case") & GOLD_FORMS.keys():
                golds = problems.attempt(read_golds, node, kind, criteria=criteria)
            predicted = problems.attempt(read_predicted, node, kind)
        if suite_settings and kind and golds is not None and not problems:
            self._check_needs(suite_settings.settings, kind, golds, predicted, node, problems)
            row = node.location if isinstance(node.file, TableFile) else None
            location = cases.location if row and cases else node.location
            suite = (cases.location if cases else location).path
            case = problems.attempt(
                _make_case, location, values, suite_settings, golds, predicted, row=row, suite=suite
            )
            if case is not None and not case.question.strip() and not case.conversation:
                case = replace(case, no_question=_question_remedy(node, cases))
            if case is not None and not problems:
                checked = problems.attempt(_with_checked_golds, case, kind, node)
                if checked is not None:
                    return checked
        self.problems.extend(problems)
        return None

    def _criteria(self, values: Values, node: Node) -> frozenset[Criterion]:
        """Return what an answer to a case is judged by; its gold if it states nothing else."""
        name = values.get("kind", self.shared.get("kind"))
        uses_expect = name is None or KEYS[EXPECT].used_by(KINDS[name])
        is_unread = EXPECT in entries(node) and EXPECT not in values  # its problem is reported
        stated = {**self.shared.get(EXPECT, {}), **values.get(EXPECT, {})}
        expects = uses_expect and (is_unread or expects_anything(stated))
        has_gold = not expects or bool(entries(node).keys() & GOLD_FORMS.keys())
        has_scope = ("scope" in values or "scope" in self.shared) and (
            name is None or KEYS["scope"].used_by(KINDS[name])
        )
        answerable = values.get("answerable", True)
        return criteria_of(answerable=answerable, has_gold=has_gold, expects=expects, has_scope=has_scope)

    def _settings(self, values: Values, node: Node, criteria: frozenset[Criterion]) -> SuiteSettings:
        """Return the settings of a case: its own values override the shared ones. Raises `CaseError` or `SuiteError`.

        Cases without settings of their own share one object.
        """
        # Tags are left out: adding them needs no new settings.
        inheritable = {
            name: value for name, value in values.items() if name != "tags" and KEYS[name].inheritance != "own"
        }
        shared = self.shared if "answer" in criteria else unanswerable_values(self.shared)
        if inheritable:
            return self._resolved(inherit_values(shared, inheritable), node, criteria)
        if criteria not in self._shared_settings:
            self._shared_settings[criteria] = self._resolved(shared, node, criteria)
        return self._shared_settings[criteria]

    def _resolved(self, values: Values, node: Node, criteria: frozenset[Criterion]) -> SuiteSettings:
        if "kind" not in values:
            raise node.problem(f"no kind: add `kind: {' | '.join(KINDS.names())}` to {_settings_file(node)}")
        return resolve(values, criteria=criteria)

    def _find_unread_columns(self, file: TableFile) -> None:
        """Add a finding for each column of a table that is not read but has the name of a key, or nearly."""
        for header in file.unread:
            if not (key := unread_key(header)):
                continue
            message = f"column '{header}' is not read: name it under `metadata`, or move the cases to YAML for `{key}`"
            if key in COLUMNS:
                message = f"column '{header}' is not read: did you mean '{key}'? Write columns: {{{key}: {header}}}"
            silenced = self.shared.get("check", {}).get(UNREAD_COLUMN, "")
            finding = Finding(rule=UNREAD_COLUMN, location=file.location(), message=message, silenced=silenced)
            self.findings[finding] = None

    def _check_id(self, id_: str | None, node: Node, problems: Problems) -> None:
        if id_ is None:
            if "id" not in node.value and "id" not in intended_keys(node, "case"):
                problems.append(node.problem("a case needs an id: add `id: NAME`"))
            return
        if entries(node)["id"].form == "generated":  # its written id has been checked
            return
        location = node.location
        first = self._ids.setdefault(id_, location)
        if first is not location:
            place = f"in {first.cell}" if first.cell else f"on line {first.line}"
            first_place = place if first.path == location.path else f"at {first}"
            problems.append(
                node.problem(f"duplicate id '{id_}', first used {first_place}: give one of them another id")
            )

    def _check_needs(
        self,
        settings: Settings,
        kind: Kind,
        golds: tuple[QueryOrAnswer, ...],
        predicted: QueryOrAnswer | Abstention | GoldTranslation | None,
        node: Node,
        problems: Problems,
    ) -> None:
        """Add a problem if a query has no source, or a source of another kind, or if the case has no prediction.

        `gold_source` without `source`, and golds that cannot be translated, are problems too.
        """
        is_run = any(
            content is None or (isinstance(content, QueryOrAnswer) and content.query is not None)
            for content in (*golds, predicted)
        )
        if settings.source is None and settings.gold_source is not None:
            problems.append(node.problem("`gold_source` is where golds run: add `source`, where predictions run"))
        elif settings.source is None and kind.has_queries and golds and is_run:
            metric_names = (*settings.metrics, *settings.thresholds)
            first = next((name for name in metric_names if need_answers([name])), None)
            if first or not metric_names:
                hint = f", or name metrics and thresholds of texts only: '{first}' needs answers" if first else ""
                problems.append(node.problem(f"no source: add `source` to {_settings_file(node)}{hint}"))
        for source in settings.sources:
            runs = ENGINES[source.engine].kind
            if runs not in (None, kind.name):
                key = "source" if source is settings.source else "gold_source"
                mismatch = (
                    f"{key} '{source.name}' ({source.engine}) runs queries of the kind '{runs}', not '{kind.name}'"
                )
                place = source.location
                if place is None or place.path != node.location.path or "kind" in node.value:
                    place = node.location
                problems.append(CaseError(place, f"{mismatch}: write `kind: {runs}`, or name another source"))
        if isinstance(predicted, GoldTranslation) and (need := _need_of_translation(settings, kind, golds)):
            problems.append(CaseError(predicted.location, f"`translate: gold` needs {need}"))
        if predicted is not None or not self._require_prediction:
            return
        if settings.predictor is None or settings.predictor.kind == "inline":
            problems.append(node.problem(f"no prediction: add `predicted`, or `predictor` to {_settings_file(node)}"))


def case_of_settings(setting_values: Mapping[str, object], folder: Path) -> Case:
    """Return a case without golds whose settings are those of a suite in the folder; no score is required of it.

    Raises `SuiteError` with all problems, and `CaseError` for an unknown source.
    """
    problems = Problems()
    node = parse_json(
        json.dumps(setting_values, default=str), File(folder / "score_pairs", Path("score_pairs")), line=0
    )
    values = read_keys(node, "file", problems)
    problems.raise_any()
    settings = resolve({**inherit_values({}, values), "thresholds": ({},)})
    check_effects(node, values, KINDS[values["kind"]], problems, computed=settings.settings.requested_metrics)
    problems.raise_any()
    return _make_case(node.location, {"id": "pair"}, settings, golds=(), predicted=None)


def _need_of_translation(settings: Settings, kind: Kind, golds: Sequence[QueryOrAnswer]) -> str:
    """Return what is missing to translate gold, with the remedy; empty if nothing is missing."""
    if settings.gold_source is None:
        return "a `gold_source` that is not `source`: add it, or write the query"
    if all(gold.query is None for gold in golds):
        return "a gold that is a query: write what is predicted"
    if "dialect" in kind.options and not settings.gold_dialect:
        return "a `gold_source` whose dialect sqlglot has a name for: write it if the engine has a `dialect`"
    if "dialect" in kind.options and not settings.dialect:
        return f"a `source` whose dialect sqlglot has a name for: add `options: {{{kind.name}: {{dialect: NAME}}}}`"
    return ""


def _settings_file(node: Node) -> str:
    """Return words for the file that shared settings belong in; tables and JSON lines have no place for them."""
    if isinstance(node.file, TableFile):
        return "the suite"
    return "a queryeval.yaml next to it" if node.file.path.suffix == ".jsonl" else "the file"


def _question_remedy(node: Node, cases: Node | None) -> str:
    """Return the problem and the remedy for a case without a question."""
    file = node.file
    if not isinstance(file, TableFile) or "question" in entries(node):
        return f"case '{text(entries(node)['id'])}' has no question: add `question`"
    missing = f"{file.shown.name} has no column 'question'"
    header = likely_header("question", (header for header in file.headers if header.lower() not in COLUMNS))
    shown_header = header if _PLAIN_HEADER.fullmatch(header) else json.dumps(header, ensure_ascii=False)
    columns = f"columns: {{question: {shown_header if header else 'HEADER'}}}"
    remedy = f"`{columns}` next to `file`"
    if cases is None or not isinstance(cases.value, dict):
        remedy = f"`cases: {{file: {file.shown.name}, {columns}}}`"
    return f"{missing}: did you mean '{header}'? Write {remedy}" if header else f"{missing}: write {remedy}"


def _with_checked_golds(case: Case, kind: Kind, node: Node) -> Case:
    """Return the case with its golds as checked by its kind.

    Raises `CaseError` for a gold that the settings rule out.
    """

    def check(gold: QueryOrAnswer) -> QueryOrAnswer:
        try:
            return kind.check_gold(gold, case)
        except (ValueError, SourceError) as error:
            raise CaseError(gold.location or node.location, node.problem(str(error)).problem) from error

    golds = tuple(read_each(case.golds, check))
    # By identity: the check may add labels, which equality ignores.
    same = all(checked is gold for checked, gold in zip(golds, case.golds, strict=True))
    return case if same else replace(case, golds=golds)


def _make_case(
    location: Location,
    values: Values,
    suite_settings: SuiteSettings,
    golds: tuple[QueryOrAnswer, ...],
    predicted: QueryOrAnswer | Abstention | GoldTranslation | None,
    *,
    row: Location | None = None,
    suite: Path | None = None,
) -> Case:
    """Return the case of these values; raises `CaseError` if files of its settings cannot be read.

    Keys of features may load files and change the case.
    """
    settings = suite_settings.settings if predicted is None else suite_settings.of_stated_predictions
    schema = None
    if suite_settings.db_schema is not None:
        schema = load_schema(suite_settings.db_schema, settings.source, values.get("metadata", {}))
    own = {name: value for name, value in values.items() if KEYS[name].inheritance == "own"}
    extra = {**suite_settings.extra, **{name: own[name] for name in own.keys() - CORE_KEYS}}
    case = Case(
        location=location,
        settings=settings,
        golds=golds,
        predicted=predicted,
        expectations=suite_settings.expectations,
        db_schema=schema,
        extra={name: KEYS[name].load(value) for name, value in extra.items()},
        tags=added(suite_settings.tags, values["tags"]) if "tags" in values else suite_settings.tags,
        row=row,
        suite=suite,
        **filled_fields(own),
    )
    for name, value in case.extra.items():
        if (change := KEYS[name].change_case) is not None:
            case = change(value, case)
    return case
