"""Dataset ids, with and without versions."""

from __future__ import annotations

import re
from collections.abc import Callable

from pytest_queryeval.core.selection import Selection

_VERSIONED = re.compile(r"(.+)\([^()]+\)", re.DOTALL)


def dataset_ids(selection: Selection) -> tuple[str, ...]:
    """The ids of the selection's datasets, each once, whether terms of them are selected or not."""
    return tuple(dict.fromkeys(dataset.id for dataset in selection.datasets))


def as_gold_says(gold: Selection) -> Callable[[str], str]:
    """A function from a dataset id to the id that gold has for it, or the same id where gold has none.

    Gold's `A:B` stands for all its versions, as `A:B(9.0.0)`, but for one that gold has itself; an id of gold's with
    a version stands for nothing else.
    """
    known = set(dataset_ids(gold))

    def said(dataset: str) -> str:
        versioned = None if dataset in known else _VERSIONED.fullmatch(dataset)
        return versioned[1] if versioned and versioned[1] in known else dataset

    return said
