"""The edits from a predicted SPARQL query to gold, and the queries that combinations of them make."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import combinations, islice
from types import MappingProxyType
from typing import TypeAlias

from pytest_queryeval.core.cause import NOTHING, Cause, CauseLabel, CausingEdit, SharedPatterns
from pytest_queryeval.core.mappings import excluding
from pytest_queryeval.core.model import Answer, Case, Execution
from pytest_queryeval.core.table import IRI, Literal, Table
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.causes import Edits, FailedQuery
from pytest_queryeval.features.causes.sparql.alignment import (
    MAX_CHANGE,
    Lines,
    classes,
    hard_coded_edit,
    normal,
    readable,
    shared_patterns,
    with_names_of,
)
from pytest_queryeval.features.causes.sparql.changes import Step, defects
from pytest_queryeval.features.causes.sparql.differences import Differences
from pytest_queryeval.features.causes.sparql.repairs import sparql_repairs
from pytest_queryeval.languages.sparql.query import COMMON_PREFIXES, declared_prefixes, read_query, with_prefixes
from pytest_queryeval.languages.sparql.source_terms import SourceTerms, UnknownTerm, are_alike, unknown_in
from pytest_queryeval.languages.sparql.tree import (
    Data,
    Element,
    Expr,
    Filter,
    Group,
    Item,
    Node,
    Select,
    Triple,
    Union,
    Writer,
    changed,
    is_variable,
    renamed,
    terms,
    variables,
    walk,
)
from pytest_queryeval.languages.sparql.tree_facts import why_empty
from pytest_queryeval.languages.sparql.tree_reader import UnreadableError, in_other_words, read_tree
from pytest_queryeval.text.formatting import one_line

MAX_NODES = 1_500  # of the trees of both queries
MAX_TERMS = 6  # that are named where they are the cause
MAX_PAIRED = 6  # edits of which two are made together, the smallest ones
_JOINED_WORD = "WHERE"  # as in `SELECT ?bookWHERE { … }`, which engines run
_CHOOSING = ("LIMIT", "OFFSET", "SAMPLE", "GROUP_CONCAT", "NOW", "RAND", "UUID", "STRUUID", "BNODE")
_OTHER_CLAUSES = ("SELECT", "ASK", "CONSTRUCT", "DESCRIBE", "ORDER BY", "LIMIT")
MAX_GRAPHS = 5  # on which a repaired query is compared with gold; 8 only add edits without effect
MAX_ASKED = 24  # whether patterns of a query have solutions
Empty: TypeAlias = tuple[Element, ...]
"""A triple pattern, a pair of patterns, or patterns with a FILTER, that have no solution."""
MOST_TRIED = 10  # combinations of edits
MOST_TRIED_OF_MANY = 6  # of more than MAX_PAIRED edits, of which two are hardly ever the cause


class SparqlEdits:
    """The edits from a predicted query to gold, the smallest first; equal edits at several places are one.

    `first_edits` were already made in predicted. `unknown` are terms that the source does not have.
    """

    def __init__(
        self,
        predicted: Select,
        gold: Select,
        writer: Writer,
        *,
        needs_width: bool = False,
        by_columns: bool = True,
        first_edits: Sequence[CausingEdit] = (),
        unknown: Collection[str] = (),
    ) -> None:
        self.first_edits = first_edits
        self._unknown = unknown
        self._needs_width = needs_width
        self._tree = predicted
        self._gold = with_names_of(gold, predicted, by_columns=by_columns)
        self._names_in_gold = dict(zip(terms(self._gold), terms(gold), strict=True))
        self._lines = Lines(writer, predicted, self._gold)
        self._triple_count = sum(isinstance(node, Triple) for node in walk(predicted))
        self._defects = defects(predicted) | defects(self._gold)
        self._edits = Differences(predicted, self._gold, self._lines).edits()
        self._trees: dict[tuple[int, ...], Select | None] = {}
        self._texts: dict[tuple[int, ...], str | None] = {}

    @cached_property
    def edits(self) -> Sequence[CausingEdit]:
        """All edits in the order in which they are tried; those that replace unknown terms are labelled so."""
        unknown_names = {*map(self._lines.writer.term, self._unknown)}
        labelled = []
        for edit in (edit.shown for edit in self._edits):
            old, _, new = (side.split() for side in edit.change.partition(" → "))
            replaces_unknown = not unknown_names.isdisjoint(old) and unknown_names.isdisjoint(new)
            is_unknown = edit.label.startswith("wrong-") and replaces_unknown
            labelled.append(replace(edit, label="unknown-term") if is_unknown else edit)
        return labelled

    def combinations(self) -> Iterator[tuple[int, ...]]:
        """Yield which edits to make together, by number: single edits, then pairs, the smallest first.

        Combinations with another number of columns than gold come last, or are left out if they cannot be right.
        """
        numbers = range(len(self._edits))
        candidates = [*([()] if self.first_edits else []), *zip(numbers), *combinations(numbers[:MAX_PAIRED], 2)]
        ranked = []
        for place, chosen in enumerate(candidates):
            tree, size = self._edited(chosen), sum(self._edits[number].size for number in chosen)
            is_other_width = tree is not None and self._extra_columns(tree) != 0
            if not (is_other_width and self._needs_width):
                ranked.append((is_other_width, len(chosen), size, place, chosen))
        most = MOST_TRIED if len(numbers) <= MAX_PAIRED else MOST_TRIED_OF_MANY
        yield from islice((chosen for *_, chosen in sorted(ranked) if self.applied(chosen) is not None), most)

    def _extra_columns(self, tree: Select) -> int:
        """Return how many more columns than gold a query has; 0 if either query has `SELECT *`."""
        return 0 if tree.selects_all or self._gold.selects_all else len(tree.items) - len(self._gold.items)

    def applied(self, numbers: Sequence[int]) -> str | None:
        """Return the text of predicted after these edits; None if the edited query is not worth running.

        That is so if it returns fewer columns than gold, has new defects, or keeps none of its triples.
        """
        tree, key = self._edited(numbers), tuple(numbers)
        if tree is None or 0 < self._triple_count <= sum(self._edits[number].dropped for number in numbers):
            return None
        if key not in self._texts:
            is_sound = self._extra_columns(tree) >= 0 and defects(tree) <= self._defects
            text = self._lines.writer.query(readable(tree, self._lines.names)) if is_sound else None
            self._texts[key] = text
        return self._texts[key]

    def reach_gold(self, numbers: Sequence[int]) -> bool:
        """Return whether predicted has the patterns and clauses of gold after these edits, in any order."""
        tree = self._edited(numbers)
        return tree is not None and not Differences(tree, self._gold, self._lines).edits()

    def reach_other_shape(self, numbers: Sequence[int]) -> bool:
        """Return False, because small graphs show whether another shape says the same."""
        return False

    def _edited(self, numbers: Sequence[int]) -> Select | None:
        """Return the tree of predicted after these edits; None if nothing remains."""
        key = tuple(numbers)
        if key in self._trees:
            return self._trees[key]
        steps: defaultdict[int, list[Step]] = defaultdict(list)
        for step in (step for number in numbers for step in self._edits[number].steps):
            if step not in steps[id(step[0])]:  # the pattern of a column, which is an edit of its own, too
                steps[id(step[0])].append(step)

        def change(old: Node, new: Node) -> Node | tuple[Node, ...] | None:
            replacement: Node | tuple[Node, ...] | None = new
            for _, make in steps.get(id(old), ()):
                if replacement is None or isinstance(replacement, tuple):
                    break
                replacement = make(replacement)
            return replacement

        self._trees[key] = changed(self._tree, change)
        return self._trees[key]

    def hard_coded(self, answer: Table) -> Cause | None:
        """Return the cause of a query that states its answer, with columns that differ; None if the query searches."""
        edit = hard_coded_edit(self._tree, self._gold, answer, self._lines)
        if edit is None:
            return None
        found_by = self._only_gold()
        columns = [
            column
            for column in self._largest_of_clauses("SELECT")
            if column.label in ("extra-column", "missing-column")
        ]
        return Cause(edits=(replace(edit, change=": ".join(filter(None, (edit.change, found_by)))), *columns))

    @property
    def predicted(self) -> Select:
        """The predicted query without the variables of its normal form."""
        return readable(self._tree, self._lines.names)

    def why_nothing(self, unknown: Sequence[CausingEdit], empty_patterns: Sequence[Empty]) -> list[CausingEdit]:
        """Return the edits that say why predicted finds nothing; an empty list if that is not known.

        `unknown` are edits of unknown terms, and `empty_patterns` are patterns without solutions.
        """
        starts = tuple(f"{self._lines.line(element)} " for empty in empty_patterns for element in empty)
        swapped = [edit for edit in self.edits if edit.label == "swapped" and edit.change.startswith(starts)]
        return [*unknown, *swapped, *map(self._empty_edit, empty_patterns)][:MAX_TERMS]

    def certain(self, answer: Table | None, gold: Table | None) -> list[CausingEdit]:
        """Return the edits that are needed whatever the patterns are.

        They change a misspelled column, the form, the number of columns, or a LIMIT that cuts the shorter answer.
        """
        width = self._extra_columns(self._tree)
        labels: list[CauseLabel] = ["syntax"]
        if self._tree.form != self._gold.form:
            labels.append("wrong-form")
        elif width < 0 or (width > 0 and self._needs_width):
            labels.append("missing-column" if width < 0 else "extra-column")
        if answer is not None and gold is not None and len(answer.rows) != len(gold.rows):
            rows, limit = min((len(answer.rows), self._tree.limit), (len(gold.rows), self._gold.limit))
            labels += ["wrong-limit"] if limit == str(rows) else []
        last_edits = {edit.label: edit for edit in (*self.first_edits, *self.edits)}
        return [last_edits[label] for label in labels if label in last_edits]

    def listed(self, faults: Sequence[CausingEdit]) -> Cause | None:
        """Return the cause that consists of known faults, with what predicted lacks otherwise; None without faults."""
        only_gold = self._only_gold()
        missing = CausingEdit(label="missing-pattern", clause="WHERE", change=f"{NOTHING} → {only_gold}")
        cut_or_ordered = ("ORDER", "LIMIT") if self._gold.order or self._gold.limit or self._tree.limit else ()
        further = [missing] if only_gold else self._largest_of_clauses("SELECT", *cut_or_ordered)
        return Cause(edits=(*dict.fromkeys((*faults, *further)),)) if faults else None

    def _empty_edit(self, empty: Empty) -> CausingEdit:
        match empty:
            case (Triple(subject, ("a", *_), name),) if is_variable(subject) and name.startswith("<"):
                change = f"nothing is a {self._lines.writer.term(name)}"
            case _:
                change = f"nothing matches {' . '.join(map(self._lines.line, empty))}"
        return CausingEdit(label="empty-pattern", clause="WHERE", change=change)

    def union_columns(self, answer: Table, gold: Table) -> Cause | None:
        """Return the cause of a query that puts values of several gold columns into one by UNION or VALUES; else None.

        A column contains a gold column if it has half of its values, or if an arm of the UNION has a class like its
        own.
        """
        unions = [node for node in walk(self._tree) if isinstance(node, Union) and node.arms[1:]]
        if not unions and not any(isinstance(node, Data) for node in walk(self._tree)):
            return None
        gold_classes = classes(self._gold)
        columns = [
            ({row[place] for row in gold.rows} - {None}, gold_classes[item.variable])
            for place, item in enumerate(self._gold.items)
        ]
        for place, column in enumerate(answer.columns):
            values = {row[place] for row in answer.rows}
            arms = [classes(arm)[f"?{column}"] for union in unions for arm in union.arms]
            joined: list[int] = []
            for number, (cells, names) in enumerate(columns):
                is_apart = all(cells.isdisjoint(columns[other][0]) for other in joined)
                is_like = any(are_alike(name, gold_name) for arm in arms for name in arm for gold_name in names)
                if cells and is_apart and (is_like or 2 * len(cells & values) >= len(cells)):
                    joined.append(number)
            if len(joined) > 1:
                change = f"?{column} → {' '.join(f'?{gold.columns[number]}' for number in joined)}"
                return Cause(edits=(CausingEdit(label="union-columns", clause="SELECT", change=change),))
        return None

    def _largest_of_clauses(self, *clauses: str) -> list[CausingEdit]:
        """Return the largest edit of each of these clauses."""
        last_edits = {edit.clause: edit for edit in self.edits}
        return [last_edits[clause] for clause in clauses if clause in last_edits]

    def _only_gold(self) -> str:
        """Return the patterns and filters that only gold has, in one line."""
        patterns = self.shared_patterns
        texts = [] if patterns is None else [text for text in patterns.only_gold if not text.startswith(_OTHER_CLAUSES)]
        return one_line(" . ".join(texts), MAX_CHANGE)

    @cached_property
    def shared_patterns(self) -> SharedPatterns | None:
        """What both queries have in common and what only one has; None if gold has no triple pattern."""
        return shared_patterns(self._tree, self._gold, self._names_in_gold, self._lines)


def find_edits(predicted: Execution, gold: Execution, case: Case, session: Session) -> Edits:
    """Return the edits from a predicted SPARQL query to gold; raise `SourceError`.

    Unknown terms that resemble terms of gold are replaced before all other edits. The fallback is the first of these
    that applies: a hard-coded answer, the reason why predicted finds nothing, columns joined by UNION, edits that are
    needed whatever the patterns are, the shared patterns.
    """
    query, gold_query, source = predicted.query or "", gold.query or "", case.settings.source
    policy = case.settings.policy
    prefixes = {} if source is None else declared_prefixes(source.settings)
    source_terms = session.source_terms(case) if predicted.error is None else None
    unknown_terms = (session.unknown_terms(query, case) or ()) if source_terms is not None else ()
    required = [term for term in unknown_terms if term.is_required]
    finds_nothing = _finds_nothing(predicted.answer) and not _finds_nothing(gold.answer)

    unknown = [term.term for term in required if not term.is_of_gold] if finds_nothing else []
    edits = sparql_edits(
        query,
        gold_query,
        needs_width=policy.extra_columns == "reject" and not policy.gold_columns,
        by_columns=_have_same_sorts(predicted.answer, gold.answer),
        replaced=[term for term in required if term.is_of_gold],
        unknown=unknown,
        prefixes=prefixes,
    )
    other_words = in_other_words(with_prefixes(query, prefixes))
    if predicted.error is not None:
        failed_query = FailedQuery(query, predicted.error.message, gold_query, source=source)
        return Edits([edits] if edits else [], in_other_words=other_words, repairs=sparql_repairs(failed_query))
    if edits is None:
        return Edits(in_other_words=other_words)
    predicted_table, gold_table = (
        side.answer if isinstance(side.answer, Table) else None for side in (predicted, gold)
    )
    cause = None if gold_table is None else edits.hard_coded(gold_table)
    cells = [] if gold_table is None else [cell for row in gold_table.rows for cell in row]
    is_by_chance = len(cells) == 1 and not isinstance(cells[0], IRI)  # an edit may hit a single number, text or boolean
    most_untested = 0 if cause is not None or is_by_chance else 1

    def fallback() -> Cause | SharedPatterns | None:
        if cause is not None:
            return cause
        faults: list[CausingEdit] = []
        if finds_nothing:
            changes = [CausingEdit(label="unknown-term", clause="WHERE", change=term.change) for term in required]
            empty = empty_patterns(edits.predicted, unknown, source_terms) if source_terms is not None else []
            faults = edits.why_nothing(changes, empty)
        found = None
        if not faults and predicted_table is not None and gold_table is not None:
            found = edits.union_columns(predicted_table, gold_table)
        found = found or edits.listed([*faults, *edits.certain(predicted_table, gold_table)])
        if found is not None or (shared := edits.shared_patterns) is None:
            return found
        return replace(shared, unknown_terms=tuple(term.text for term in unknown_terms))

    return Edits(
        [edits],
        fallback,
        most_untested,
        in_other_words=other_words,
        is_determined=not any(token.is_word(*_CHOOSING) for token in read_query(query).tokens),
        databases=MAX_GRAPHS,
        first_edits=edits.first_edits,
        is_extended=most_untested > 0,
        prefers_untested=True,
    )


def empty_patterns(tree: Select, unknown: Collection[str], source_terms: SourceTerms) -> list[Empty]:
    """Return the required triple patterns with known terms that have no solution.

    If every pattern has one and no term is unknown, return a pair of patterns, or a FILTER with its patterns or all
    patterns, without a common solution. The source is asked at most MAX_ASKED times.
    """
    where = tree.where or Group(())
    budget = iter(range(MAX_ASKED))

    def is_empty(*elements: Element) -> bool:
        names: dict[str, str] = {}
        group = renamed(
            Group(elements), lambda term: names.setdefault(term, f"?v{len(names)}") if is_variable(term) else term
        )
        patterns = " . ".join(map(Writer({}).line, group.elements))
        return next(budget, None) is not None and source_terms.finds(patterns, tree) is False

    def reasons(element: Element) -> list[Empty]:
        is_known = isinstance(element, Triple) and not unknown_in(element, unknown)
        return [(element,)] if is_known and is_empty(element) else []

    single = [*dict.fromkeys(why_empty(where, reasons))]
    if single or unknown:
        return single
    triples = [element for element in where.elements if isinstance(element, Triple)]
    joined: list[Empty] = [pair for pair in combinations(triples, 2) if {*variables(pair[0])} & {*variables(pair[1])}]
    filtered: list[Empty] = [
        (*(triple for triple in triples if is_whole or {*variables(triple)} & {*variables(element)}), element)
        for is_whole in (False, True)
        for element in where.elements
        if isinstance(element, Filter) and not any(isinstance(part, Group) for part in walk(element))
    ]
    return [*islice((elements for elements in (*joined, *filtered) if elements[1:] and is_empty(*elements)), 1)]


def _finds_nothing(answer: Answer | None) -> bool:
    """Return whether an answer may mean that nothing is found: no rows, or one row of false, zero or empty cells."""
    if not isinstance(answer, Table):
        return False
    cells = [cell for row in answer.rows for cell in row]
    return len(answer.rows) <= 1 and all(
        not cell or (isinstance(cell, Literal) and cell.lexical in ("0", "")) for cell in cells
    )


def _have_same_sorts(predicted: Answer | None, gold: Answer | None) -> bool:
    """Return whether the first rows of two answers have IRIs in the same columns; True if an answer has no rows."""
    if not isinstance(predicted, Table) or not isinstance(gold, Table) or not predicted.rows or not gold.rows:
        return True
    cells = zip(predicted.rows[0], gold.rows[0], strict=False)
    return all(isinstance(cell, IRI) == isinstance(gold_cell, IRI) for cell, gold_cell in cells)


def sparql_edits(
    predicted: str,
    gold: str,
    *,
    needs_width: bool = False,
    by_columns: bool = True,
    replaced: Sequence[UnknownTerm] = (),
    unknown: Collection[str] = (),
    prefixes: Mapping[str, str] = MappingProxyType({}),
) -> SparqlEdits | None:
    """Return the edits from a predicted query to gold; None if a query cannot be read, or both are very long.

    - `needs_width`: a right answer has as many columns as gold
    - `by_columns`: columns at the same place have the same role
    - `replaced`: unknown terms that become their nearest known terms before the comparison
    - `unknown`: other terms that the source does not have
    - `prefixes`: those that the source declares

    >>> edits = sparql_edits("SELECT ?s { ?s :age ?a FILTER(?a > 30) }", "SELECT ?x { ?x :age ?y FILTER(?y > 40) }")
    >>> edits.edits
    [CausingEdit(label='wrong-value', clause='FILTER', change='30 → 40')]
    """
    try:
        gold_query = read_tree(gold, prefixes)
        query = read_tree(predicted, {**prefixes, **gold_query.prefixes})
        gold_query = read_tree(gold, {**prefixes, **query.prefixes})
    except UnreadableError:
        return None
    tree, syntax_edits = _without_joined_word(query.tree)
    names = {term.term: term.nearest for term in replaced}
    trees = normal(renamed(tree, lambda token: names.get(token) or token)), normal(gold_query.tree)
    if sum(1 for tree in trees for _ in walk(tree)) > MAX_NODES:
        return None
    stated_prefixes = {**prefixes, **gold_query.prefixes, **query.prefixes}
    common_prefixes = excluding(COMMON_PREFIXES, stated_prefixes)
    term_edits = [CausingEdit(label="unknown-term", clause="WHERE", change=term.change) for term in replaced]
    return SparqlEdits(
        *trees,
        Writer(stated_prefixes | common_prefixes),
        needs_width=needs_width,
        by_columns=by_columns,
        first_edits=[*syntax_edits, *term_edits],
        unknown=unknown,
    )


def _without_joined_word(tree: Select) -> tuple[Select, list[CausingEdit]]:
    """Return a query whose last column and WHERE, written as one word, are separated, with that edit.

    Without such a word, the query is returned with no edit. The word must be unbound, and the column without WHERE
    bound.
    """
    name = tree.items[-1].variable if tree.items else ""
    column = name.removesuffix(_JOINED_WORD)
    if column == name or tree.where is None or name in (names := variables(tree.where)) or column not in names:
        return tree, []
    repaired_tree = replace(tree, items=(*tree.items[:-1], Item(Expr(column))))
    return repaired_tree, [CausingEdit(label="syntax", clause="SELECT", change=f"{name} → {column} {_JOINED_WORD}")]
