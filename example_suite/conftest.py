"""A metric of our own. Whatever is registered here can be named in the YAML files below this folder.

A metric is a function of gold and predicted, in this order. It returns a number, higher is better, or None where it
does not apply. With `input="executions"` it is given the executions, which hold the query's text next to the answer;
without, it is given the two answers as tables.
"""

from pytest_queryeval import METRICS
from pytest_queryeval.core.metric import metric


@metric(input="executions")
def brevity(gold, predicted):
    """How short the predicted query is: 1 if it is no longer than gold's, else gold's length divided by its own.

    None where gold is a stored answer, which has no query.
    """
    if gold.query is None or predicted.query is None:
        return None
    return min(1.0, len(gold.query.split()) / max(1, len(predicted.query.split())))


METRICS.register("brevity", brevity)
