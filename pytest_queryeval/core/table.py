"""The answers of queries: tables, the policy by which two of them are compared, and what SDMX queries select."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from decimal import Decimal
from itertools import chain
from typing import Any, NamedTuple, TypeAlias, overload
from typing import Literal as OneOf


@dataclass(frozen=True, slots=True)
class IRI:
    """An RDF term that names a resource; it never equals a literal of the same text."""

    iri: str


@dataclass(frozen=True, slots=True)
class BlankNode:
    """An RDF blank node; its label has a meaning only within its own table."""

    label: str


@dataclass(frozen=True, slots=True)
class Literal:
    """An RDF literal as it was written; `datatype` and `language` are empty for plain text.

    A base direction follows the language: `ar--rtl`.
    """

    lexical: str
    datatype: str = ""
    language: str = ""


@dataclass(frozen=True, slots=True)
class TripleTerm:
    """An RDF triple as a term; its parts are terms, or values that stand for terms in a comparison."""

    subject: Hashable
    predicate: Hashable
    object: Hashable

    @property
    def parts(self) -> tuple[Hashable, Hashable, Hashable]:
        """The subject, the predicate and the object, in this order."""
        return self.subject, self.predicate, self.object


class FrozenMapping(Mapping["Cell", "Cell"]):
    """An immutable mapping as the cell of a struct or a map; it equals any mapping with the same items and is hashable.

    >>> FrozenMapping({"a": 1, "b": 2}) == FrozenMapping({"b": 2, "a": 1}) == {"a": 1, "b": 2}
    True
    """

    __slots__ = ("_hash", "_items")

    def __init__(self, items: Mapping[Cell, Cell]) -> None:
        self._items = dict(items)
        self._hash = hash(frozenset(self._items.items()))

    def __getitem__(self, key: Cell) -> Cell:
        return self._items[key]

    def __iter__(self) -> Iterator[Cell]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return repr(self._items)

    def __reduce__(self) -> tuple[type[FrozenMapping], tuple[Mapping[Cell, Cell]]]:
        return FrozenMapping, (self._items,)  # hashes of texts differ from process to process


RDFTerm: TypeAlias = IRI | BlankNode | Literal | TripleTerm
Scalar: TypeAlias = bool | int | float | Decimal | str | bytes | date | datetime | time | RDFTerm | None
Cell: TypeAlias = "Scalar | tuple[Cell, ...] | FrozenMapping"  # a tuple is a list or an array
Row: TypeAlias = tuple[Cell, ...]
_FROZEN = frozenset((type(None), bool, int, float, Decimal, str, bytes, date, datetime, time, tuple, FrozenMapping))
BETWEEN = "\x1f"  # elements of a collection that is read as one text
XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"
RDF_LANG_STRING = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"
MAX_LEVELS = 50  # of lists and mappings within each other, as in `sandbox.cells`
NO_PATHS = FrozenMapping({})
DEFAULT_REL, DEFAULT_ABS = 1e-6, 1e-9  # tolerances of a `Policy`


def encoded_term(cell: Cell) -> str:
    """Return a text that is unique for an IRI or a literal, and that a SPARQL expression can compute.

    Empty for other cells.
    """
    match cell:
        case IRI(iri):
            return f'<{iri}"@'
        case Literal(lexical, datatype, language):
            return f'"{lexical}"{RDF_LANG_STRING if language else datatype or XSD_STRING}@{language}'
    return ""


def blank_nodes(cell: Hashable) -> Iterator[BlankNode]:
    """Yield the blank nodes of a cell, including those within triple terms."""
    if isinstance(cell, BlankNode):
        yield cell
    elif isinstance(cell, TripleTerm):
        for part in cell.parts:
            yield from blank_nodes(part)


@overload
def replace_blank_nodes(cell: Cell, replacement: Callable[[BlankNode], BlankNode]) -> Cell: ...


@overload
def replace_blank_nodes(cell: Hashable, replacement: Callable[[BlankNode], Hashable]) -> Hashable: ...


def replace_blank_nodes(cell: Hashable, replacement: Callable[[BlankNode], Hashable]) -> Hashable:
    """Return the cell with each of its blank nodes replaced, those within triple terms included.

    >>> replace_blank_nodes(TripleTerm(BlankNode("a"), IRI("p"), 1), lambda node: BlankNode(node.label * 2)).subject
    BlankNode(label='aa')
    """
    if isinstance(cell, BlankNode):
        return replacement(cell)
    if isinstance(cell, TripleTerm):
        return TripleTerm(*(replace_blank_nodes(part, replacement) for part in cell.parts))
    return cell


def freeze_cell(value: Any, levels: int = MAX_LEVELS) -> Any:
    """Return a value as a hashable cell: lists as tuples, sets as sorted tuples, mappings as `FrozenMapping`s.

    Nested values are converted, too; values below `levels` levels become text. Any other value is returned unchanged.
    """
    if not isinstance(value, list | tuple | Mapping | AbstractSet):
        return value
    if not levels:
        return str(value)
    if isinstance(value, Mapping):
        items = value.items()
        return FrozenMapping({freeze_cell(key, levels - 1): freeze_cell(item, levels - 1) for key, item in items})
    frozen = [freeze_cell(item, levels - 1) for item in value]
    return tuple(sorted(frozen, key=str) if isinstance(value, AbstractSet) else frozen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tie:
    """A stretch of an ordered answer that contains any `size` of the `rows`, in any order.

    There are more than `size` rows only if a LIMIT or OFFSET cuts through the stretch.
    """

    size: int
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """An answer with rows as tuples, each as long as `columns`.

    Compared by identity, because equality depends on a policy. Lists and mappings among the cells are replaced as
    `freeze_cell` does. `cell_types` are the types of all cells. `ties` is None if the order of rows means nothing;
    otherwise the ties cover the answer from the first row to the last. `is_graph` marks the triples of an RDF graph,
    whose three columns are always compared by position. If `has_header` is false, the columns of an answer without rows
    are unknown.
    """

    columns: tuple[str, ...]
    rows: tuple[Row, ...] | list[Row]
    ties: tuple[Tie, ...] | None = None
    is_graph: bool = False
    has_header: bool = True
    cell_types: frozenset[type] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        types = frozenset(map(type, chain.from_iterable(self.rows)))
        if any(issubclass(kind, list | AbstractSet | Mapping) for kind in types - _FROZEN):
            object.__setattr__(self, "rows", [tuple(map(freeze_cell, row)) for row in self.rows])
            types = frozenset(map(type, chain.from_iterable(self.rows)))
        object.__setattr__(self, "cell_types", types)


@dataclass(frozen=True, slots=True)
class Term:
    """A code of a dimension by its id, its name, or both; a part that was not given is None.

    `label` is the name in the structure if no name was given. It is shown, and it is compared only with a gold term
    that has no id.
    """

    id: str | None
    name: str | None
    label: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class DimensionSelection:
    """The terms that a data query selects of one dimension."""

    name: str
    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class DatasetSelection:
    """The dimensions that a data query selects of one dataset.

    `id` is `AGENCY:ID`, followed by `(VERSION)` if a version was given.
    """

    id: str
    dimensions: tuple[DimensionSelection, ...]


@dataclass(frozen=True, slots=True)
class Selection:
    """The answer of an SDMX data query: what it selects of each dataset.

    `by_id` says that it was given in codes; then names are only for display.
    """

    datasets: tuple[DatasetSelection, ...]
    by_id: bool = False


class ColumnTolerance(NamedTuple):
    """The tolerances of a gold column, by its name; None leaves a tolerance at its default."""

    name: str
    rel: float | None
    abs: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The `compare` settings of a case; every field is a key there, `rel`, `abs` and `column_numbers` below `numbers`.

    `rel` and `abs`: a float equals a number when |x - y| <= max(rel * max(|x|, |y|), abs), by default 1e-6 and 1e-9. If
    they are set, they hold for Decimals, too, which are exact otherwise; two integers are always exact.
    `column_numbers`: the tolerances of gold columns that have their own. `gold_columns`: the columns of gold that
    count, by name or 0-based position; empty for all columns.

    Three fields are for JSON answers, whose numbers are exact by default. `lists`: the order of elements, or `{"by":
    NAME}`. `ignore`: the JSONPaths of values that do not count. `paths`: by JSONPath, other settings for a value and
    all values below it.
    """

    rel: float | None = None
    abs: float | None = None
    text_numbers: bool = False
    case: OneOf["keep", "ignore"] = "keep"
    whitespace: OneOf["keep", "ignore"] = "keep"
    dates: OneOf["by_value", "midnight", "strict"] = "by_value"
    duplicates: OneOf["count", "ignore"] = "count"
    row_order: OneOf["auto", "ignore", "strict"] = "auto"
    columns: OneOf["any", "positional", "by_name"] = "any"
    extra_columns: OneOf["reject", "allow"] = "reject"
    rdf_terms: OneOf["value", "strict"] = "value"
    choices: OneOf["any", "first"] = "any"
    lists: OneOf["ordered", "any"] | FrozenMapping = "ordered"
    extra_keys: OneOf["reject", "allow"] = "reject"
    ignore: tuple[str, ...] = ()
    paths: FrozenMapping = NO_PATHS
    gold_columns: tuple[str | int, ...] = ()
    column_numbers: tuple[ColumnTolerance, ...] = ()

    @property
    def has_ordered_set(self) -> bool:
        """Whether the policy wants gold's order of rows and ignores duplicates, which contradict each other."""
        return self.row_order == "strict" and self.duplicates == "ignore"

    @property
    def ignores_order(self) -> bool:
        """Whether the policy accepts rows in any order, even if the gold query has an ORDER BY."""
        return self.row_order == "ignore" or self.duplicates == "ignore"

    def of(self, gold: Table, predicted: Table) -> Policy:
        """Return the policy for two answers: this policy, or for RDF graphs a copy that compares sets of triples."""
        if not gold.is_graph and not predicted.is_graph:
            return self
        return replace(self, columns="positional", row_order="ignore", duplicates="ignore")

    def by_column(self, gold: Table) -> dict[int, Policy]:
        """Return the policies of gold's columns that have their own tolerances, by position from 0.

        The letter case of names is ignored. Empty if the policy has no tolerances of columns.
        """
        if not self.column_numbers:
            return {}
        numbers_by_name = {numbers.name.casefold(): numbers for numbers in self.column_numbers}
        return {
            place: replace(self, rel=numbers.rel, abs=numbers.abs, column_numbers=())
            for place, name in enumerate(gold.columns)
            if (numbers := numbers_by_name.get(name.casefold())) is not None
        }

    def without_columns(self) -> Policy:
        """Return a copy of the policy without tolerances of columns: `rel` and `abs` are used for all columns."""
        return replace(self, column_numbers=())

    def loosest(self) -> Policy:
        """Return a copy with one tolerance for all columns, which accepts all pairs that this policy accepts."""
        rels = [self.rel, *(numbers.rel for numbers in self.column_numbers)]
        tolerances = [self.abs, *(numbers.abs for numbers in self.column_numbers)]
        return replace(self, rel=_loosest(rels, DEFAULT_REL), abs=_loosest(tolerances, DEFAULT_ABS), column_numbers=())


def _loosest(tolerances: Sequence[float | None], default: float) -> float | None:
    if tolerances.count(None) == len(tolerances):
        return None
    return max(default if tolerance is None else tolerance for tolerance in tolerances)
