"""The edits from a predicted SQL query to gold, and gold texts in a letter case that the data does not have."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import combinations, islice
from typing import TypeAlias

from sqlglot import exp

from pytest_queryeval.core.cause import NOTHING, CauseLabel, CausingEdit, SharedPatterns
from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.core.mappings import grouped
from pytest_queryeval.core.model import Case, Execution, QueryOrAnswer
from pytest_queryeval.core.table import Table
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.causes import Correction, Edits, FailedQuery, without, without_common
from pytest_queryeval.features.causes.sql import changes, parts
from pytest_queryeval.features.causes.sql.alignment import Remarks, align, qualify, shared_parts
from pytest_queryeval.features.causes.sql.changes import Edit, Side, Size, Step, copy_step, replace_step, write, writer
from pytest_queryeval.features.causes.sql.clause_edits import ClauseEdits
from pytest_queryeval.features.causes.sql.parts import key, query_within, sources, table_names
from pytest_queryeval.features.causes.sql.repairs import sql_guesses, sql_repairs, sql_translations
from pytest_queryeval.features.causes.sql.shape import in_shape_of
from pytest_queryeval.languages.sql import parse_query
from pytest_queryeval.languages.sql.columns import Columns
from pytest_queryeval.languages.sql.compared_texts import ComparedText, compared_texts
from pytest_queryeval.text.formatting import one_line_with_end

MAX_CHANGE = 160  # characters of each side
# Of a query: counts, so that reports do not depend on the machine. People's queries have some hundred and a few.
MAX_NODES = 1_500
MAX_SELECTS = 12
DATABASES = 16  # small ones, on which a repaired query is compared with gold
TELLING_ROWS = 3  # of an answer that an edit hardly hits by chance
MAX_LOOKUPS = 6  # of the texts of a query in the data
Run: TypeAlias = Callable[[str], Table | None]
"""Return the answer of a query on the source; None if it fails."""
_QUOTED = re.compile(r"""'([^']*)'|"([^"]*)\"""")
_FIRST_WORDS = {
    **{clause: f"{clause} " for clause in ("FROM", "WHERE", "HAVING", "QUALIFY", "LIMIT")},
    **{clause: f"{clause} BY " for clause in ("GROUP", "ORDER")},
}
_FIRST = ("order", "limit", "offset")  # what takes the first rows
# Clauses that are missing or wrong together, with the arguments of SELECT that have them.
_TOGETHER = {("ORDER", "LIMIT"): _FIRST, ("GROUP", "HAVING"): ("group", "having")}
_SELECTED = ("expressions", "group", "having")


class SqlEdits:
    """The edits from a predicted query to gold, the smallest first, and the queries that combinations of them make."""

    def __init__(
        self,
        predicted: exp.Expr,
        gold: exp.Expr,
        reshaped: exp.Expr | None,
        schema: Schema,
        dialect: str,
        widths: Container[int] | None,
    ) -> None:
        """Compare predicted with `reshaped`, gold in the shape of predicted, if it is given, else with gold.

        `widths` are the numbers of columns that an answer may have; None allows any. The trees are changed.
        """
        self._widths, self._width = widths, _width(predicted)
        self._keeping_width: set[int] = set()  # edits that leave the number of columns as it is, which is wrong
        self._align = partial(align, schema=schema, dialect=dialect)
        self._align(predicted, gold)
        if reshaped is not None:
            self._align(predicted, reshaped)
        self._writer = writer(dialect)
        self._gold = gold
        selects = zip(*map(parts.arms, (predicted, gold)), strict=False)
        self._has_extra_tables = any(sources(select).keys() - sources(gold).keys() for select, gold in selects)
        self._root = exp.Paren(this=predicted)  # so that the query itself has a place
        self._products = max(map(parts.products, (predicted, gold)))
        self._structs = _unknown_tables(predicted) | _unknown_tables(gold)  # columns with fields
        self._compared = reshaped or gold
        clause_edits = ClauseEdits(predicted, self._compared)
        edits = [*combined_edits(clause_edits, predicted, self._compared), *clause_edits.edits]
        if reshaped is not None:  # larger edits are shown as gold has them
            edits = [edit for edit in edits if edit.size < Size.CLAUSE]
            edits += _unnested(predicted, gold) if isinstance(predicted, exp.Select) else ()
        self._edits = sorted(edits, key=lambda edit: edit.rank)

    @cached_property
    def edits(self) -> Sequence[CausingEdit]:
        """All edits in the order in which they are tried, as reports show them.

        They name the tables that are dropped because nothing uses them after the edit, and the query of a set
        operation.
        """
        operation = parts.set_operation(self._root.this)
        arms = enumerate(parts.arms(self._root.this) if isinstance(self._root.this, exp.SetOperation) else (), start=1)
        arm_of = {id(node): f"; in query {number} of {operation}" for number, arm in arms for node in arm.walk()}
        shown = []
        for place, edit in enumerate(self._edits):
            word = _FIRST_WORDS.get(edit.clause, "")  # reports show the clause before the change
            texts = (self._text(side, edit.within).removeprefix(word) for side in edit.change)
            old, new = (one_line_with_end(text, MAX_CHANGE) for text in texts)
            names = self._changed([place])[1] if self._has_extra_tables else ()
            dropped = f"; drops {', '.join(dict.fromkeys(names))}, which nothing else uses" if names else ""
            change = f"{old or NOTHING} → {new or NOTHING}{dropped}{arm_of.get(id(edit.within), '')}"
            shown.append(CausingEdit(label=edit.label, clause=edit.clause, change=change))
        return shown

    def combinations(self) -> Iterator[tuple[int, ...]]:
        """Yield which edits to make together, by number: single edits, then pairs, the smallest first.

        An edit that replaces a whole clause is not paired with an edit within that clause. It is not tried alone either
        if the clause has exactly two smaller edits, because the pair says the same with less.
        """
        areas, sizes = [edit.areas for edit in self._edits], [edit.size for edit in self._edits]
        parts_of = Counter(
            area for within, size in zip(areas, sizes, strict=True) if size < Size.SEVERAL for area in within
        )
        numbers = range(len(areas))

        def replaces(number: int, part: int) -> bool:
            return sizes[number] == Size.CLAUSE and areas[number][0] in areas[part]

        yield from ((number,) for number in numbers if sizes[number] < Size.CLAUSE or parts_of[areas[number][0]] != 2)
        pairs = [
            (first, second)
            for first, second in combinations(numbers, 2)
            if not replaces(first, second) and not replaces(second, first)
        ]
        yield from sorted(
            pairs,
            key=lambda pair: (sum(sizes[edit] == Size.CLAUSE for edit in pair), sum(sizes[edit] for edit in pair)),
        )

    def applied(self, numbers: Sequence[int]) -> str | None:
        """Return the text of predicted after these edits; None if it is invalid, slow, or has a wrong width.

        It is invalid if it names a table that it does not read. It is slow if it has more joins without a condition
        than predicted and gold have.
        """
        if self._keeping_width.issuperset(numbers):
            return None
        tree, _ = self._changed(numbers)
        width = _width(tree)
        if self._widths is not None and width is not None and width not in self._widths:
            if len(numbers) == 1 and width == self._width:
                self._keeping_width.add(numbers[0])
            return None
        if not _unknown_tables(tree) <= self._structs or parts.products(tree) > self._products:
            return None
        changes.drop_table_names(tree)
        return write(tree, self._writer)

    def reach_gold(self, numbers: Sequence[int]) -> bool:
        """Return whether predicted then has the clauses of gold, regardless of the order of tables and columns."""
        return parts.content(self._changed(numbers)[0]) == self._gold_content

    @cached_property
    def _gold_content(self) -> str:
        return parts.content(self._gold)

    def reach_other_shape(self, numbers: Sequence[int]) -> bool:
        """Return whether predicted, after these edits, equals gold rewritten in predicted's shape."""
        changed, _ = self._changed(numbers)
        reshaped = in_shape_of(self._gold, changed)
        if reshaped is None:
            return False
        self._align(changed, reshaped)
        if isinstance(self._gold, exp.SetOperation):  # which drops what occurs twice
            reshaped.set("distinct", changed.args.get("distinct"))
        return parts.content(changed) == parts.content(reshaped)

    def _changed(self, numbers: Sequence[int]) -> tuple[exp.Expr, list[str]]:
        """Return the tree of predicted after these edits, and the tables dropped because nothing uses them then."""
        steps = (step for number in numbers for step in self._edits[number].steps)
        tree: exp.Expr = changes.changed_copy(self._root, steps).this
        if any(self._edits[number].clause == "FROM" for number in numbers):
            for select in tree.find_all(exp.Select):
                changes.arrange_joins(select)
        dropped_names = []
        if self._has_extra_tables:
            arms = zip(*map(parts.arms, (tree, self._root.this, self._gold)), strict=False)
            dropped_names = [name for selects in arms for name in changes.drop_leftovers(*selects)]
        if self._gold.args.get("with_") is not None:
            changes.add_common_queries(tree, self._gold.args["with_"])
        return tree, dropped_names

    def shared_parts(self, remarks: Remarks) -> SharedPatterns:
        """Return how many parts both queries share, and the parts that only one has."""
        return shared_parts(self._root.this, self._compared, self._write, remarks)

    def _text(self, side: Side, within: exp.Expr) -> str:
        if isinstance(side, str | None):
            return side or ""
        if not isinstance(side, exp.Expr):
            between = ", " if isinstance(side, tuple) else " "
            return between.join(filter(None, (self._text(part, within).strip(" ,") for part in side)))
        copied_side, name = side.copy(), parts.only_table(parts.arms(within)[0])
        changes.drop_table_names(copied_side)
        for column in copied_side.find_all(exp.Column) if name else ():
            if column.table.lower() == name and column.find_ancestor(exp.Select) is None:
                column.set("table", None)
        return self._write(copied_side)

    def _write(self, tree: exp.Expr) -> str:
        return write(tree, self._writer) or tree.key


def _unknown_tables(tree: exp.Expr) -> set[str]:
    """Return the lower-case table names of columns that no table in their SELECT or around it has."""
    columns = (column for column in tree.find_all(exp.Column) if column.table)
    return {column.table.lower() for column in columns if parts.table_of(column) is None}


def _width(tree: exp.Expr) -> int | None:
    """Return the number of columns that a query selects; None if it selects `*`."""
    select = parts.arms(tree)[0]
    return None if not isinstance(select, exp.Select) or select.is_star else len(select.expressions)


def find_edits(predicted: Execution, gold: Execution, case: Case, session: Session) -> Edits:
    """Return the edits from a predicted SQL query to gold, by the tables that the source lists; raise `SourceError`."""
    policy, schema, dialect = case.settings.policy, session.schema(case), case.settings.dialect
    widths = None
    if isinstance(gold.answer, Table) and not policy.gold_columns:
        width = len(gold.answer.columns)
        widths = range(width, width + 1 if policy.extra_columns == "reject" else sys.maxsize)
    query, gold_query = predicted.query or "", gold.query or ""
    groups = sql_edits(query, gold_query, schema, dialect, widths)
    if predicted.error is not None:
        failed_query = FailedQuery(query, predicted.error.message, gold_query, schema, dialect, case.settings.source)
        return Edits(
            groups,
            databases=DATABASES,
            repairs=sql_repairs(failed_query),
            translations=sql_translations(failed_query),
            guesses=sql_guesses(failed_query),
        )
    if not groups:
        return Edits()

    def run(lookup: str) -> Table | None:
        answer = session.execute_cached(QueryOrAnswer(query=lookup), case, is_derived=True).answer
        return answer if isinstance(answer, Table) else None

    def remarks() -> Remarks:
        """Return remarks on compared texts that the data has only in another letter case."""
        return {
            (text.column.rpartition(".")[2].lower(), text.text): f"{text.column} has '{values[0]}'"
            for query_text in (query, gold_query)
            for text in islice(compared_texts(query_text, dialect, schema), MAX_LOOKUPS)
            if (values := _other_spellings(text, run))
        }

    is_telling = isinstance(gold.answer, Table) and len(gold.answer.rows) >= TELLING_ROWS
    return Edits(
        groups,
        lambda: groups[0].shared_parts(remarks()),
        most_untested=int(is_telling),
        databases=DATABASES,
        is_extended=True,
        correction=_gold_correction(gold_query, query, dialect, schema, run),
    )


def sql_edits(
    predicted: str, gold: str, schema: Schema, dialect: str, widths: Container[int] | None = None
) -> list[SqlEdits]:
    """Return the edits from a predicted query to gold: first to gold in another shape, that of predicted, then to gold.

    The list is empty if a query cannot be read as a whole, or is very long. `widths` are the numbers of columns that an
    answer may have; None allows any.

    >>> (edits,) = sql_edits("SELECT id FROM t WHERE age > 30", "SELECT id FROM t WHERE age > 40", Schema(), "")
    >>> [*edits.edits]
    [CausingEdit(label='wrong-value', clause='WHERE', change='30 → 40')]
    >>> edits.applied([0])
    'SELECT id FROM t WHERE age > 40'
    """
    try:
        trees = []
        for tree in (parse_query(query, dialect).whole_tree for query in (predicted, gold)):
            if tree is None or len([*tree.walk()]) > MAX_NODES or len([*tree.find_all(exp.Select)]) > MAX_SELECTS:
                return []
            copy = tree.copy()
            trees.append((query_within(copy) or copy).pop())
            qualify(trees[-1], Columns(schema.tables, dialect))
        predicted_tree, gold_tree = trees
        shape = in_shape_of(gold_tree, predicted_tree)
        groups = [SqlEdits(predicted_tree.copy(), gold_tree.copy(), shape, schema, dialect, widths)] if shape else []
        groups.append(SqlEdits(predicted_tree, gold_tree, None, schema, dialect, widths))
        # Where nothing but the shape differs, that is the cause.
        return [edits for edits in groups if edits is groups[-1] or not edits.reach_other_shape(())]
    except RecursionError:
        return []


def _gold_correction(gold: str, predicted: str, dialect: str, schema: Schema, run: Run) -> Correction | None:
    """Return gold with texts in predicted's letter case, if the data has only that; None if gold is not at fault."""
    texts, gold_texts = ({"".join(groups) for groups in _QUOTED.findall(query)} for query in (predicted, gold))
    spellings = {text.casefold(): text for text in texts - gold_texts}
    suspects = {text: spellings[text.casefold()] for text in gold_texts - texts if text.casefold() in spellings}
    shared_tree = parse_query(gold, dialect).whole_tree
    if not suspects or shared_tree is None:
        return None
    replacements: dict[str, str] = {}
    changed_texts = []
    texts_of_gold = list(islice(compared_texts(gold, dialect, schema), MAX_LOOKUPS))
    for text in texts_of_gold:
        # The same text may be right for another column.
        is_alone = len({compared.column for compared in texts_of_gold if compared.text == text.text}) == 1
        values = _other_spellings(text, run) if is_alone else []
        if values:
            replacements[text.text] = suspects[text.text] if suspects.get(text.text) in values else values[0]
            changed_texts.append(
                f"'{text.text}' of the gold query is not in {text.column}, '{replacements[text.text]}' is"
            )
    if replacements.items().isdisjoint(suspects.items()):
        return None
    tree = shared_tree.copy()
    Columns(schema.tables, dialect).replace_texts(tree)
    for literal in tree.find_all(exp.Literal):
        if literal.is_string and literal.name in replacements:
            literal.set("this", replacements[literal.name])
    query = write(tree, writer(dialect))
    edit = CausingEdit(label="gold-value", clause="WHERE", change="; ".join(changed_texts))
    return None if query is None else Correction(edit, query)


def _other_spellings(text: ComparedText, run: Run) -> list[str]:
    """Return the column's values that resemble a text, the most frequent first; empty if the column has the text."""
    answer = run(text.alike_query)
    if answer is None or any(is_equal for _, _, is_equal in answer.rows):
        return []
    values = [(count, value) for value, count, _ in answer.rows if isinstance(count, int) and isinstance(value, str)]
    return [value for _, value in sorted(values, reverse=True)]


def combined_edits(clause_edits: ClauseEdits, predicted: exp.Expr, gold: exp.Expr) -> Iterator[Edit]:
    """Yield edits that change several clauses, made of edits of single clauses where possible."""
    values = [edit for edit in clause_edits.edits if edit.label == "value-case" and edit.size < Size.CLAUSE]
    if len(values) > 1:  # one edit for all values whose letter case is wrong
        old, new = ([edit.change[side] for edit in values] for side in (0, 1))
        yield replace(values[0], change=(old, new), steps=_steps_of(values))
    if isinstance(predicted, exp.SetOperation):
        yield from _edits_everywhere(clause_edits, predicted)
    for select, gold_select in clause_edits.pairs:
        edits = [edit for edit in clause_edits.edits if edit.within is select]
        yield from _clauses_together(select, gold_select, edits)
        yield from _columns_everywhere(select, edits)
        yield from _extremes(select, gold_select)
        yield from _unnested(select, gold_select)
    if isinstance(gold, exp.SetOperation) and isinstance(predicted, exp.Select):
        yield from _split(predicted, gold)


def _edits_everywhere(clause_edits: ClauseEdits, predicted: exp.SetOperation) -> Iterator[Edit]:
    """Yield one edit for the same edit in several queries of a set operation."""
    arms = {id(arm) for arm in parts.arms(predicted)}
    edits = [edit for edit in clause_edits.edits if id(edit.within) in arms]
    for same_edits in grouped(((edit.label, edit.clause, _content(edit.change)), edit) for edit in edits).values():
        if len(same_edits) > 1:
            yield replace(same_edits[0], within=predicted, extent=Size.SEVERAL, steps=_steps_of(same_edits))


def _content(side: Side) -> str:
    """Return a text that is the same for sides of changes that say the same."""
    return key(side) if isinstance(side, exp.Expr | str | None) else str([*map(_content, side)])


def _clauses_together(select: exp.Select, gold: exp.Select, edits: Sequence[Edit]) -> Iterator[Edit]:
    """Yield edits of clauses that belong together: ORDER BY and LIMIT, GROUP BY and HAVING, aggregate and GROUP BY."""
    for clauses, names in _TOGETHER.items():
        joined = [edit for clause in clauses for edit in edits if edit.clause == clause]
        if len(joined) == len(clauses) == len({edit.clause for edit in joined}):
            old, new = _arguments(select, names), _arguments(gold, names)
            edit = replace(joined[0], change=(old, new), extent=Size.SEVERAL, steps=_steps_of(joined))
            # Without its LIMIT, an order that gold does not have is of no use.
            is_limit = clauses == ("ORDER", "LIMIT") and not new
            yield replace(edit, label="wrong-limit", clause="LIMIT", extent=Size.PART) if is_limit else edit
    groupings = [edit for edit in edits if edit.clause == "GROUP" and edit.change[0] is None]
    for edit in edits if groupings else ():
        aggregate = edit.change[1]
        if edit.label == "missing-column" and isinstance(aggregate, exp.Expr) and aggregate.find(exp.AggFunc):
            change = None, [aggregate, gold.args["group"]]
            yield _edit("missing-column", "SELECT", change, select, *edit.steps, *groupings[0].steps)


def _columns_everywhere(select: exp.Select, edits: Sequence[Edit]) -> Iterator[Edit]:
    """Yield edits that replace a column by another in all clauses except FROM."""
    for edit in edits:
        old, new = edit.change
        if isinstance(old, exp.Column) and isinstance(new, exp.Column) and edit.clause != "FROM":
            columns = [column for column in parts.columns_outside_from(select) if key(column) == key(old)]
            if len(columns) > 1:
                steps = [replace_step(column, new) for column in columns]
                yield _edit("wrong-column", edit.clause, (old, new), select, *steps)


def _extremes(select: exp.Select, gold: exp.Select) -> Iterator[Edit]:
    """Yield edits between two ways of asking for an extreme row, if only one of the queries has LIMIT.

    A condition such as `x = (SELECT max(x) …)` is replaced by `ORDER BY x LIMIT 1`, or the reverse. If only gold has
    LIMIT, a selected `max(x)` is also replaced by `x` with gold's ORDER BY and LIMIT.
    """
    take_first = copy_step(select, gold, *_FIRST)
    if gold.args.get("limit") and not select.args.get("limit"):
        first = _arguments(gold, _FIRST)
        for clause, condition in _extreme_conditions(select):
            yield _edit("nesting", clause, (condition, first), select, (condition, changes.drop_condition), take_first)
        for aggregate in (item.unalias() for item in select.expressions):
            if isinstance(aggregate, exp.Max | exp.Min):
                change = aggregate, [aggregate.this, *first]
                step = replace_step(aggregate, aggregate.this)
                yield _edit("wrong-aggregate", "SELECT", change, select, step, take_first)
    elif select.args.get("limit") and not gold.args.get("limit"):
        first = _arguments(select, _FIRST)
        for clause, condition in _extreme_conditions(gold):
            add = partial(changes.add_condition, clause=clause.lower(), condition=condition)
            yield _edit("nesting", "ORDER", (first, condition), select, take_first, (select, add))


def _extreme_conditions(select: exp.Select) -> list[tuple[str, exp.Expr]]:
    """Return the conditions of WHERE and HAVING, with their clause, that a value is a query's largest or smallest."""
    return [
        (clause, condition)
        for clause in ("WHERE", "HAVING")
        for condition in parts.clause_operands(select, clause.lower())
        if isinstance(condition, exp.EQ)
        and isinstance(query := query_within(condition.right) or query_within(condition.left), exp.Select)
        and len(query.expressions) == 1
        and (isinstance(query.expressions[0].unalias(), exp.Max | exp.Min) or query.args.get("limit"))
    ]


def _unnested(select: exp.Select, gold: exp.Expr) -> Iterator[Edit]:
    """Yield edits that replace `IN (SELECT …)` by joins, if gold reads the same tables."""
    for condition in parts.clause_operands(select, "where"):
        query = parts.nested_select(condition)
        if query is None or query.args.get("limit") or select.args.get("group"):
            continue
        is_clear = sources(query).keys().isdisjoint(sources(select))
        if is_clear and {*table_names(query).values()} <= {*table_names(gold).values()}:
            change: tuple[Side, Side] = (condition, ["JOIN", tuple(sources(query).values())])
            yield _edit("nesting", "WHERE", change, select, (condition, changes.join_nested))


def _split(predicted: exp.Select, gold: exp.SetOperation) -> Iterator[Edit]:
    """Yield the edit that writes a set operation instead of a condition or a table of predicted.

    There is such an edit if gold's first query selects the same as predicted, from all or some of its tables.
    """
    first = query_within(gold.this)
    if not isinstance(first, exp.Select) or not sources(first).keys() <= sources(predicted).keys():
        return
    extra = [alias for alias in sources(predicted) if alias not in sources(first)]
    remaining = predicted.copy()
    if extra:
        changes.drop_sources(remaining, aliases=extra)
    has_same_clauses = all(parts.clause_key(remaining, name) == parts.clause_key(first, name) for name in _SELECTED)
    if not has_same_clauses or parts.tables_content(remaining) != parts.tables_content(first):
        return
    arm: list[Side] = [parts.set_operation(gold), gold.expression]
    operands, first_operands = (parts.clause_operands(select, "where") for select in (predicted, first))
    if not extra and len(operands) == 1 and _has_alternative(operands[0], first_operands):
        kept = None if isinstance(operands[0], exp.Or) else first.args.get("where")
        change: tuple[Side, Side] = predicted.args["where"], [kept, *arm]
        steps: list[Step] = [replace_step(predicted, gold)]
    else:
        only_predicted, only_first = without_common(operands, first_operands, key)
        dropped = without(only_predicted, [operand for operand, _ in parts.alike(only_predicted, only_first)])
        extra_joins = [parts.joins_of(predicted).get(alias, sources(predicted)[alias]) for alias in extra]
        change = [*extra_joins, exp.Where(this=exp.and_(*dropped)) if dropped else None], arm
        steps = [(operand, changes.drop_condition) for operand in dropped]
        steps += [(predicted, partial(changes.drop_sources, aliases=extra))] if extra else []
        steps += [(predicted, partial(changes.combine, gold=gold))] if steps else []
    if steps:
        yield Edit("set-operation", "SET", change, predicted, (*steps,), Size.CLAUSE)


def _has_alternative(condition: exp.Expr, operands: Sequence[exp.Expr]) -> bool:
    """Return whether the given conditions are one alternative of a condition, by OR or among the values of IN."""
    if isinstance(condition, exp.In):
        values = {*map(key, condition.expressions)}
        return len(operands) == 1 and isinstance(operands[0], exp.EQ) and key(operands[0].expression) in values
    alternatives = [{*map(key, parts.operands(part, exp.And))} for part in parts.operands(condition, exp.Or)]
    return len(alternatives) > 1 and {*map(key, operands)} in alternatives


def _arguments(query: exp.Expr, names: Sequence[str]) -> list[Side]:
    """Return the arguments of a query with these names, except those that it lacks."""
    return [query.args[name] for name in names if query.args.get(name)]


def _edit(label: CauseLabel, clause: str, change: tuple[Side, Side], within: exp.Expr, *steps: Step) -> Edit:
    return Edit(label, clause, change, within, steps, Size.SEVERAL)


def _steps_of(edits: Sequence[Edit]) -> tuple[Step, ...]:
    return tuple(step for edit in edits for step in edit.steps)
