"""How many of the right keys an answer has."""

from pytest_queryeval.core.metric import metric
from pytest_queryeval.core.table import Table


@metric(answers=Table)
def key_overlap(gold: Table, predicted: Table) -> float:
    """Return the Jaccard index of the first columns, in [0, 1]; two empty answers score 1."""
    keys, others = ({row[0] for row in table.rows if row} for table in (gold, predicted))
    return len(keys & others) / len(keys | others) if keys | others else 1.0
