"""Brings two SPARQL queries into one form with the same variable names, and finds what they have in common."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeAlias

from pytest_queryeval.core.cause import CausingEdit, SharedPatterns
from pytest_queryeval.core.table import IRI, Table
from pytest_queryeval.features.causes import without_common
from pytest_queryeval.languages.sparql.source_terms import local_name, words
from pytest_queryeval.languages.sparql.tree import (
    COUNTING,
    Bind,
    Block,
    Data,
    Element,
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
    is_constant,
    is_variable,
    parts,
    renamed,
    terms,
    variables,
    walk,
)
from pytest_queryeval.languages.sparql.tree_facts import query_defects
from pytest_queryeval.text.formatting import one_line

MAX_CHANGE = 180  # characters of each side
MAX_VARIABLES = 40  # that are compared with each other
MAX_IMPROVED = 12  # variables whose names are exchanged to match more triples
SAME_NAME = 4  # triples count 9, turned ones 3
NODE = "?/"  # the names of variables instead of blank nodes, which no variable of a query can have
SEARCHED = "patterns that find it"
MAX_SHOWN = 20  # triple patterns of each query that the other one does not have
_CLASS_PATH = ("a", "/", "<http://www.w3.org/2000/01/rdf-schema#subClassOf>", "*")
Side: TypeAlias = "Node | str | tuple[Node, ...] | Sequence[Element] | None"
"""One side of a change."""
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}
_TEXT_TYPE = "^^<http://www.w3.org/2001/XMLSchema#string>"


def normal(tree: Select) -> Select:
    """Return a query in a normal form: paths split into triples, filters split at `&&`, constants on the right.

    Blank nodes, and nodes within a path, become variables whose names begin with NODE. They stay if the query has
    `SELECT *`, which would show them.
    """
    shows_all = any(isinstance(node, Select) and node.selects_all for node in walk(tree))
    numbers = count(1)
    labels: dict[str, str] = {}

    def variable(term: str) -> str:
        if shows_all or not (term == "[]" or term.startswith("_:")):
            return term.removesuffix(_TEXT_TYPE)
        if term == "[]" or term not in labels:
            labels[term] = f"{NODE}{next(numbers)}"
        return labels[term]

    def triples(triple: Triple) -> Iterator[Triple]:
        subject, object_ = variable(triple.subject), variable(triple.object)
        steps = [triple.path] if shows_all else [*_steps(triple.path)]
        ends = [subject, *(f"{NODE}{next(numbers)}" for _ in steps[1:]), object_]
        for start, path, end in zip(ends, steps, ends[1:], strict=False):
            yield Triple(end, path[1:], start) if len(path) == 2 and path[0] == "^" else Triple(start, path, end)

    def change(_: Node, new: Node) -> Node | tuple[Node, ...]:
        return tuple(triples(new)) if isinstance(new, Triple) else _normal_node(new)

    normal_tree = changed(replace(tree, template=None), change)
    return replace(normal_tree, template=tree.template) if normal_tree is not None else tree


def _normal_node(node: Node) -> Node | tuple[Node, ...]:
    """Return a node, or the nodes that replace it, in the form in which nodes are compared.

    Constants of comparisons are on the right, filters are split at `&&`, and groups that only contain triples are
    dissolved.
    """
    match node:
        case Filter(condition):
            return tuple(Filter(operand) for operand in operands(condition, "&&"))
        case Union((Group(elements),)) if all(isinstance(element, Triple) for element in elements):
            return elements
        case Expr(operator, (Expr(term, ()) as constant, Expr() as value)) if operator in _MIRRORED and is_constant(
            term
        ):
            return Expr(_MIRRORED[operator], (value, constant))
        case Expr("+" | "*" as operator, (_, _) as arguments):
            sides = (operands(argument, operator) for argument in arguments if isinstance(argument, Expr))
            return Expr(operator, tuple(operand for joined in sides for operand in joined))
        case _:
            return node


def operands(expression: Expr, operator: str) -> list[Expr]:
    """Return the operands of an expression with this operator, such as `&&` or `+`; any other expression in a list."""
    if expression.head != operator:
        return [expression]
    return [operand for operand in expression.arguments if isinstance(operand, Expr)]


def _steps(path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the steps of a path; a path with `|` or parentheses is one step."""
    if "|" in path or "(" in path:
        yield path
        return
    start = 0
    for place, term in enumerate((*path, "/")):
        if term == "/":
            yield path[start:place]
            start = place + 1


@dataclass(frozen=True, slots=True)
class Chain:
    """Triples along a path, and the single triple with that path that says the same."""

    triple: Triple
    members: tuple[Triple, ...]


def chains(triples: Sequence[Triple], links: Iterable[str]) -> list[Chain]:
    """Return the triples as chains, joined at those of the variables `links` where exactly two triples meet."""
    joined = [Chain(triple, (triple,)) for triple in triples]
    for link in links:
        meeting = [chain for chain in joined if link in (chain.triple.subject, chain.triple.object)]
        if len(meeting) != 2 or any(is_variable(chain.triple.path[0]) for chain in meeting):
            continue
        first, second = meeting if meeting[0].triple.object == link else reversed(meeting)
        start = first.triple if first.triple.object == link else turned(first.triple)
        end = second.triple if second.triple.subject == link else turned(second.triple)
        path = (*_as_step(start.path), "/", *_as_step(end.path))
        chain = Chain(Triple(start.subject, path, end.object), (*first.members, *second.members))
        joined = [
            chain if candidate is meeting[0] else candidate for candidate in joined if candidate is not meeting[1]
        ]
    return joined


def turned(triple: Triple) -> Triple:
    """Return the triple that says the same from the object to the subject, with an inverse path."""
    path = triple.path
    if "|" in path or "(" in path:
        return Triple(triple.object, path[2:-1] if path[:2] == ("^", "(") else ("^", "(", *path, ")"), triple.subject)
    steps = [step[1:] if step[0] == "^" else ("^", *step) for step in reversed([*_steps(path)])]
    return Triple(triple.object, tuple(term for step in steps for term in ("/", *step))[1:], triple.subject)


def _as_step(path: tuple[str, ...]) -> tuple[str, ...]:
    return ("(", *path, ")") if "|" in path else path


def links_of(node: Node) -> list[str]:
    """Return the variables that occur exactly twice within a node, and so may join two triples."""
    uses = Counter(term for term in terms(node) if is_variable(term))
    return [name for name, number in uses.items() if number == 2]


def readable(tree: Select, names: Mapping[str, str]) -> Select:
    """Return a query in which the paths that `normal` split are joined again, and variables are renamed by `names`.

    If `names` is empty, the query is returned unchanged.
    """
    if not names:
        return tree
    links = [link for link in links_of(tree) if link.startswith(NODE)]

    def change(_: Node, new: Node) -> Node:
        return Group(with_paths(new.elements, links)) if isinstance(new, Group) else new

    joined = changed(tree, change) if links else tree
    return renamed(joined or tree, lambda term: names.get(term, term))


def with_paths(elements: Sequence[Element], links: Iterable[str]) -> tuple[Element, ...]:
    """Return the elements of a group with triples joined to paths at the variables `links`.

    A path takes the place of its first triple.
    """
    triples = [element for element in elements if isinstance(element, Triple)]
    paths = {id(chain.members[0]): chain for chain in chains(triples, links)}
    return tuple(
        paths[id(element)].triple if isinstance(element, Triple) else element
        for element in elements
        if not isinstance(element, Triple) or id(element) in paths
    )


def with_names_of(gold: Select, predicted: Select, *, by_columns: bool = True) -> Select:
    """Return gold with predicted's names for the variables that have the same role in both queries.

    Other variables of gold get names that predicted does not use. Without `by_columns`, the place in SELECT is no role,
    because one query may return names and the other the things that they name.
    """
    predicted_names, gold_names = list(variables(predicted)), list(variables(gold))
    trees = (predicted, gold) if by_columns else (replace(predicted, items=()), replace(gold, items=()))
    unbound_names = [name for name in predicted_names if name in query_defects(predicted)]
    bound_names = [name for name in predicted_names if name not in unbound_names]
    names = _names_by_role(*trees, bound_names[:MAX_VARIABLES], gold_names[:MAX_VARIABLES])
    if max(len(predicted_names), len(gold_names)) <= MAX_IMPROVED:
        names = _improved_names(names, *trees, bound_names, gold_names)
        names = _improved_names(names, *trees, unbound_names, [name for name in gold_names if name not in names])
    free_names = {*gold_names} & {*predicted_names} - {*names, *names.values()}
    names |= {name: name for name in free_names if not name.startswith(NODE)}
    used_names = {*predicted_names, *names.values()}
    for name in gold_names:
        if name not in names:
            free = name
            while free in used_names:
                free = f"{NODE}{int(free.removeprefix(NODE)) + 1}" if free.startswith(NODE) else f"{free}_"
            names[name] = free
            used_names.add(free)
    return renamed(gold, lambda term: names.get(term, term))


def _names_by_role(
    predicted: Select, gold: Select, predicted_names: Sequence[str], gold_names: Sequence[str]
) -> dict[str, str]:
    """Return predicted's names by gold's variables; the pair with most uses in common is chosen first."""
    names: dict[str, str] = {}
    while len(names) < min(len(predicted_names), len(gold_names)):
        same_names = {name: name for name in names.values()}
        roles, gold_roles = _weighted_roles(predicted, same_names), _weighted_roles(gold, names)
        best, pair = 0.0, ("", "")
        for gold_name in (name for name in gold_names if name not in names):
            for predicted_name in (name for name in predicted_names if name not in same_names):
                common_roles = roles[predicted_name] & gold_roles[gold_name]
                score = common_roles.total() + 0.5 * (predicted_name == gold_name)
                least = 2 if gold_name.startswith(NODE) and not predicted_name.startswith(NODE) else 0
                if score > best and score >= least:
                    best, pair = score, (gold_name, predicted_name)
        if best < 1:
            break
        names[pair[0]] = pair[1]
    return names


def _improved_names(
    names: dict[str, str], predicted: Select, gold: Select, predicted_names: Sequence[str], gold_names: Sequence[str]
) -> dict[str, str]:
    """Return names with which more triples are equal, found by exchanging two names at a time.

    Two variables with the same names in both queries keep them even if a triple between them is turned round.
    """
    facts, gold_uses = _weighted_uses(_uses(predicted), {}), _uses(gold)

    def score(candidate: Mapping[str, str]) -> int:
        same_names = sum(gold_name == name for gold_name, name in candidate.items() if not name.startswith(NODE))
        return (facts & _weighted_uses(gold_uses, candidate)).total() + SAME_NAME * same_names

    best = score(names)
    for gold_name in gold_names:
        for predicted_name in predicted_names:
            owner = next((name for name, value in names.items() if value == predicted_name), None)
            if owner == gold_name:
                continue
            candidate = {**names, gold_name: predicted_name}
            if owner is not None:
                del candidate[owner]
                if gold_name in names:
                    candidate[owner] = names[gold_name]
            if (candidate_score := score(candidate)) > best:
                best, names = candidate_score, candidate
    return names


def classes(tree: Node) -> defaultdict[str, list[str]]:
    """Return the classes of each variable, stated by `a` alone or with rdfs:subClassOf*."""
    triples = [node for node in walk(tree) if isinstance(node, Triple)]
    classes_above = defaultdict[str, list[str]](list)
    for triple in triples:
        if _CLASS_PATH[2] in triple.path:
            classes_above[triple.subject].append(triple.object)
    classes_of = defaultdict[str, list[str]](list)
    for triple in triples:
        if triple.path[0] == "a":
            names = classes_above.get(triple.object, ()) if is_variable(triple.object) else [triple.object]
            classes_of[triple.subject] += names
    return classes_of


def _uses(tree: Select) -> list[tuple[str, ...]]:
    """Return the type and the terms of each part of a query that names variables.

    Parts are triples, filters, BINDs, columns, keys and classes. A column that is also a key of GROUP BY is listed
    once.
    """
    nodes = [node for node in walk(tree) if isinstance(node, Triple | Filter | Bind | Item | SortKey)]
    columns = dict.fromkeys((Item.__name__, *terms(node)) for node in nodes if isinstance(node, Item))
    of_classes = (("class", name, of_class) for name, of_name in classes(tree).items() for of_class in of_name)
    others = ((type(node).__name__, *terms(node)) for node in nodes if not isinstance(node, Item))
    return [*columns, *others, *of_classes]


def _weighted_uses(uses: Iterable[tuple[str, ...]], names: Mapping[str, str]) -> Counter[tuple[str, ...]]:
    """Return weighted facts about the uses of variables, renamed by `names`, by which two queries are compared.

    A whole use weighs most, then a triple in either direction, then a triple without one of its ends.
    """
    facts: Counter[tuple[str, ...]] = Counter()
    for use in uses:
        kind, *use_terms = fact = tuple(names.get(term, term) for term in use)
        facts[fact] += 6 if kind == Item.__name__ else 4
        if kind == Triple.__name__:
            subject, *path, object_ = use_terms
            facts["in any direction", *path, *sorted((subject, object_))] += 3
            facts.update((("subject", subject, *path), ("object", *path, object_)))
    return facts


def _weighted_roles(tree: Select, names: Mapping[str, str]) -> defaultdict[str, Counter[tuple[str, ...]]]:
    """Return weighted facts about how each variable is used, by which variables of two queries are paired.

    `names` are those of variables that are paired already; all others count as `?`.
    """
    roles = _class_roles(tree)

    def name(term: str) -> str:
        return names.get(term, "?") if is_variable(term) else term

    for node in walk(tree):
        if isinstance(node, Triple):
            path = tuple(map(name, node.path))
            for end, term, opposite in (("subject", node.subject, node.object), ("object", node.object, node.subject)):
                if is_variable(term):
                    roles[term][end, *path] += 2
                    if (known_end := name(opposite)) != "?":
                        roles[term][end, *path, known_end] += 2
                        roles[term].update((("next to", end, known_end), ("in any direction", *path, known_end)))
        elif isinstance(node, Expr) and node.arguments:
            heads = [part.head for part in parts(node)]
            for term in filter(is_variable, heads):
                roles[term].update(("with", head) for head in heads if not is_variable(head))
    for number, item in enumerate(tree.items):
        kind = "alias" if item.alias else "column"
        roles[item.variable].update(((kind,), (kind, str(number), str(len(tree.items)))))
        roles[item.variable].update(("counts", part.head) for part in parts(item.value) if part.head in COUNTING)
    return roles


def _class_roles(tree: Select) -> defaultdict[str, Counter[tuple[str, ...]]]:
    """Return weighted facts about the classes of each variable, including the words of the class names."""
    roles: defaultdict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
    for variable, names in classes(tree).items():
        for name in names:
            roles[variable].update(("class word", word) for word in words(local_name(name)))
            roles[variable]["class", name] += 2
    return roles


class Lines:
    """Writes parts of two queries in one line each.

    Variables that stand for blank nodes get names that a query can have.
    """

    def __init__(self, writer: Writer, *trees: Select) -> None:
        self.writer = writer
        self.names: dict[str, str] = {}
        """Names that a query can have for variables whose names begin with NODE, longest first."""
        names = {name for tree in trees for name in variables(tree)}
        for name in sorted((name for name in names if name.startswith(NODE)), key=lambda name: (-len(name), name)):
            self.names[name] = f"?node{name.removeprefix(NODE)}"
            while self.names[name] in names:
                self.names[name] += "_"

    def line(self, side: Side) -> str:
        """Return one side of a change as a line, with paths joined again and points between triples; empty for None."""
        if isinstance(side, str):
            return one_line(side, MAX_CHANGE)
        nodes: Sequence[Node] = side if isinstance(side, tuple | list) else () if side is None else (side,)
        triples = [node for node in nodes if isinstance(node, Triple)]
        if triples and len(triples) == len(nodes):
            nodes = with_paths(triples, [name for name in links_of(Group(tuple(triples))) if name.startswith(NODE)])
        separator = " . " if triples else " "
        text = separator.join(map(self.writer.line, nodes))
        for name, display_name in self.names.items():
            text = text.replace(name, display_name)
        return one_line(text, MAX_CHANGE)


def limit_text(select: Select) -> str:
    """Return the numbers of LIMIT and OFFSET, such as '10 OFFSET 5'; empty if there are none."""
    clauses = (("", select.limit), ("OFFSET ", select.offset))
    return " ".join(f"{word}{number}" for word, number in clauses if number)


def shared_patterns(
    predicted: Select, gold: Select, names_in_gold: Mapping[str, str], lines: Lines
) -> SharedPatterns | None:
    """Return how many triple patterns the queries share, and the patterns, filters and clauses that only one has.

    None if gold has no triple pattern. Variables of gold have the names of predicted's variables with the same role.
    They are shown so if a shared pattern names them, else by `names_in_gold`. `a` and `a/rdfs:subClassOf*` count as
    equal.
    """
    joining = [name for name, in_text in names_in_gold.items() if in_text.startswith(NODE)]
    predicted, gold = (_with_single_nodes(_with_plain_types(tree, joining)) for tree in (predicted, gold))
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
        name = f"{term}_" if name.startswith(NODE) and name != term else name
        return f"{name}_" if is_variable(name) and name != term and name in used_names else name

    filters, gold_filters = without_common(_filters(predicted, common), _filters(gold, common))
    existences, gold_existences = without_common(
        _existence_filters(predicted), _existence_filters(gold), lambda element: element.condition.head
    )
    inner = {id(node) for element in (*existences, *gold_existences) for node in walk(element)}
    outer, gold_outer = ([node for node in side if id(node) not in inner] for side in (only_predicted, only_gold))
    nodes, gold_nodes = (*outer, *filters, *existences), (*gold_outer, *gold_filters, *gold_existences)
    clauses, aligned_clauses = ([*_clause_lines(tree, lines)] for tree in (predicted, gold))
    shown_clauses = [*_clause_lines(renamed(gold, in_gold), lines)]
    gold_clauses = [  # no two columns are equal whose patterns are not
        shown_clause if shown_clause[0].endswith("SELECT") else aligned_clause
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


def _with_plain_types(tree: Select, joining: Sequence[str]) -> Select:
    """Return a query with `a` instead of `a/rdfs:subClassOf*`, even if a variable of `joining` is on that path."""
    links = [name for name in links_of(tree) if name.startswith(NODE) or name in joining]

    def change(_: Node, new: Node) -> Node:
        if not isinstance(new, Group):
            return new
        types = [element.object for element in new.elements if isinstance(element, Triple) and element.path == ("a",)]
        elements = with_paths(new.elements, [name for name in types if name in links])
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
    """Return a query in which triples with the same subject and path share one node instead of several."""
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


def _existence_filters(tree: Select) -> list[Filter]:
    filters = [node for node in walk(tree) if isinstance(node, Filter)]
    return [node for node in filters if node.condition.head in ("EXISTS", "NOT EXISTS")]


def _clause_lines(tree: Select, lines: Lines) -> Iterator[tuple[str, str]]:
    """Yield the name and a line of each clause except WHERE, marked within subqueries; each column has its own line."""
    for select in (node for node in walk(tree) if isinstance(node, Select)):
        place = "" if select is tree else "subquery: "
        clauses = (("GROUP BY", select.group), ("HAVING", select.having), ("ORDER BY", select.order))
        columns = [lines.line(item.value) for item in select.items] or [""]
        yield from ((f"{place}{select.form}", column) for column in columns)
        yield from ((f"{place}{word}", lines.line(nodes)) for word, nodes in clauses if nodes)
        if limit_text(select):
            yield f"{place}LIMIT", limit_text(select)


def _joined(clauses: Iterable[tuple[str, str]]) -> list[str]:
    """Return one text for each clause name, with all its lines."""
    texts: dict[str, list[str]] = {}
    for word, text in clauses:
        texts.setdefault(word, [word]).append(text)
    return [" ".join(filter(None, words)) for words in texts.values()]


def _filters(tree: Select, common: Sequence[Triple]) -> list[Node]:
    """Return the filters without EXISTS, assignments and data of a query, and its OPTIONALs of `common` triples only.

    Elements of inner groups are included.
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
    """Return the edit that names the answer which a predicted query states instead of searching; None if it searches.

    The query writes its answer as IRIs that gold does not name: all values of a column by VALUES or BIND, or an IRI
    of each row of gold's answer.
    """
    gold_terms = {*terms(gold)}
    rows = [{f"<{cell.iri}>" for cell in row if isinstance(cell, IRI)} for row in answer.rows]
    columns = {item.variable for item in predicted.items}
    answering_iris: set[str] = set()
    triples = [node for node in walk(predicted) if isinstance(node, Triple)]
    class_names = {
        name for triple in triples for name in (*triple.path, *([triple.object] if "a" in triple.path else []))
    }
    for node, variable, iris in _constants(predicted):
        new_iris = [iri for iri in iris if iri not in gold_terms and variable not in class_names]
        answering_iris.update(new_iris)
        fills_column = variable in columns and len(new_iris) == len(iris)
        if new_iris and (fills_column or (rows and not any(map(answering_iris.isdisjoint, rows)))):
            is_data = isinstance(node, Data | Bind)
            text = lines.line(node) if is_data else ", ".join(map(lines.writer.term, new_iris))
            return CausingEdit(label="hard-coded", clause="WHERE", change=f"{text} → {SEARCHED}")
    return None


def _constants(tree: Select) -> Iterator[tuple[Node, str, list[str]]]:
    """Yield the parts of a query that may name IRIs, with those IRIs and the variable that has no other values.

    The variable is empty if there is none.
    """
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
