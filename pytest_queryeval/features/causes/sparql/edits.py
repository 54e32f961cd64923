"""Single edits of a predicted SPARQL query that lead to gold, and the queries that they make."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, combinations, islice

from pytest_queryeval.core.cause import MAX_EDITS, NOTHING, Cause, CausingEdit, QueryEdits, SharedPatterns
from pytest_queryeval.core.model import Answer, Case, Execution
from pytest_queryeval.core.table import IRI, Literal, Table
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.causes import Edits, FailedQuery
from pytest_queryeval.features.causes.sparql.alignment import (
    MAX_CHANGE,
    Lines,
    hard_coded_edit,
    normal,
    readable,
    shared_patterns,
    with_names_of,
)
from pytest_queryeval.features.causes.sparql.changes import Edit, Step, defects
from pytest_queryeval.features.causes.sparql.differences import Differences
from pytest_queryeval.features.causes.sparql.repairs import sparql_repairs
from pytest_queryeval.languages.sparql.query import COMMON_PREFIXES, declared_prefixes, read_query, with_prefixes
from pytest_queryeval.languages.sparql.source_terms import UnknownTerm
from pytest_queryeval.languages.sparql.tree import (
    Expr,
    Item,
    Node,
    Select,
    Triple,
    Writer,
    changed,
    renamed,
    terms,
    variables,
    walk,
)
from pytest_queryeval.languages.sparql.tree_reader import UnreadableError, in_other_words, read_tree
from pytest_queryeval.text.formatting import one_line

MAX_NODES = 1_500  # of the trees of both queries
MAX_TERMS = 6  # that are named where they are the cause
MAX_PAIRED = 6  # edits of which two are made together, the smallest ones
_JOINED_WORD = "WHERE"  # as in `SELECT ?bookWHERE { … }`, which engines run
_CHOOSING = ("LIMIT", "OFFSET", "SAMPLE", "GROUP_CONCAT", "NOW", "RAND", "UUID", "STRUUID", "BNODE")
_FORMS = ("SELECT", "ASK", "CONSTRUCT", "DESCRIBE")
MOST_TRIED = 10  # combinations of edits
MOST_TRIED_OF_MANY = 4  # of more than MAX_PAIRED edits, of which two are hardly ever the cause


class SparqlEdits:
    """The edits that lead from a predicted query to gold, the smallest first; equal ones in several places are one.

    Where the text of predicted was repaired before, that repair is the first edit, and part of all combinations.
    """

    def __init__(
        self,
        predicted: Select,
        gold: Select,
        writer: Writer,
        *,
        needs_width: bool = False,
        by_columns: bool = True,
        syntax_edit: CausingEdit | None = None,
        unknown_terms: Collection[str] = (),
    ) -> None:
        self._syntax_edit = syntax_edit
        self._unknown_names = {*map(writer.term, unknown_terms)}
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
        if syntax_edit is not None:
            self._edits.insert(0, Edit(shown=syntax_edit, size=0, steps=()))

    @property
    def most_untested(self) -> int:
        """Return of how many edits a cause may be that only the source confirms: one, beside a repair of the text."""
        return 1 if self._syntax_edit is None else 2

    @cached_property
    def edits(self) -> Sequence[CausingEdit]:
        """All edits, in the order in which they are to be tried, those that replace unknown terms with their label."""
        labelled = []
        for edit in (edit.shown for edit in self._edits):
            old, _, new = (side.split() for side in edit.change.partition(" → "))
            is_wrong, names = edit.label.startswith("wrong-"), self._unknown_names
            replaces_unknown = is_wrong and not names.isdisjoint(old) and names.isdisjoint(new)
            labelled.append(replace(edit, label="unknown-term") if replaces_unknown else edit)
        return labelled

    def combinations(self) -> Iterator[tuple[int, ...]]:
        """Yield which edits to make together: each alone, then pairs, the smallest first.

        Those that make another number of columns than gold has come last, if they can be right at all.
        """
        if self._syntax_edit is None:
            numbers = range(len(self._edits))
            candidates: Iterable[tuple[int, ...]] = chain(zip(numbers), combinations(numbers[:MAX_PAIRED], 2))
        else:
            numbers = range(1, len(self._edits))
            candidates = ((0, number) for number in numbers)
            yield (0,)
        ranked = []
        for place, chosen in enumerate(candidates):
            tree, size = self._edited(chosen), sum(self._edits[number].size for number in chosen)
            is_other_width = tree is not None and self._extra_columns(tree) != 0
            if not (is_other_width and self._needs_width):
                ranked.append((is_other_width, len(chosen), size, place, chosen))
        most = MOST_TRIED if len(numbers) <= MAX_PAIRED else MOST_TRIED_OF_MANY
        yield from islice((chosen for *_, chosen in sorted(ranked) if self.applied(chosen) is not None), most)

    def _extra_columns(self, tree: Select) -> int:
        """Return how many columns more than gold a query has; 0 where one of them returns all variables."""
        return 0 if tree.selects_all or self._gold.selects_all else len(tree.items) - len(self._gold.items)

    def applied(self, numbers: Sequence[int]) -> str | None:
        """Return predicted after these edits; None if it returns fewer columns than gold, or has new defects.

        None, too, where none of its triples would remain: a pattern replaced as a whole is not a small edit.
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
        """Return whether predicted then has the patterns and clauses of gold, in any order."""
        tree = self._edited(numbers)
        if tree is None or tree == self._gold:
            return tree is not None
        return not SparqlEdits(normal(readable(tree, self._lines.names)), self._gold, self._lines.writer).edits

    def reach_other_shape(self, numbers: Sequence[int]) -> bool:
        """Return False: small graphs tell whether another shape says the same."""
        return False

    def _edited(self, numbers: Sequence[int]) -> Select | None:
        """Return the tree of predicted after these edits."""
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
        """Return the cause of a query that names its answer, with the columns that differ; None if it searches."""
        columns = [edit for edit in self.edits if edit.label in ("extra-column", "missing-column")]
        edit = hard_coded_edit(self._tree, self._gold, answer, self._lines)
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
        patterns = shared_patterns(self._tree, self._gold, self._names_in_gold, self._lines)
        if patterns is None or self._syntax_edit is None:
            return patterns
        return replace(patterns, only_predicted=(self._syntax_edit.change.split()[0], *patterns.only_predicted))


class UnknownTermEdits:
    """The unknown terms of a predicted query as its edits; `prefixes` are those of the source."""

    def __init__(self, query: str, terms: Sequence[UnknownTerm], prefixes: Mapping[str, str]) -> None:
        self._query = read_tree(query, prefixes)
        self._prefixes = {**self._query.prefixes, **prefixes, **self._query.prefixes}
        self._terms = terms
        self.edits = [CausingEdit(label="unknown-term", clause="WHERE", change=term.change) for term in terms]

    def combinations(self) -> Iterator[tuple[int, ...]]:
        """Yield all edits together: a term that is left would still find nothing."""
        if len(self._terms) <= MAX_EDITS:
            yield tuple(range(len(self._terms)))

    def applied(self, numbers: Sequence[int]) -> str | None:
        """Return the query with the nearest terms; None if one has none."""
        names = {self._terms[number].term: self._terms[number].nearest for number in numbers}
        if None in names.values():
            return None
        tree = renamed(self._query.tree, lambda token: names.get(token) or token)
        return Writer(self._prefixes).query(tree)

    def reach_gold(self, numbers: Sequence[int]) -> bool:
        """Return False: nearest terms are taken without a look at gold."""
        return False

    def reach_other_shape(self, numbers: Sequence[int]) -> bool:
        """Return False: small graphs tell whether another shape says the same."""
        return False


def find_edits(predicted: Execution, gold: Execution, case: Case, session: Session) -> Edits:
    """Return the edits of unknown terms, then those that lead from a predicted query to gold; raise `SourceError`.

    The fallback is a hard-coded answer, the unknown terms of a query that finds nothing, else what the patterns of both
    queries share.
    """
    query, gold_query, source = predicted.query or "", gold.query or "", case.settings.source
    policy = case.settings.policy
    unknown_terms = (session.unknown_terms(query, case) or ()) if predicted.error is None else ()
    edits = sparql_edits(
        query,
        gold_query,
        needs_width=policy.extra_columns == "reject" and not policy.gold_columns,
        by_columns=_have_same_sorts(predicted.answer, gold.answer),
        unknown_terms=[term.term for term in unknown_terms],
    )
    groups: list[QueryEdits] = [] if edits is None else [edits]
    prefixes = {} if source is None else declared_prefixes(source.settings)
    other_words = in_other_words(with_prefixes(query, prefixes))
    if predicted.error is not None:
        failed_query = FailedQuery(query, predicted.error.message, gold_query, source=source)
        return Edits(groups, in_other_words=other_words, repairs=sparql_repairs(failed_query))
    cause = edits.hard_coded(gold.answer) if edits is not None and isinstance(gold.answer, Table) else None
    cells = [cell for row in gold.answer.rows for cell in row] if isinstance(gold.answer, Table) else []
    is_by_chance = len(cells) == 1 and not isinstance(cells[0], IRI)  # an edit may hit a single number, text or boolean
    most_untested = 0 if edits is None or cause is not None or is_by_chance else edits.most_untested
    if unknown_terms:
        groups.insert(0, UnknownTermEdits(query, unknown_terms, prefixes))

    def fallback() -> Cause | SharedPatterns | None:
        if cause is None and unknown_terms and _finds_nothing(predicted.answer):
            missing = [] if edits is None else edits.missing()
            return Cause(edits=(*groups[0].edits[:MAX_TERMS], *missing))
        return edits.shared_patterns() if cause is None and edits is not None else cause

    is_determined = not any(token.is_word(*_CHOOSING) for token in read_query(query).tokens)
    return Edits(groups, fallback, most_untested, in_other_words=other_words, is_determined=is_determined)


def _finds_nothing(answer: Answer | None) -> bool:
    """Return whether an answer is that of a pattern without solutions: no rows, false, zero, or unbound cells."""
    if not isinstance(answer, Table):
        return False
    cells = [cell for row in answer.rows for cell in row]
    return len(answer.rows) <= 1 and all(
        not cell or (isinstance(cell, Literal) and cell.lexical in ("0", "")) for cell in cells
    )


def _have_same_sorts(predicted: Answer | None, gold: Answer | None) -> bool:
    """Return whether the first rows of two answers have IRIs in the same columns."""
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
    unknown_terms: Collection[str] = (),
) -> SparqlEdits | None:
    """Return the edits from a predicted query to gold; None if one cannot be read, or they are very long.

    With `needs_width`, a right answer has as many columns as gold's; without `by_columns`, columns in the same place
    may be of other variables. Edits of `unknown_terms` have their label.

    >>> edits = sparql_edits("SELECT ?s { ?s :age ?a FILTER(?a > 30) }", "SELECT ?x { ?x :age ?y FILTER(?y > 40) }")
    >>> edits.edits
    [CausingEdit(label='wrong-value', clause='FILTER', change='30 → 40')]
    """
    try:
        gold_query = read_tree(gold)
        query = read_tree(predicted, gold_query.prefixes)
        gold_query = read_tree(gold, query.prefixes)
    except UnreadableError:
        return None
    tree, syntax_edit = _without_joined_word(query.tree)
    trees = normal(tree), normal(gold_query.tree)
    if sum(1 for tree in trees for _ in walk(tree)) > MAX_NODES:
        return None
    prefixes = {**gold_query.prefixes, **query.prefixes}
    common_prefixes = {name: iri for name, iri in COMMON_PREFIXES.items() if name not in prefixes}
    writer = Writer(prefixes | common_prefixes)
    return SparqlEdits(
        *trees,
        writer,
        needs_width=needs_width,
        by_columns=by_columns,
        syntax_edit=syntax_edit,
        unknown_terms=unknown_terms,
    )


def _without_joined_word(tree: Select) -> tuple[Select, CausingEdit | None]:
    """Return a query whose last column is no longer a variable and WHERE in one word, with that edit; else None.

    Only a variable is taken apart that nothing binds, while the pattern has it without WHERE.
    """
    name = tree.items[-1].variable if tree.items else ""
    column = name.removesuffix(_JOINED_WORD)
    if column == name or tree.where is None or name in (names := variables(tree.where)) or column not in names:
        return tree, None
    repaired_tree = replace(tree, items=(*tree.items[:-1], Item(Expr(column))))
    return repaired_tree, CausingEdit(label="syntax", clause="SELECT", change=f"{name} → {column} {_JOINED_WORD}")
