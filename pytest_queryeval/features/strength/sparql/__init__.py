"""Mutants of a SPARQL query, each with one change that people and models make by mistake."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from functools import cached_property
from itertools import chain, starmap
from typing import Any, NamedTuple

from pytest_queryeval.core.db_schema import Tables
from pytest_queryeval.core.model import Case
from pytest_queryeval.core.table import IRI, Literal, Policy, Table
from pytest_queryeval.features.strength import Mutant, distinct_mutants, numbers_beside
from pytest_queryeval.features.strength.sparql.terms import RDF_TYPE, SUBCLASS, Quad, Vocabulary, constant
from pytest_queryeval.languages.sparql.query import declared_prefixes
from pytest_queryeval.languages.sparql.tree import (
    ALL,
    PRECEDENCE,
    Bind,
    Block,
    Expr,
    Filter,
    Group,
    Item,
    Node,
    Select,
    SortKey,
    Triple,
    Union,
    Writer,
    changed,
    is_number,
    is_variable,
    parts,
    terms,
    variables,
    walk,
)
from pytest_queryeval.languages.sparql.tree_facts import Facts, Place, bound_variables, has_one_row, query_defects
from pytest_queryeval.languages.sparql.tree_reader import UnreadableError, read_tree

MAX_NAMES = 300  # of predicates, and of classes
PREDICATES = f"SELECT DISTINCT ?name WHERE {{ ?s ?name ?o }} ORDER BY ?name LIMIT {MAX_NAMES}"
CLASSES = f"SELECT DISTINCT ?name WHERE {{ ?s a ?name }} ORDER BY ?name LIMIT {MAX_NAMES}"
NEAREST = 2  # names that replace one, by similarity
NO_DUPLICATES = "no row occurs twice"
ONE_ROW = "there is one row at most"
UNUSED = "its variables are used nowhere else"
_FLIPPED = {"=": "!=", "!=": "=", ">": "<", "<": ">", ">=": "<=", "<=": ">="}
_CONNECTORS = {"&&": "||", "||": "&&"}
_EXCHANGES = {
    "comparison-boundary": {">": ">=", ">=": ">", "<": "<=", "<=": "<"},
    "comparison-flip": _FLIPPED,
    "connector": _CONNECTORS,
    "arithmetic": {"+": "-", "-": "+", "*": "/", "/": "*"},
}
_NEGATIONS = {"EXISTS": "NOT EXISTS", "NOT EXISTS": "EXISTS", "IN": "NOT IN", "NOT IN": "IN"}
_AGGREGATES = {"MIN": "MAX", "MAX": "MIN", "SUM": "AVG", "AVG": "SUM"}
_CLOSURES = {"*": "+", "+": "*"}
_TO_SUPERCLASSES = ("/", f"<{SUBCLASS.iri}>", "*")


class Mutation(NamedTuple):
    """An edit of a query's tree: a node, and what replaces it."""

    node: Node
    replacement: Node | tuple[Node, ...] | None
    """One node, several, or None to drop `node`."""
    operator: str
    clause: str
    change: str = ""
    """A description of the edit; empty if the texts of both nodes describe it."""
    equivalent: str = ""
    """The reason why the answer stays the same; empty if no reason is known."""


def mutate(query: str, case: Case, tables: Tables, run: Callable[[str], Table | None]) -> Sequence[Mutant]:
    """Return the mutants of a gold query under the policy of its case; `tables` is not used."""
    source = case.settings.source
    return mutants(query, declared_prefixes(source.settings) if source else {}, case.settings.policy, run)


def mutants(
    query: str, source_prefixes: Mapping[str, str], policy: Policy, run: Callable[[str], Table | None]
) -> Sequence[Mutant]:
    """Return distinct mutants of a query; empty if the query cannot be read.

    `source_prefixes` are the prefixes that the source declares; `policy` says how answers are compared. `run` executes
    a query on the same graph, to list its predicates and classes, and returns None if the query fails. Mutants with a
    defect that gold does not have are left out. `distinct_mutants` limits the number.
    """
    try:
        parsed_query = read_tree(query, source_prefixes)
    except UnreadableError:
        return ()
    generator = _Mutants(parsed_query.tree, {**source_prefixes, **parsed_query.prefixes}, policy, run)
    accepted_losses, line = query_defects(parsed_query.tree), generator.writer.line

    def mutant_of(edit: Mutation) -> Mutant | None:
        tree = generator.edited(edit)
        if tree is None or not query_defects(tree) <= accepted_losses:
            return None
        change = "dropped" if edit.replacement is None else f"→ {line(edit.replacement)}"
        return Mutant(
            query=generator.writer.query(tree),
            operator=edit.operator,
            clause=edit.clause,
            change=edit.change or f"{line(edit.node)} {change}",
            equivalent=edit.equivalent or (UNUSED if id(edit.node) in generator.facts.inert else ""),
        )

    size = sum(1 for _ in walk(parsed_query.tree))
    return distinct_mutants(generator.writer.query(parsed_query.tree), size, generator.edits(), mutant_of)


class _Mutants:
    """The edits of one query; each public method is an operator that yields edits, without changing the tree.

    An edit that cannot change the answer says why in `equivalent`. The arguments `duplicates_matter` and
    `order_matters` say whether duplicates and the order of a SELECT's rows can change the answer.
    """

    def __init__(
        self, tree: Select, prefixes: Mapping[str, str], policy: Policy, run: Callable[[str], Table | None]
    ) -> None:
        self.tree = tree
        self.facts = Facts(tree, policy)
        self._is_strict = policy.row_order == "strict"
        self.writer = Writer(prefixes)
        self._run = run
        graphs = [node for node in walk(tree) if isinstance(node, Block) and node.head[0] == "GRAPH"]
        self._named_groups = {id(node) for graph in ([tree] if tree.dataset else graphs) for node in walk(graph)}

    @cached_property
    def _triples(self) -> list[Triple]:
        return [node for node in walk(self.tree) if isinstance(node, Triple)]

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        """The vocabulary of the graph, which is read from the source at the first access."""
        return Vocabulary(self._run)

    def edits(self) -> Iterator[Iterator[Mutation]]:
        """Yield an iterator over edits for each operator, which is applied to the whole query."""
        of_place = (self.patterns, self.directions, self.filters, self.blocks, self.unions)
        for operator in of_place:
            yield chain.from_iterable(map(operator, self.facts.places))
        for of_select in (self.projections, self.distinct, self.orders, self.limits, self.groups):
            yield chain.from_iterable(starmap(of_select, self.facts.selects))
        yield from (self.predicates(), self.classes(), self.constants(), self.paths(), self.values(), self.aggregates())
        yield from starmap(self.operators, _EXCHANGES.items())
        yield self.negations()

    def edited(self, edit: Mutation) -> Select | None:
        """Return a copy of the tree with an edit; None if nothing is left."""
        return changed(self.tree, lambda original, copy: edit.replacement if original is edit.node else copy)

    def patterns(self, place: Place) -> Iterator[Mutation]:
        """Yield an edit for each triple pattern that leaves it out.

        `equivalent` is set if the vocabulary implies the pattern.
        """
        triples = [element for element in place.group.elements if isinstance(element, Triple)]
        for triple in triples:
            premises = [element for element in triples if element is not triple]
            is_implied = id(place.group) not in self._named_groups and self._is_implied(triple, premises)
            reason = "the vocabulary of the graph implies it" if is_implied else ""
            yield Mutation(triple, None, "pattern-dropped", "WHERE", equivalent=reason)

    def _is_implied(self, triple: Triple, premises: Sequence[Triple]) -> bool:
        """Return whether other patterns with the same node imply a pattern `?x a CLASS`.

        All instances in the data that match the premises then have the class, by domains, ranges and superclasses.
        """
        class_ = constant(triple.object)
        if triple.path != ("a",) or not isinstance(class_, IRI):
            return False
        node = IRI("")  # stands for the subject
        quads: list[Quad] = []
        for premise in premises:
            predicate, end = constant(premise.path[0]), constant(premise.object)
            if len(premise.path) == 1 and isinstance(predicate, IRI):
                if premise.subject == triple.subject:
                    quads.append(Quad(node, predicate, end or Literal("")))
                if premise.object == triple.subject:
                    quads.append(Quad(Literal(""), predicate, node))
        return Quad(node, RDF_TYPE, class_) in self._vocabulary.implied(quads)

    def directions(self, place: Place) -> Iterator[Mutation]:
        """Yield edits that exchange subject and object of a triple pattern; none for `a` and for literals."""
        for triple in place.group.elements:
            if not isinstance(triple, Triple) or triple.path == ("a",) or triple.object[0] in "\"'+-0123456789.tf":
                continue
            edit = Mutation(triple, Triple(triple.object, triple.path, triple.subject), "direction", "WHERE")
            yield self._unless_renamed(edit, triple.subject, triple.object)

    def _unless_renamed(self, edit: Mutation, first_variable: str, second_variable: str) -> Mutation:
        tree = self.edited(edit) if is_variable(first_variable) and is_variable(second_variable) else None
        is_same = tree is not None and self.facts.is_same_but_for_names(tree, first_variable, second_variable)
        return edit._replace(equivalent="the same but for the names of variables") if is_same else edit

    def filters(self, place: Place) -> Iterator[Mutation]:
        """Yield edits that leave out a FILTER, or one operand if its condition is an `&&` or `||`."""
        for element in place.group.elements:
            if not isinstance(element, Filter):
                continue
            yield Mutation(element, None, "filter-dropped", "FILTER")
            condition = element.condition
            for operand in condition.arguments if condition.head in _CONNECTORS else ():
                kept_operands = tuple(argument for argument in condition.arguments if argument is not operand)
                first_operand, is_alone = kept_operands[0], len(kept_operands) == 1
                joined = Expr(condition.head, kept_operands)
                replacement = first_operand if is_alone and isinstance(first_operand, Expr) else joined
                change = f"{self.writer.line(operand)} dropped"
                yield Mutation(condition, replacement, "condition-dropped", "FILTER", change)

    def blocks(self, place: Place) -> Iterator[Mutation]:
        """Yield edits that leave out OPTIONAL or MINUS, or replace OPTIONAL by its patterns; GRAPH is not changed."""
        for element in place.group.elements:
            if not isinstance(element, Block) or element.head[0] == "GRAPH":
                continue
            name = element.head[0]
            reason = UNUSED if name == "OPTIONAL" and id(element.group) in self.facts.inert else ""
            yield Mutation(element, None, f"{name.lower()}-dropped", "WHERE", equivalent=reason)
            if name == "OPTIONAL":
                change = f"{self.writer.line(element)} → required"
                yield Mutation(element, element.group.elements, "optional-required", "WHERE", change)

    def unions(self, place: Place) -> Iterator[Mutation]:
        """Yield edits that leave out an arm of UNION."""
        for element in place.group.elements:
            if isinstance(element, Union) and len(element.arms) > 1:
                for arm in element.arms:
                    replacement = Union(tuple(sibling for sibling in element.arms if sibling is not arm))
                    change = f"UNION {self.writer.line(arm)} dropped"
                    yield Mutation(element, replacement, "union-arm-dropped", "WHERE", change)

    def projections(self, select: Select, duplicates_matter: bool, order_matters: bool) -> Iterator[Mutation]:
        """Yield edits that replace a selected variable by the first other variable that is always bound.

        Only the outermost SELECT is changed, if it has no aggregates.
        """
        if select is not self.tree or select.form != "SELECT" or select.where is None or select.aggregates:
            return
        selected_variables, bound_names = {item.variable for item in select.items}, bound_variables(select.where)
        candidates = [name for name in variables(select.where) if name in bound_names - selected_variables]
        for item in select.items if candidates else ():
            if is_variable(item.value.head) and not item.alias:
                change = f"{item.variable} → {candidates[0]}"
                yield Mutation(item, Item(Expr(candidates[0])), "projection", "SELECT", change)

    def distinct(self, select: Select, duplicates_matter: bool, order_matters: bool) -> Iterator[Mutation]:
        """Yield an edit that drops DISTINCT or REDUCED, or adds DISTINCT.

        `equivalent` is set if duplicates cannot matter.
        """
        if select.form != "SELECT":
            return
        reason = "" if duplicates_matter else "duplicates do not matter"
        if self.facts.has_unique_rows(select):
            reason = NO_DUPLICATES
        if select.limit in ("0", "1") and not select.offset:
            reason = reason or ONE_ROW
        modifier, change = ("", "dropped") if select.modifier else ("DISTINCT", "added")
        head = select.modifier or "DISTINCT"
        yield Mutation(select, replace(select, modifier=modifier), "distinct", "SELECT", f"{head} {change}", reason)

    def orders(self, select: Select, duplicates_matter: bool, order_matters: bool) -> Iterator[Mutation]:
        """Yield edits that drop ORDER BY or a key of it, or reverse a key.

        `equivalent` is set if the order cannot matter.
        """
        reason = ONE_ROW if has_one_row(select) else "" if order_matters else "the order does not matter"
        for key in select.order:
            yield Mutation(
                key, SortKey(not key.is_descending, key.value), "order-direction", "ORDER", equivalent=reason
            )
        if select.order:
            change = f"ORDER BY {self.writer.line(select.order)} dropped"
            yield Mutation(select, replace(select, order=()), "order-dropped", "ORDER", change, reason)
        if len(select.order) > 1:
            for key in select.order:
                yield Mutation(key, None, "order-key-dropped", "ORDER", equivalent=reason)

    def limits(self, select: Select, duplicates_matter: bool, order_matters: bool) -> Iterator[Mutation]:
        """Yield edits that change LIMIT by one, drop LIMIT or drop OFFSET.

        `equivalent` is set if there is one row at most.
        """
        reason = ONE_ROW if has_one_row(select) and not select.offset and select.limit not in ("", "0") else ""
        if select.limit.isdecimal():
            for limit in (int(select.limit) + 1, int(select.limit) - 1):
                if limit >= 0:
                    change = f"LIMIT {select.limit} → LIMIT {limit}"
                    same = reason if limit else ""
                    yield Mutation(select, replace(select, limit=str(limit)), "limit", "LIMIT", change, same)
            yield Mutation(select, replace(select, limit=""), "limit", "LIMIT", f"LIMIT {select.limit} dropped", reason)
        if select.offset:
            yield Mutation(select, replace(select, offset=""), "limit", "LIMIT", f"OFFSET {select.offset} dropped")

    def groups(self, select: Select, duplicates_matter: bool, order_matters: bool) -> Iterator[Mutation]:
        """Yield edits that leave out a condition of HAVING, or one of several keys of GROUP BY if it is not selected.

        Dropping a variable that is never bound is `equivalent`, unless the policy compares the order of unordered
        groups.
        """
        keeps_order = not self._is_strict or bool(select.order)
        for condition in select.having:
            change = f"HAVING {self.writer.line(condition)} dropped"
            yield Mutation(condition, None, "having-dropped", "HAVING", change)
        selected_variables = {term for item in select.items for term in terms(item)}
        for key in select.group:
            if len(select.group) > 1 and key.variable not in selected_variables:
                reason = "the variable is never bound" if keeps_order and self.facts.is_never_bound(key) else ""
                yield Mutation(key, None, "grouping", "GROUP", equivalent=reason)

    def predicates(self) -> Iterator[Mutation]:
        """Yield edits that replace an IRI in a path by the graph's predicates with the most similar names."""
        for triple in self._triples:
            for at, term in enumerate(triple.path):
                for predicate in self._similar_iris(term, PREDICATES):
                    path = (*triple.path[:at], predicate, *triple.path[at + 1 :])
                    yield self._triple_edit(triple, "predicate", "path", path)

    def classes(self) -> Iterator[Mutation]:
        """Yield edits that replace the class after `a` by the graph's classes with the most similar names."""
        for triple in self._triples:
            for class_iri in self._similar_iris(triple.object, CLASSES) if triple.path[0] == "a" else ():
                yield self._triple_edit(triple, "class", "object", class_iri)

    def constants(self) -> Iterator[Mutation]:
        """Yield edits that replace an IRI as subject or object by IRIs with similar names at the same predicate."""
        for triple in self._triples:
            if len(triple.path) > 1 or not triple.path[0].startswith("<"):
                continue
            predicate = triple.path[0]
            for place, pattern in (("subject", f"?name {predicate} ?x"), ("object", f"?x {predicate} ?name")):
                query = f"SELECT DISTINCT ?name WHERE {{ {pattern} }} ORDER BY ?name LIMIT {MAX_NAMES}"
                for iri in self._similar_iris(getattr(triple, place), query):
                    yield self._triple_edit(triple, "constant", place, iri)

    def paths(self) -> Iterator[Mutation]:
        """Yield edits that exchange `*` and `+` of a path, or that add or drop `/rdfs:subClassOf*` after `a`.

        The path to superclasses is only added if the vocabulary states subclasses of the class.
        """
        for triple in self._triples:
            paths = [
                (*triple.path[:at], _CLOSURES[term], *triple.path[at + 1 :])
                for at, term in enumerate(triple.path)
                if term in _CLOSURES
            ]
            class_ = constant(triple.object)
            if triple.path == ("a", *_TO_SUPERCLASSES):
                paths.append(("a",))
            elif triple.path == ("a",) and any(pair[1] == class_ for pair in self._vocabulary.pairs(SUBCLASS)):
                paths.append(("a", *_TO_SUPERCLASSES))
            for path in paths:
                yield self._triple_edit(triple, "path", "path", path)

    def _triple_edit(self, triple: Triple, operator: str, place: str, new: Any) -> Mutation:
        """Return the edit that replaces the subject, the object or the path of a pattern, as `place` says."""
        texts = [self.writer.path([part] if isinstance(part, str) else part) for part in (getattr(triple, place), new)]
        return Mutation(triple, replace(triple, **{place: new}), operator, "WHERE", " → ".join(texts))

    def values(self) -> Iterator[Mutation]:
        """Yield edits that replace a literal in a triple pattern, a FILTER or HAVING by one of `_other_values`.

        Texts stay as they are if an expression ignores their case.
        """
        for triple in self._triples:
            for literal in _other_values(triple.object):
                yield self._triple_edit(triple, "value", "object", literal)
        for _, clause, expression in self._expressions():
            # Elsewhere a number may be a factor of units, which changes no order.
            if clause not in ("FILTER", "HAVING"):
                continue
            ignores_case = any(term in ("LCASE", "UCASE", '"i"', "REGEX", "REPLACE") for term in terms(expression))
            parents = {id(argument): part for part in parts(expression) for argument in part.arguments}
            for part in parts(expression):
                if part.arguments or (part.head.startswith('"') and ignores_case):
                    continue
                enclosing = parents.get(id(part), part)
                if enclosing.head not in _FLIPPED or enclosing.arguments[0] is part or _is_call(enclosing.arguments[0]):
                    enclosing = part
                for literal in _other_values(part.head):
                    yield self._expression_edit(enclosing, part, Expr(literal), "value", clause)

    def operators(self, operator: str, exchanges: dict[str, str]) -> Iterator[Mutation]:
        """Yield edits that replace operators in expressions by those that `exchanges` maps them to.

        `equivalent` is set if the query is then the same with two variables renamed.
        """
        for _, clause, expression in self._expressions():
            for part in parts(expression):
                if part.head not in exchanges or len(part.arguments) < 2:
                    continue  # `COUNT(*)`, signs
                edit = self._expression_edit(part, part, replace(part, head=exchanges[part.head]), operator, clause)
                names = [term for term in dict.fromkeys(terms(expression)) if is_variable(term)]
                yield self._unless_renamed(edit, *names) if len(names) == 2 and operator != "connector" else edit

    def negations(self) -> Iterator[Mutation]:
        """Yield edits that add or drop the NOT of EXISTS and IN, that drop `!`, or that add `!` to a call in FILTER."""
        for _, clause, expression in self._expressions():
            for part in parts(expression):
                if part.head in _NEGATIONS:
                    negation = _NEGATIONS[part.head]
                    yield Mutation(part, replace(part, head=negation), "negation", clause, f"{part.head} → {negation}")
                elif part.head == "!" and isinstance(part.arguments[0], Expr):
                    yield self._expression_edit(expression, part, part.arguments[0], "negation", clause)
            if clause == "FILTER" and _is_call(expression):
                yield Mutation(expression, Expr("!", (expression,)), "negation", clause)

    def aggregates(self) -> Iterator[Mutation]:
        """Yield edits that exchange MIN and MAX, or SUM and AVG, or change the argument of COUNT, SUM and AVG.

        DISTINCT is dropped or added; COUNT of a variable becomes `COUNT(*)`. `equivalent` is set if the counted values
        are distinct, or if the variable is always bound.
        """
        selects = [select for select, *_ in self.facts.selects]
        heads = [(query, node) for query in selects for node in (query, *query.items, *query.group, *query.order)]
        for owner, clause, expression in self._expressions():
            select = next((query for query, node in heads if node is owner), self.tree)
            for part in parts(expression):
                if part.head in _AGGREGATES:
                    replacement = replace(part, head=_AGGREGATES[part.head])
                    yield self._expression_edit(expression, part, replacement, "aggregate", clause)
                argument = part.arguments[0] if part.head in ("COUNT", "SUM", "AVG") else None
                if not isinstance(argument, Expr) or argument == ALL:
                    continue
                is_distinct = argument.head == "DISTINCT"
                value = argument.arguments[0] if is_distinct else argument
                replacement = Expr(part.head, (value if is_distinct else Expr("DISTINCT", (argument,)),))
                variable = value.head if isinstance(value, Expr) and is_variable(value.head) else ""
                reason = NO_DUPLICATES if variable and self.facts.counts_unique(select, variable) else ""
                operator = "count" if part.head == "COUNT" else "aggregate"
                yield self._expression_edit(expression, part, replacement, operator, clause, reason)
                if part.head == "COUNT" and not is_distinct and variable:
                    is_bound = select.where is not None and variable in bound_variables(select.where)
                    reason = "the variable is always bound" if is_bound else ""
                    yield self._expression_edit(expression, part, Expr("COUNT", (ALL,)), "count", clause, reason)

    def _expression_edit(
        self, whole: Expr, part: Expr, replacement: Expr, operator: str, clause: str, reason: str = ""
    ) -> Mutation:
        """Return the edit that replaces a part of an expression; `change` shows all of `whole` before and after."""
        new_whole = changed(whole, lambda original, copy: replacement if original is part else copy)
        change = f"{self.writer.line(whole)} → {self.writer.line(new_whole or replacement)}"
        return Mutation(part, replacement, operator, clause, change, reason)

    def _similar_iris(self, term: str, query: str) -> list[str]:
        """Return the IRIs in a query's answer whose names are most similar to that of the IRI `term`.

        The result has at most NEAREST IRIs. Another term, or a query that fails, has none.
        """
        answer = self._run(query) if term.startswith("<") else None
        names = [f"<{row[0].iri}>" for row in answer.rows if isinstance(row[0], IRI)] if answer is not None else []

        def unlike(name: str) -> tuple[float, str]:
            return -SequenceMatcher(None, _local_name(term), _local_name(name)).ratio(), name

        return sorted((name for name in names if name != term), key=unlike)[:NEAREST]

    def _expressions(self) -> Iterator[tuple[Node, str, Expr]]:
        """Yield all expressions, each with the node that contains it and the name of its clause."""
        for node in walk(self.tree):
            match node:
                case Filter(condition):
                    yield node, "FILTER", condition
                case Select(having=having):
                    yield from ((node, "HAVING", condition) for condition in having)
                case Item(value):
                    yield node, "SELECT", value
                case SortKey(value=value):
                    yield node, "ORDER", value
                case Bind(value):
                    yield node, "BIND", value


def _is_call(expression: Expr | Group) -> bool:
    """Return whether an expression is a function or an aggregate with arguments."""
    if isinstance(expression, Group) or not expression.arguments:
        return False
    return expression.head not in PRECEDENCE and expression.head not in _NEGATIONS


def _other_values(term: str) -> Iterator[str]:
    """Yield changed texts of a literal: a number one above and below, or the opposite boolean.

    A text loses its language; without one, the case of its first letter changes. Other terms yield nothing.
    """
    if is_number(term):
        yield from numbers_beside(term)
    elif term.startswith('"') and not term.endswith(">"):
        if not term.endswith('"'):
            yield term.rpartition("@")[0]
        elif len(term) > 3 and term[1].isalpha():
            yield f'"{term[1].swapcase()}{term[2:]}'
    elif term in ("true", "false"):
        yield "false" if term == "true" else "true"


def _local_name(iri: str) -> str:
    return iri.rstrip(">/#").rpartition("#")[2].rpartition("/")[2]
