"""Single edits of a predicted SPARQL query that lead to gold, and the queries that they make."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations, islice

from pytest_queryeval.core.cause import NOTHING, Cause, CausingEdit, QueryEdits, SharedPatterns
from pytest_queryeval.core.model import Answer, Case, Execution
from pytest_queryeval.core.table import IRI, Table
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.causes import Edits
from pytest_queryeval.features.causes.failed import FailedQuery
from pytest_queryeval.features.causes.sparql.aligned import normal, readable, with_names_of
from pytest_queryeval.features.causes.sparql.changes import Make
from pytest_queryeval.features.causes.sparql.differences import Differences
from pytest_queryeval.features.causes.sparql.failed import sparql_repairs
from pytest_queryeval.features.causes.sparql.glued_words import WithRepair, without_glued_word
from pytest_queryeval.features.causes.sparql.hard_coded import hard_coded_edit
from pytest_queryeval.features.causes.sparql.lines import MAX_CHANGE, Lines
from pytest_queryeval.features.causes.sparql.shared_patterns import shared_patterns
from pytest_queryeval.features.causes.sparql.unknown_terms import LabelledEdits, UnknownTermEdits, finds_nothing
from pytest_queryeval.features.causes.sparql.validity import defects
from pytest_queryeval.languages.sparql.prefixes import COMMON_PREFIXES, declared_prefixes
from pytest_queryeval.languages.sparql.trees.reader import UnreadableError, read_tree
from pytest_queryeval.languages.sparql.trees.tree import Node, Select, Triple, changed, terms, walk
from pytest_queryeval.languages.sparql.trees.writer import Writer
from pytest_queryeval.text.truncation import one_line

MAX_NODES = 1_500  # of the trees of both queries
MAX_TERMS = 6  # that are named where they are the cause
MAX_PAIRED = 6  # edits of which two are made together, the smallest ones
_FORMS = ("SELECT", "ASK", "CONSTRUCT", "DESCRIBE")
MOST_TRIED = 10  # combinations of edits
MOST_TRIED_OF_MANY = 4  # of more than MAX_PAIRED edits, of which two are hardly ever the cause


class SparqlEdits:
    """The edits that lead from a predicted query to gold, the smallest first; equal ones in several places are one."""

    def __init__(
        self,
        predicted: Select,
        gold: Select,
        writer: Writer,
        *,
        needs_width: bool = False,
        by_columns: bool = True,
        repair: CausingEdit | None = None,
    ) -> None:
        self.repair = repair
        """What the text of predicted was repaired by before."""
        self._needs_width = needs_width
        self._tree = predicted
        self._gold = with_names_of(gold, predicted, by_columns=by_columns)
        self._names_in_gold = dict(zip(terms(self._gold), terms(gold), strict=True))
        self.lines = Lines(writer, predicted, self._gold)
        self._triple_count = sum(isinstance(node, Triple) for node in walk(predicted))
        self._defects = defects(predicted) | defects(self._gold)
        self._edits = Differences(predicted, self._gold, self.lines).edits()
        self._texts: dict[tuple[int, ...], str | None] = {}

    @property
    def most_untested(self) -> int:
        """Return of how many edits a cause may be that only the source confirms: one, beside a repair of the text."""
        return 1 if self.repair is None else 2

    @property
    def edits(self) -> Sequence[CausingEdit]:
        """All edits, in the order in which they are to be tried."""
        return [edit.shown for edit in self._edits]

    def combinations(self) -> Iterator[tuple[int, ...]]:
        """Yield which edits to make together: each alone, then pairs, the smallest first.

        Those that make another number of columns than gold has come last, if they can be right at all.
        """
        numbers = range(len(self._edits))
        pairs = combinations(numbers[:MAX_PAIRED], 2)
        ordered = sorted(
            (chosen for chosen in chain(zip(numbers), pairs) if self._has_width(chosen) or not self._needs_width),
            key=lambda chosen: (
                not self._has_width(chosen),
                len(chosen),
                sum(self._edits[number].size for number in chosen),
            ),
        )
        most = MOST_TRIED if len(numbers) <= MAX_PAIRED else MOST_TRIED_OF_MANY
        yield from islice((chosen for chosen in ordered if self.applied(chosen) is not None), most)

    def _has_width(self, numbers: Sequence[int]) -> bool:
        """Return whether predicted has as many columns as gold after these edits, as far as the texts say."""
        width = len(self._tree.items) + sum(self._edits[number].added_columns for number in numbers)
        return width == len(self._gold.items) or self._tree.selects_all or self._gold.selects_all

    def applied(self, numbers: Sequence[int]) -> str | None:
        """Return predicted after these edits; None if it returns fewer columns than gold, or has new defects.

        None, too, where none of its triples would remain: a pattern replaced as a whole is not a small edit.
        """
        key = tuple(numbers)
        if key not in self._texts:
            self._texts[key] = self._text(numbers)
        return self._texts[key]

    def _text(self, numbers: Sequence[int]) -> str | None:
        if 0 < self._triple_count <= sum(self._edits[number].dropped for number in numbers):
            return None
        tree = self._edited(numbers)
        if tree is None or not defects(tree) <= self._defects:
            return None
        if not tree.selects_all and not self._gold.selects_all and len(tree.items) < len(self._gold.items):
            return None
        return self.lines.writer.query(readable(tree, self.lines.names))

    def reach_gold(self, numbers: Sequence[int]) -> bool:
        """Return whether predicted then has the patterns and clauses of gold, in any order."""
        tree = self._edited(numbers)
        if tree is None or tree == self._gold:
            return tree is not None
        return not SparqlEdits(normal(readable(tree, self.lines.names)), self._gold, self.lines.writer).edits

    def _edited(self, numbers: Sequence[int]) -> Select | None:
        makes: defaultdict[int, list[Make]] = defaultdict(list)
        for number in numbers:
            for target, make in self._edits[number].makes:
                if make not in makes[target]:  # the pattern of a column, which is an edit of its own, too
                    makes[target].append(make)

        def change(old: Node, new: Node) -> Node | tuple[Node, ...] | None:
            replacement: Node | tuple[Node, ...] | None = new
            for make in makes.get(id(old), ()):
                if replacement is None or isinstance(replacement, tuple):
                    break
                replacement = make(replacement)
            return replacement

        return changed(self._tree, change)

    def hard_coded(self, answer: Table) -> Cause | None:
        """Return the cause of a query that names its answer, with the columns that differ; None if it searches."""
        edit = hard_coded_edit(self._tree, self._gold, answer, self.lines)
        columns = [
            causing_edit for causing_edit in self.edits if causing_edit.label in ("extra-column", "missing-column")
        ]
        if edit is None:
            return None
        found_by = self._only_gold()
        return Cause(edits=(replace(edit, change=": ".join(filter(None, (edit.change, found_by)))), *columns[-1:]))

    def missing(self) -> list[CausingEdit]:
        """Return what only gold has as one edit, if there is anything."""
        only_gold = self._only_gold()
        edit = CausingEdit(label="missing-pattern", clause="WHERE", change=f"{NOTHING} → {only_gold}")
        return [edit] if only_gold else []

    def _only_gold(self) -> str:
        """Return the patterns, filters and clauses that only gold has, but for SELECT, in one line."""
        patterns = self.shared_patterns()
        texts = [] if patterns is None else [text for text in patterns.only_gold if not text.startswith(_FORMS)]
        return one_line(" . ".join(texts), MAX_CHANGE)

    def shared_patterns(self) -> SharedPatterns | None:
        """Return what both queries have in common, and what only one has; None if gold has no triple pattern."""
        patterns = shared_patterns(self._tree, self._gold, self._names_in_gold, self.lines)
        if patterns is None or self.repair is None:
            return patterns
        return replace(patterns, only_predicted=(self.repair.change.split()[0], *patterns.only_predicted))


def find_edits(predicted: Execution, gold: Execution, case: Case, session: Session) -> Edits:
    """Return the edits of unknown terms, then those that lead from a predicted query to gold; raise `SourceError`.

    The fallback is a hard-coded answer, the unknown terms of a query that finds nothing, else what the patterns of both
    queries share.
    """
    query, gold_query, source = predicted.query or "", gold.query or "", case.settings.source
    policy = case.settings.policy
    needs_width = policy.extra_columns == "reject" and not policy.gold_columns
    by_columns = _have_same_sorts(predicted.answer, gold.answer)
    edits = sparql_edits(query, gold_query, needs_width=needs_width, by_columns=by_columns)
    groups: list[QueryEdits] = []
    if edits is not None:
        groups.append(edits if edits.repair is None else WithRepair(edits, edits.repair))
    if predicted.error is not None:
        failed_query = FailedQuery(query, predicted.error.message, gold_query, source=source)
        return Edits(groups, repairs=sparql_repairs(failed_query))
    cause = edits.hard_coded(gold.answer) if edits is not None and isinstance(gold.answer, Table) else None
    most_untested = 0 if edits is None or cause is not None or _is_one_literal(gold.answer) else edits.most_untested
    if terms := session.unknown_terms(query, case):
        term_edits = UnknownTermEdits(query, terms, {} if source is None else declared_prefixes(source.settings))
        names = set() if edits is None else {edits.lines.writer.term(term.term) for term in terms}
        groups = [term_edits, *(LabelledEdits(group, names) for group in groups)]

    def fallback() -> Cause | SharedPatterns | None:
        if cause is None and terms and finds_nothing(predicted.answer):
            missing = [] if edits is None else edits.missing()
            return Cause(edits=(*term_edits.edits[:MAX_TERMS], *missing))
        return edits.shared_patterns() if cause is None and edits is not None else cause

    return Edits(groups, fallback, most_untested)


def _is_one_literal(answer: Answer | None) -> bool:
    """Return whether an answer is a single number, text or boolean, which an edit may hit by chance."""
    return (
        isinstance(answer, Table)
        and [len(row) for row in answer.rows] == [1]
        and not isinstance(answer.rows[0][0], IRI)
    )


def _have_same_sorts(predicted: Answer | None, gold: Answer | None) -> bool:
    """Return False if the first row of one answer has an IRI where that of the other one has a literal."""
    if not isinstance(predicted, Table) or not isinstance(gold, Table) or not predicted.rows or not gold.rows:
        return True
    cells = zip(predicted.rows[0], gold.rows[0], strict=False)
    return all(isinstance(cell, IRI) == isinstance(gold_cell, IRI) for cell, gold_cell in cells)


def sparql_edits(
    predicted: str, gold: str, *, needs_width: bool = False, by_columns: bool = True
) -> SparqlEdits | None:
    """Return the edits from a predicted query to gold; None if one cannot be read, or they are very long.

    With `needs_width`, a right answer has as many columns as gold's; without `by_columns`, columns in the same place
    may be of other variables.

    >>> found = sparql_edits("SELECT ?s { ?s :age ?a FILTER(?a > 30) }", "SELECT ?x { ?x :age ?y FILTER(?y > 40) }")
    >>> found.edits
    [CausingEdit(label='wrong-value', clause='FILTER', change='30 → 40')]
    """
    try:
        gold_query = read_tree(gold)
        query = read_tree(predicted, gold_query.prefixes)
        gold_query = read_tree(gold, query.prefixes)
    except UnreadableError:
        return None
    tree, repair = without_glued_word(query.tree)
    trees = normal(tree), normal(gold_query.tree)
    if sum(1 for tree in trees for _ in walk(tree)) > MAX_NODES:
        return None
    prefixes = {**gold_query.prefixes, **query.prefixes}
    common_prefixes = {name: iri for name, iri in COMMON_PREFIXES.items() if name not in prefixes}
    writer = Writer(prefixes | common_prefixes)
    return SparqlEdits(*trees, writer, needs_width=needs_width, by_columns=by_columns, repair=repair)
