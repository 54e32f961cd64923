"""Words that lack the space between them, in a query that runs nevertheless: `SELECT ?bookWHERE { ... }`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pytest_queryeval.core.cause import CausingEdit, QueryEdits
from pytest_queryeval.languages.sparql.trees.tree import Expr, Item, Select, variables

WORD = "WHERE"


def without_glued_word(tree: Select) -> tuple[Select, CausingEdit | None]:
    """Return a query whose last column is no longer a variable and WHERE in one word, with that edit; else None.

    Only a variable is taken apart that nothing binds, while the pattern has it without WHERE.
    """
    name = tree.items[-1].variable if tree.items else ""
    column = name.removesuffix(WORD)
    if column == name or tree.where is None or name in (names := variables(tree.where)) or column not in names:
        return tree, None
    repaired_tree = replace(tree, items=(*tree.items[:-1], Item(Expr(column))))
    return repaired_tree, CausingEdit(label="syntax", clause="SELECT", change=f"{name} → {column} {WORD}")


class WithRepair:
    """The edits of a predicted query whose text was repaired before: the repair is the first of them."""

    def __init__(self, edits: QueryEdits, repair: CausingEdit) -> None:
        self._further = edits
        self.edits: Sequence[CausingEdit] = (repair, *edits.edits)

    def combinations(self) -> Iterator[tuple[int, ...]]:
        """Yield the repair alone, then with one further edit."""
        yield (0,)
        yield from ((0, numbers[0] + 1) for numbers in self._further.combinations() if len(numbers) == 1)

    def applied(self, numbers: Sequence[int]) -> str | None:
        """Return the predicted query after the repair and these edits; None if that cannot be a query."""
        return self._further.applied([number - 1 for number in numbers if number])

    def reach_gold(self, numbers: Sequence[int]) -> bool:
        """Return whether predicted says the same as gold after these edits."""
        return self._further.reach_gold([number - 1 for number in numbers if number])
