"""Questions to SQL by a few rules: words of the question pick columns, and the columns pick the tables.

It is not a model, but a system under test like any other: right as far as its rules reach, and wrong beyond.
"""

import re
from itertools import pairwise

TABLE_OF = {"kind": "tree", "plot": "tree", "planted": "tree", "crew": "harvest", "kilos": "harvest"}
COLUMN_OF = {"kinds": "kind", "plots": "plot", "crews": "crew", "weight": "kilos", "fruit": "kilos"}
KIND_OF = {"apples": "apple", "pears": "pear", "cherries": "cherry", "plums": "plum"}
KINDS = set(KIND_OF.values())
CREWS = {"red", "blue", "green", "white"}
AGGREGATES = {"average": "avg", "heaviest": "max", "lightest": "min"}
YEARS = {"before": "<", "after": ">", "since": ">="}


def translate(case):
    """The query for a case; an empty text, which counts as a failed prediction, where no rule fits."""
    words = re.findall(r"[a-z]+|\d+", f"{case.question} {case.evidence}".lower())
    selected = wanted(words)
    if not selected:
        return ""
    group = column_after({"each", "every", "per"}, words)
    filters = [*kinds(words), *crews(words), *years(words)]
    parts = ["SELECT", f"{group}, {selected}" if group else selected]
    parts += ["FROM", tables(words, [group, selected, *filters])]
    parts += ["WHERE", " AND ".join(filters)] if filters else []
    parts += ["GROUP BY", group] if group else []
    return " ".join(parts)


def wanted(words):
    """What is asked for: "how many", an aggregate of kilos, or "which" of a column."""
    column = column_after({"many", "much"}, words)
    if column == "kilos":
        return "sum(kilos)"
    if "many" in words:
        return "count(*)"
    for word in words:
        if word in AGGREGATES:
            return f"{AGGREGATES[word]}(kilos)"
    column = column_after({"which"}, words)
    return f"DISTINCT {column}" if column else ""


def column_after(starts, words):
    """The column that is named right after one of the words `starts`."""
    for word, following in pairwise(words):
        column = COLUMN_OF.get(following, following)
        if word in starts and column in TABLE_OF:
            return column
    return ""


def kinds(words):
    """A condition for each kind of tree that is named."""
    return [f"kind = '{kind}'" for kind in (KIND_OF.get(word, word) for word in words) if kind in KINDS]


def crews(words):
    """A condition for each crew that is named."""
    return [f"crew = '{word}'" for word in words if word in CREWS]


def years(words):
    """A condition for "before 2010" and its like."""
    return [f"planted {YEARS[word]} {year}" for word, year in pairwise(words) if word in YEARS and year.isdigit()]


def tables(words, parts):
    """The tables of all columns in the parts of a query, joined; without any, the table that is named."""
    text = " ".join(parts)
    used = {table for column, table in TABLE_OF.items() if re.search(rf"\b{column}\b", text)}
    if "count(*)" in parts and used != {"tree"}:
        used.add("tree" if "trees" in words else "harvest")
    return "harvest JOIN tree USING (tree_id)" if len(used) == 2 else min(used, default="tree")
