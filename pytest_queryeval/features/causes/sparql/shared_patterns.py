"""What only one of two SPARQL queries has, where no small edit leads to gold, and queries that name their answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pytest_queryeval.core.cause import CausingEdit, SharedPatterns
from pytest_queryeval.core.table import IRI, Table
from pytest_queryeval.features.causes.pairs import without_common
from pytest_queryeval.features.causes.sparql.alignment import NODE, Lines, limit_text, with_paths
from pytest_queryeval.languages.sparql.tree import (
    Bind,
    Block,
    Data,
    Expr,
    Filter,
    Group,
    Item,
    Node,
    Select,
    Triple,
    changed,
    is_variable,
    renamed,
    terms,
    variables,
    walk,
)

SEARCHED = "patterns that find it"
MAX_SHOWN = 20  # triple patterns of each query that the other one does not have
_CLASS_PATH = ("a", "/", "<http://www.w3.org/2000/01/rdf-schema#subClassOf>", "*")


def shared_patterns(
    predicted: Select, gold: Select, names_in_gold: Mapping[str, str], lines: Lines
) -> SharedPatterns | None:
    """Return the triple patterns, filters and clauses that only one of the queries has; None if gold has none.

    Variables of gold have the names of the same role in predicted. They are shown so where a pattern that both have
    names them, else with their `names_in_gold`. `a` and `a/rdfs:subClassOf*` count as equal.
    """
    predicted, gold = (_with_single_nodes(_with_plain_types(tree)) for tree in (predicted, gold))
    triples, gold_triples = (
        list(dict.fromkeys(node for node in walk(tree) if isinstance(node, Triple))) for tree in (predicted, gold)
    )
    if not gold_triples:
        return None
    only_predicted, only_gold = without_common(triples, gold_triples)
    common = [triple for triple in gold_triples if triple in triples]
    common_names = {name for triple in common for name in variables(triple)}
    names = {**names_in_gold, **{name: name for name in common_names}}
    used_names = {*variables(predicted), *common_names}

    def in_gold(term: str) -> str:
        name = term if term.startswith(NODE) else names.get(term, term)
        return f"{name}_" if is_variable(name) and name != term and name in used_names else name

    filters, gold_filters = without_common(_filters(predicted, common), _filters(gold, common))
    existences, gold_existences = without_common(
        _existences(predicted), _existences(gold), lambda element: element.condition.head
    )
    inner = {id(node) for element in (*existences, *gold_existences) for node in walk(element)}
    outer, gold_outer = ([node for node in side if id(node) not in inner] for side in (only_predicted, only_gold))
    nodes, gold_nodes = (*outer, *filters, *existences), (*gold_outer, *gold_filters, *gold_existences)
    clauses, aligned_clauses = ([*_clauses(tree, lines)] for tree in (predicted, gold))
    shown_clauses = [*_clauses(renamed(gold, in_gold), lines)]
    gold_clauses = [
        shown_clause
        if shown_clause[0].endswith("SELECT")
        else aligned_clause  # no two columns are equal whose patterns are not
        for aligned_clause, shown_clause in zip(aligned_clauses, shown_clauses, strict=True)
    ]
    only_gold_clauses = [shown_clauses[at] for at, clause in enumerate(gold_clauses) if clause not in clauses]
    only_predicted_clauses = [clause for clause in clauses if clause not in gold_clauses]
    gold_texts = [lines.line(renamed(node, in_gold)) for node in gold_nodes]
    return SharedPatterns(
        shared=len(gold_triples) - len(only_gold),
        of=len(gold_triples),
        only_gold=tuple(dict.fromkeys((*gold_texts, *_joined(only_gold_clauses))))[:MAX_SHOWN],
        only_predicted=tuple(dict.fromkeys((*map(lines.line, nodes), *_joined(only_predicted_clauses))))[:MAX_SHOWN],
    )


def _with_plain_types(tree: Select) -> Select:
    """Return a query with `a` in place of `a/rdfs:subClassOf*`."""

    def change(_: Node, new: Node) -> Node:
        if not isinstance(new, Group):
            return new
        types = [element.object for element in new.elements if isinstance(element, Triple) and element.path == ("a",)]
        elements = with_paths(new.elements, [name for name in types if name.startswith(NODE)])
        return Group(
            tuple(
                replace(element, path=("a",))
                if isinstance(element, Triple) and element.path == _CLASS_PATH
                else element
                for element in elements
            )
        )

    return changed(tree, change) or tree


def _with_single_nodes(tree: Select) -> Select:
    """Return a query in which a path that begins twice at a node with the same step goes over a single node."""
    triples = sorted(
        (node for node in walk(tree) if isinstance(node, Triple)), key=lambda triple: triple.object.startswith(NODE)
    )
    names: dict[str, str] = {}
    ends: dict[tuple[str, tuple[str, ...]], str] = {}
    for triple in triples:
        end = ends.setdefault((triple.subject, triple.path), triple.object)
        if triple.object.startswith(NODE):
            names[triple.object] = end
    return renamed(tree, lambda term: names.get(term, term))


def _existences(tree: Select) -> list[Filter]:
    """Return the filters with EXISTS and NOT EXISTS."""
    filters = [node for node in walk(tree) if isinstance(node, Filter)]
    return [node for node in filters if node.condition.head in ("EXISTS", "NOT EXISTS")]


def _clauses(tree: Select, lines: Lines) -> Iterator[tuple[str, str]]:
    """Yield the clauses but for WHERE by their words, those of subqueries with that word, each column for itself."""
    for select in (node for node in walk(tree) if isinstance(node, Select)):
        place = "" if select is tree else "subquery: "
        clauses = (("GROUP BY", select.group), ("HAVING", select.having), ("ORDER BY", select.order))
        columns = [lines.line(item.value) for item in select.items] or [""]
        yield from ((f"{place}{select.form}", column) for column in columns)
        yield from ((f"{place}{word}", lines.line(nodes)) for word, nodes in clauses if nodes)
        if limit_text(select):
            yield f"{place}LIMIT", limit_text(select)


def _joined(clauses: Iterable[tuple[str, str]]) -> list[str]:
    """Return the texts of clauses, one for each word."""
    texts: dict[str, list[str]] = {}
    for word, text in clauses:
        texts.setdefault(word, [word]).append(text)
    return [" ".join(filter(None, words)) for words in texts.values()]


def _filters(tree: Select, common: Sequence[Triple]) -> list[Node]:
    """Return the filters and assignments of a query but for EXISTS, and its OPTIONALs with `common` triples only.

    The patterns of other groups count as those of the query.
    """
    nodes: list[Node] = []
    for node in walk(tree):
        match node:
            case Filter() | Bind() | Data() if not any(isinstance(part, Group) for part in walk(node)):
                nodes.append(node)
            case Block(("OPTIONAL",), Group(elements)) if all(element in common for element in elements):
                nodes.append(node)
    return nodes


def hard_coded_edit(predicted: Select, gold: Select, answer: Table, lines: Lines) -> CausingEdit | None:
    """Return what stands for the answer in a predicted query, by gold's answer; None if it searches.

    These are IRIs that gold does not name: all values of a column by VALUES or BIND, or one of each row of the answer.
    """
    gold_terms = {*terms(gold)}
    rows = [{f"<{cell.iri}>" for cell in row if isinstance(cell, IRI)} for row in answer.rows]
    columns = {item.variable for item in predicted.items}
    answering_iris: set[str] = set()
    for node, variable, iris in _constants(predicted):
        new_iris = [iri for iri in iris if iri not in gold_terms]
        answering_iris.update(new_iris)
        fills_column = variable in columns and len(new_iris) == len(iris)
        if new_iris and (fills_column or (rows and not any(map(answering_iris.isdisjoint, rows)))):
            is_data = isinstance(node, Data | Bind)
            text = lines.line(node) if is_data else ", ".join(map(lines.writer.term, new_iris))
            return CausingEdit(label="hard-coded", clause="WHERE", change=f"{text} → {SEARCHED}")
    return None


def _constants(tree: Select) -> Iterator[tuple[Node, str, list[str]]]:
    """Yield the parts of a query that may name IRIs, with a variable that has no other values, or an empty name."""
    for node in walk(tree):
        match node:
            case Data(parts):
                names = [part for part in parts if is_variable(part)]
                yield node, names[0] if len(names) == 1 else "", _iris(parts)
            case Bind(Expr(value), variable):
                yield node, variable, _iris((value,))
            case Item(Expr(value), variable):
                yield node, variable, _iris((value,))
            case Triple(subject, path, object_):
                yield node, "", _iris((subject,) if "a" in path else (subject, object_))
            case Filter():
                yield node, "", _iris(terms(node))


def _iris(tokens: Iterable[str]) -> list[str]:
    return [token for token in tokens if token.startswith("<")]
