"""Rows as the cells that they hold in any column, and the one-to-one pairs of rows with the most cells in common.

`text_rows` has cells as published evaluators compare them: as texts in the way of pandas 2, without pandas.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from operator import itemgetter
from typing import Any, TypeAlias

from pytest_queryeval.comparison.canonical import (
    Comparable,
    Nested,
    is_comparable,
    is_near,
    quantity_of,
    skeleton_of,
    tolerance_type,
)
from pytest_queryeval.comparison.coded_tables import Rows, Texts, columns_of, transpose
from pytest_queryeval.comparison.graphs import (
    MAX_EXHAUSTIVE,
    best_assignment,
    component_representatives,
    maximum_matching,
)
from pytest_queryeval.comparison.pairing import TablePair
from pytest_queryeval.comparison.quantities import Number, Temporal, as_float, widest_tolerance
from pytest_queryeval.core.mappings import excluding
from pytest_queryeval.core.table import IRI, BlankNode, Cell, FrozenMapping, Literal, Policy, Row

Codes: TypeAlias = tuple[int, ...]
Tokens: TypeAlias = tuple[Hashable, ...]
CodesByValue: TypeAlias = dict[tuple[Hashable, Comparable], int]
Matrix: TypeAlias = Any  # a sparse matrix of scipy, whose stubs differ from release to release
Pairs: TypeAlias = list[tuple[int, int]]
CodedNumber: TypeAlias = tuple[Number, Comparable, int]
# Values compared with each other, and cells that all rows together may share with cells that they are near. Past either
# limit, values are paired one to one, as `coded_tables` does for columns.
MAX_NEAR_PAIRS = 1_000_000
MAX_REACH = 5_000_000
MAX_VISITS = 200_000  # pairs of rows with a cell in common that are looked at one by one
MAX_GREEDY_VISITS = 1_000_000  # such pairs that the greedy pairing looks at
MAX_MATRIX = 1_000_000  # gold rows times predicted rows that are assigned exactly; past it, rows are paired greedily
_INTEGERS = range(-(2**63), 2**64)  # what a column of numbers can hold in pandas


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCells:
    """Gold's rows as tokens of cells, none twice in a row, and the tokens of predicted cells that equal them.

    `matching_tokens` contains, for each gold row, a predicted token as often as cells with it can be paired with cells
    of the row. It is the same object as `cells` if tokens equal only themselves. `width` is the number of gold's
    columns.
    """

    width: int
    cells: Sequence[Tokens]
    matching_tokens: Sequence[Tokens]

    def only(self, positions: Sequence[int]) -> RowCells:
        """Return the rows at these positions, in that order."""
        cells = [self.cells[at] for at in positions]
        reach = cells if self.matching_tokens is self.cells else [self.matching_tokens[at] for at in positions]
        return RowCells(width=self.width, cells=cells, matching_tokens=reach)


def merged_rows(pair: TablePair) -> tuple[list[Codes], list[Codes]]:
    """Return gold's rows and predicted's rows as codes, which are the same for equal cells under the policy."""
    (gold, predicted), _ = pair.coded.paired_anywhere
    return transpose(gold, len(pair.gold_rows)), transpose(predicted, len(pair.predicted_rows))


def distinct_row_cells(pair: TablePair) -> tuple[RowCells, list[Tokens], bool]:
    """Return gold's distinct rows, predicted's distinct rows, and whether all equal cells were found.

    Rows are in the order of their first positions. Because a cell equals at most one cell of another row, the second of
    two equal cells in a row has a different token.
    """
    exact, width = pair.coded.exact, len(pair.gold.columns)
    paired, has_chains = pair.coded.paired_anywhere
    if has_chains and (near := _near_codes(pair)) is not None:
        exact_rows = _distinct(exact.gold, exact.gold), _distinct(exact.predicted, exact.predicted)
        if tokens := _near_tokens(*exact_rows, near):
            gold_tokens, reach, predicted_tokens = tokens
            return RowCells(width=width, cells=gold_tokens, matching_tokens=reach), predicted_tokens, True
    cells, predicted_cells = (list(map(_copies, _distinct(*side))) for side in zip(exact, paired, strict=True))
    return RowCells(width=width, cells=cells, matching_tokens=cells), predicted_cells, not has_chains


def _distinct(exact: Sequence[Sequence[int]], codes: Sequence[Sequence[int]]) -> list[Codes]:
    """Return the rows of the columns `codes`, without rows whose `exact` codes repeat an earlier row."""
    rows: dict[Codes, Codes] = {}
    for exact_row, row in zip(zip(*exact, strict=True), zip(*codes, strict=True), strict=True):
        rows.setdefault(exact_row, row)
    return list(rows.values())


def _copies(codes: Iterable[Hashable]) -> Tokens:
    """Return a token for each code of a row; further copies of a code get different tokens."""
    row = tuple(codes)
    if len(set(row)) == len(row):
        return row
    times: defaultdict[Hashable, int] = defaultdict(int)
    tokens: list[Hashable] = []
    for code in row:
        tokens.append((code, times[code]) if times[code] else code)
        times[code] += 1
    return tuple(tokens)


def _near_tokens(
    gold: Sequence[Codes], predicted: Sequence[Codes], near: Mapping[int, set[int]]
) -> tuple[list[Tokens], list[Tokens], list[Tokens]] | None:
    """Return gold's tokens, the predicted tokens that match each gold row, and predicted's tokens; None past MAX_REACH.

    `near` has the predicted codes that each gold code equals. All cells of a row that nearness links make one token,
    because each of them may equal any cell of the token on the other side.
    """
    groups = component_representatives(
        (code, near_code) for code, near_codes in near.items() for near_code in near_codes
    )
    near = {code: {code, *near.get(code, ())} for code in groups}
    gold_parts, predicted_parts = ([_alone_and_linked(row, groups) for row in side] for side in (gold, predicted))
    holders: defaultdict[int, set[Codes]] = defaultdict(set)
    for part in {part for _, linked in predicted_parts for part in linked}:
        for code in part:
            holders[code].add(part)
    reach: dict[Codes, Tokens] = {}
    reach_left = MAX_REACH
    for part in {part for _, linked in gold_parts for part in linked}:
        near_parts = {holder for code in part for near_code in near[code] for holder in holders[near_code]}
        reach_left -= len(near_parts)
        if reach_left < 0:
            return None
        reach[part] = tuple(holder for holder in near_parts for _ in range(_most_equal(part, holder, near)))
    if sum(len(reach[part]) for _, linked in gold_parts for part in linked) > MAX_REACH:
        return None
    gold_reach = [
        (*_copies(alone), *chain.from_iterable(reach[part] for part in linked)) for alone, linked in gold_parts
    ]
    gold_tokens, predicted_tokens = (
        [(*_copies(alone), *linked) for alone, linked in side] for side in (gold_parts, predicted_parts)
    )
    return gold_tokens, gold_reach, predicted_tokens


def _alone_and_linked(row: Codes, groups: Mapping[int, int]) -> tuple[list[int], list[Codes]]:
    """Return the codes of a row that equal only themselves, and a sorted tuple of the codes of each linked group."""
    parts: defaultdict[int, list[int]] = defaultdict(list)
    alone = []
    for code in row:
        if code in groups:
            parts[groups[code]].append(code)
        else:
            alone.append(code)
    return alone, [tuple(sorted(part)) for part in parts.values()]


def _most_equal(gold: Codes, predicted: Codes, near: Mapping[int, set[int]]) -> int:
    """Return how many cells of a gold part and a predicted part can be paired one to one with an equal cell."""
    if len(gold) == 1 or len(predicted) == 1:
        return 1
    fits = [[place for place, code in enumerate(predicted) if code in near[gold_code]] for gold_code in gold]
    return len(maximum_matching(fits, len(predicted)))


def _near_codes(pair: TablePair) -> dict[int, set[int]] | None:
    """Return the codes of the predicted values that each gold value equals; None after MAX_NEAR_PAIRS comparisons.

    The code of an integer and a float of the same value is near what either of them is near.
    """
    coded = pair.coded
    predicted = _values(pair.predicted_rows, coded.exact.predicted, coded.texts)
    alike: defaultdict[Hashable, list[tuple[Comparable, int]]] = defaultdict(list)
    integers: list[CodedNumber] = []
    fractions: list[CodedNumber] = []
    for (kind, value), code in predicted.items():
        quantity = quantity_of(value)
        if isinstance(quantity, Temporal | Nested):
            alike[skeleton_of(quantity, pair.policy)].append((value, code))
        else:
            (integers if kind is int else fractions).append((quantity, value, code))
    integers.sort(key=itemgetter(0))
    fractions.sort(key=itemgetter(0))
    near: defaultdict[int, set[int]] = defaultdict(set)
    visits = 0
    for policy, (kind, value), code in _gold_values(pair):
        quantity = quantity_of(value)
        if isinstance(quantity, Temporal | Nested):
            candidates: Iterable[tuple[Comparable, int]] = alike.get(skeleton_of(quantity, pair.policy), ())
        else:
            groups = (fractions,) if kind is int else (fractions, integers)
            candidates = chain.from_iterable(_near_numbers(quantity, numbers, policy) for numbers in groups)
        for candidate, candidate_code in candidates:
            visits += 1
            if visits > MAX_NEAR_PAIRS:
                return None
            if is_near(value, candidate, policy):
                near[code].add(candidate_code)
    return near


def _gold_values(pair: TablePair) -> Iterator[tuple[Policy, tuple[Hashable, Comparable], int]]:
    """Yield the policy, the value with its tolerance type, and the code of each distinct gold value.

    A value occurs once for each policy of a column that contains it.
    """
    by_policy: defaultdict[Policy, list[int]] = defaultdict(list)
    for place in range(len(pair.gold.columns)):
        by_policy[pair.coded.policy_of(place)].append(place)
    for policy, places in by_policy.items():
        rows = [tuple([row[place] for place in places]) for row in pair.gold_rows]
        codes = [pair.coded.exact.gold[place] for place in places]
        for typed_value, code in _values(rows, codes, pair.coded.texts).items():
            yield policy, typed_value, code


def _values(rows: Rows, codes: Sequence[Sequence[int]], texts: Texts) -> CodesByValue:
    """Return the codes of the values that are compared as quantities, by tolerance type and value.

    `codes` are the columns of `rows` as codes; `texts` replaces texts by the quantities that they spell.
    """
    coded_values: CodesByValue = {}
    for values, column in zip(columns_of(rows), codes, strict=True):
        read_values = [texts.get(value, value) for value in values] if texts else values
        coded_values.update(
            {
                (tolerance_type(value), value): code
                for value, code in zip(read_values, column, strict=True)
                if is_comparable(value)
            }
        )
    return coded_values


def _near_numbers(number: Number, numbers: Sequence[CodedNumber], policy: Policy) -> Iterator[tuple[Comparable, int]]:
    """Yield the values and codes of the sorted `numbers` that may be within the tolerance of a number."""
    middle = as_float(number)
    if not math.isfinite(middle):
        return
    reach = widest_tolerance(policy).reach(middle)
    for place in range(bisect_left(numbers, middle - reach, key=itemgetter(0)), len(numbers)):
        candidate, value, code = numbers[place]
        if candidate > middle + reach:
            return
        yield value, code


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonCells:
    """The number of cells that paired rows have in common; `is_proven` says that no other pairs have more."""

    common: int
    is_proven: bool


def pair_rows(gold: RowCells, predicted: Sequence[Tokens]) -> CommonCells:
    """Pair gold rows with predicted rows one to one, and return the greatest number of cells that pairs have in common.

    Rows with the same cells in any order are paired first, which loses nothing. If each other row can have the partner
    that it shares most cells with, these are the pairs. Otherwise they are assigned exactly, up to MAX_MATRIX possible
    pairs, and greedily beyond.
    """
    same, gold, predicted = _without_same(gold, predicted)
    # Rows that share no cell with any row of the other side add nothing to any pair.
    there, reached = set(chain.from_iterable(predicted)), set(chain.from_iterable(gold.matching_tokens))
    gold = gold.only([at for at, reach in enumerate(gold.matching_tokens) if not there.isdisjoint(reach)])
    predicted = [row for row in predicted if not reached.isdisjoint(row)]
    if not predicted:
        return CommonCells(common=same, is_proven=True)
    sizes = len(gold.cells), len(predicted)
    if max(sizes) <= MAX_EXHAUSTIVE or min(sizes) == 1:
        weights = [common_cells(reach, predicted) for reach in gold.matching_tokens]
        return CommonCells(
            common=same + sum(weights[left][right] for left, right in best_assignment(weights)), is_proven=True
        )
    if (most_common := _pair_with_best_partners(gold.matching_tokens, predicted)) is not None:
        return CommonCells(common=same + most_common, is_proven=True)
    if sizes[0] * sizes[1] <= MAX_MATRIX:
        matrix = _overlap(gold.matching_tokens, predicted).toarray()
        return CommonCells(common=same + sum(int(matrix[pair]) for pair in best_assignment(matrix)), is_proven=True)
    pairs = _greedy_pairs(gold.matching_tokens, predicted)
    common = sum(common_cells(gold.matching_tokens[left], [predicted[right]])[0] for left, right in pairs)
    return CommonCells(common=same + common, is_proven=common == _max_common(gold, predicted))


def common_cells(reach: Tokens, rows: Iterable[Tokens]) -> list[int]:
    """Return how many cells a gold row, given by its matching tokens, has in common with each predicted row."""
    return [sum(map(set(row).__contains__, reach)) for row in rows]


def _pair_with_best_partners(reach: Sequence[Tokens], predicted: Sequence[Tokens]) -> int | None:
    """Return the number of common cells if each row of the smaller side is paired with its best partner.

    No other pairs have more. Return None if two rows need the same partner, or past MAX_VISITS.
    """
    holders: defaultdict[object, list[int]] = defaultdict(list)
    for right, row in enumerate(predicted):
        for token in row:
            holders[token].append(right)
    if sum(len(holders.get(token, ())) for row in reach for token in row) > MAX_VISITS:
        return None
    common = [Counter(chain.from_iterable(holders.get(token, ()) for token in row)) for row in reach]
    if len(common) > len(predicted):
        golds, common = common, [Counter() for _ in predicted]
        for left, shared in enumerate(golds):
            for right, cells in shared.items():
                common[right][left] = cells
    used_partners, total = set[int](), 0
    for shared in common:
        most = max(shared.values())
        partner = next((row for row, cells in shared.items() if cells == most and row not in used_partners), None)
        if partner is None:
            return None
        used_partners.add(partner)
        total += most
    return total


def _without_same(gold: RowCells, predicted: Sequence[Tokens]) -> tuple[int, RowCells, list[Tokens]]:
    """Pair rows with the same cells one to one.

    Return the number of their cells, then the gold rows and the predicted rows that are left.
    """
    waiting: defaultdict[frozenset[object], list[int]] = defaultdict(list)
    for position in reversed(range(len(predicted))):
        waiting[frozenset(predicted[position])].append(position)
    unpaired_places, paired = [], 0
    for position, cells in enumerate(gold.cells):
        if partners := waiting.get(frozenset(cells)):
            partners.pop()
            paired += gold.width
        else:
            unpaired_places.append(position)
    return paired, gold.only(unpaired_places), [predicted[at] for at in sorted(chain.from_iterable(waiting.values()))]


def _max_common(gold: RowCells, predicted: Sequence[Tokens]) -> int | None:
    """Return an upper bound of the common cells of all pairs; None if it is unknown, because near cells can match."""
    if gold.matching_tokens is not gold.cells:
        return None
    pairs = min(len(gold.cells), len(predicted))
    bounds = []
    for rows, partners in ((gold.cells, predicted), (predicted, gold.cells)):
        there = set(chain.from_iterable(partners))
        shared = sorted((sum(map(there.__contains__, row)) for row in rows), reverse=True)
        bounds.append(sum(shared[:pairs]))
    return min(bounds)


def _overlap(reach: Sequence[Tokens], cells: Sequence[Tokens], only: Collection[Hashable] | None = None) -> Matrix:
    """Return a sparse matrix of the number of cells that each gold row shares with each predicted row.

    Gold rows are given by their matching tokens. With `only`, other tokens do not count.
    """
    tokens = set(chain.from_iterable(reach)).intersection(chain.from_iterable(cells)) if only is None else only
    places = {token: place for place, token in enumerate(tokens)}
    return _counts(reach, places) @ _counts(cells, places).T


def _greedy_pairs(reach: Sequence[Tokens], cells: Sequence[Tokens]) -> Pairs:
    """Return pairs of rows, chosen greedily by the number of cells in common.

    Cells that very many rows share are ignored at first. Rows without a partner are then paired if they have the same
    frequent cells, and at last if they share one frequent cell, rare cells first.
    """
    import numpy as np

    visits = _pairs_by_token(reach, cells)
    rare = {
        token for token, total in zip(visits, accumulate(visits.values()), strict=True) if total <= MAX_GREEDY_VISITS
    }
    common = _overlap(reach, cells, rare).tocoo()
    order = np.argsort(-common.data, kind="stable")
    free_gold_rows, free_predicted_rows = bytearray(b"\1") * common.shape[0], bytearray(b"\1") * common.shape[1]
    pairs: Pairs = []
    for left, right in zip(common.row[order].tolist(), common.col[order].tolist(), strict=True):
        if free_gold_rows[left] and free_predicted_rows[right]:
            free_gold_rows[left] = free_predicted_rows[right] = 0
            pairs.append((left, right))
    used_gold, used_predicted = {left for left, _ in pairs}, {right for _, right in pairs}
    free_gold = {at: row for at, row in enumerate(reach) if at not in used_gold}
    free_predicted = {at: row for at, row in enumerate(cells) if at not in used_predicted}
    return pairs + _by_frequent_cells(free_gold, free_predicted)


def _counts(rows: Sequence[Tokens], places: dict[Hashable, int]) -> Matrix:
    """Return a sparse matrix of how often each row contains the token of each place.

    Tokens without a place are ignored.
    """
    import numpy as np
    from scipy.sparse import csr_array  # takes up to a second to load

    entries = [(at, places[token]) for at, row in enumerate(rows) for token in row if token in places]
    at = np.array(entries, dtype=np.int64).reshape(-1, 2)
    ones = np.ones(len(entries), dtype=np.int64)
    return csr_array((ones, (at[:, 0], at[:, 1])), shape=(len(rows), len(places)))


def _pairs_by_token(reach: Sequence[Tokens], cells: Sequence[Tokens]) -> dict[Hashable, int]:
    """Return how many pairs of rows share each token, in ascending order of that number."""
    gold_counts, predicted_counts = (Counter(chain.from_iterable(rows)) for rows in (reach, cells))
    visits = {token: n * predicted_counts[token] for token, n in gold_counts.items() if token in predicted_counts}
    return dict(sorted(visits.items(), key=itemgetter(1)))


def _by_frequent_cells(gold: Mapping[int, Tokens], predicted: Mapping[int, Tokens]) -> Pairs:
    frequent = _pairs_by_token(list(gold.values()), list(predicted.values()))
    gold_keys, keys = (
        {at: [frozenset(frequent.keys() & row)] for at, row in side.items()} for side in (gold, predicted)
    )
    longest = sorted({cells for (cells,) in gold_keys.values() if cells}, key=len, reverse=True)
    same = _by_shared_keys(gold_keys, keys, longest)
    used_gold, used_predicted = {left for left, _ in same}, {right for _, right in same}
    free_gold = excluding(gold, used_gold)
    return same + _by_shared_keys(free_gold, excluding(predicted, used_predicted), frequent)


def _by_shared_keys(
    gold: Mapping[int, Iterable[Hashable]], predicted: Mapping[int, Iterable[Hashable]], keys: Iterable[Hashable]
) -> Pairs:
    """Return pairs of rows that share a key, for one key after the other; no row is used twice."""
    gold_holders, holders = _holders(gold), _holders(predicted)
    free_gold, free_predicted = set(gold), set(predicted)
    pairs: Pairs = []
    for key in keys:
        gold_rows = [at for at in gold_holders[key] if at in free_gold]
        predicted_rows = [at for at in holders[key] if at in free_predicted]
        new = list(zip(gold_rows, predicted_rows, strict=False))
        free_gold.difference_update(left for left, _ in new)
        free_predicted.difference_update(right for _, right in new)
        pairs += new
    return pairs


def _holders(rows: Mapping[int, Iterable[Hashable]]) -> defaultdict[Hashable, list[int]]:
    holders: defaultdict[Hashable, list[int]] = defaultdict(list)
    for at, keys in rows.items():
        for key in set(keys):
            holders[key].append(at)
    return holders


def text_rows(rows: Iterable[Row]) -> list[tuple[str, ...]]:
    """Return the rows as texts, as `DataFrame(rows).astype(str)` of pandas 2 makes them.

    A column of numbers with a float or NULL becomes floats, with `nan` for NULL. In any other column each cell is its
    own text, and NULL is `None`.

    >>> text_rows([(1, 1, "a"), (2, None, None)])
    [('1', '1.0', 'a'), ('2', 'nan', 'None')]
    """
    rows = list(rows)
    columns = [
        ["nan" if cell is None else str(float(cell)) for cell in column]
        if _is_of_floats(column)
        else [_text(cell) for cell in column]
        for column in zip(*rows, strict=True)
    ]
    return list(zip(*columns, strict=True)) if columns else [()] * len(rows)


def _is_of_floats(column: Sequence[Cell]) -> bool:
    """Return whether pandas reads a column as floats.

    That is so for numbers and NULLs that are neither all integers nor all NULLs.
    """
    types = set(map(type, column))
    if not types <= {int, float, type(None)} or not types - {type(None)} or types == {int}:
        return False
    return all(cell in _INTEGERS for cell in column if type(cell) is int)


def _text(cell: Cell) -> str:
    match cell:
        case bytes():
            return cell.decode(errors="replace")
        case IRI(iri=text) | Literal(lexical=text):
            return text
        case BlankNode(label=label):
            return f"_:{label}"
        case tuple() | FrozenMapping():
            return str(_as_driver_has_it(cell))
        case _:
            return str(cell)


def _as_driver_has_it(cell: Cell) -> Any:
    match cell:
        case tuple():
            return list(map(_as_driver_has_it, cell))
        case FrozenMapping():
            return {_as_driver_has_it(key): _as_driver_has_it(item) for key, item in cell.items()}
        case _:
            return cell
