"""Golds that leave their answer open, each with every answer that it may give, on small tables with rows that tie.

What a gold may give is found without a database: the same is computed for each order in which a table may be read.
"""

import json
from collections import Counter
from itertools import chain, permutations, product
from random import Random
from typing import NamedTuple


class OpenGold(NamedTuple):
    query: str
    answers: list  # multisets of rows, each once
    width: int


def random_rows(random):
    """Draw two to five rows of i, their number, g, a group, k, a sort key with ties, and two values, v and w."""
    value = lambda *values: random.choice(values)  # noqa: E731
    return [
        (number, value("a", "b"), value(1, 1, 2), value("x", "y", "z", None), value(1, 2, 5, None))
        for number in range(random.randint(2, 5))
    ]


def by_key(rows, *, descending=False):
    return sorted(rows, key=lambda row: -row[2] if descending else row[2])


def groups_of(rows):
    return [[row for row in rows if row[1] == group] for group in dict.fromkeys(row[1] for row in rows)]


def sorts(engine, table, random):
    """Yield each sort of gold: the engines that run it, its query, and its answer for an order of the table's rows."""
    n, m, down = random.randint(1, 3), random.randint(0, 1), random.random() < 0.5
    way = "DESC" if down else "ASC"
    limited = f"SELECT * FROM {table} ORDER BY k {way} LIMIT {n} OFFSET {m}"
    chosen = lambda rows: by_key(rows, descending=down)[m : m + n]  # noqa: E731
    ranked = lambda rows: [(row, at) for group in groups_of(rows) for at, row in enumerate(by_key(group), 1)]  # noqa: E731
    every = ("sqlite", "duckdb", "postgres")
    collect = "group_concat" if engine == "sqlite" else "string_agg"

    yield every, f"SELECT g, v FROM ({limited}) AS t", lambda rows: [(row[1], row[3]) for row in chosen(rows)]
    yield every, f"WITH t AS ({limited}) SELECT v, w FROM t", lambda rows: [(row[3], row[4]) for row in chosen(rows)]
    yield (
        every,
        f"SELECT v FROM {table} WHERE i IN (SELECT i FROM ({limited}) AS t)",
        lambda rows: [(row[3],) for row in rows if row in chosen(rows)],
    )
    yield (
        every,
        f"SELECT i FROM {table} WHERE i NOT IN (SELECT i FROM ({limited}) AS t)",
        lambda rows: [(row[0],) for row in rows if row not in chosen(rows)],
    )
    yield (
        every,
        f"SELECT count(*), sum(w) FROM ({limited}) AS t",
        lambda rows: [(len(chosen(rows)), sum(row[4] or 0 for row in chosen(rows)) or None)],
    )
    yield (
        every,
        f"SELECT v FROM (SELECT DISTINCT v, k FROM {table} ORDER BY k {way} LIMIT {n}) AS t",
        lambda rows: [
            (v,)
            for v, _ in sorted(dict.fromkeys((row[3], row[2]) for row in rows), key=lambda it: it[1] * (1 - 2 * down))[
                :n
            ]
        ],
    )
    window = "OVER (PARTITION BY g ORDER BY k)"
    places, is_place = random.choice(
        [
            (f"r <= {n}", lambda at: at <= n),
            (f"r = {n}", lambda at: at == n),
            (f"r >= {n}", lambda at: at >= n),
            (f"r > {m}", lambda at: at > m),
            (f"r BETWEEN {n} AND 3", lambda at: n <= at <= 3),
            (f"r IN ({n}, 3)", lambda at: at in (n, 3)),
        ]
    )
    yield (
        every,
        f"SELECT g, v FROM (SELECT g, v, row_number() {window} AS r FROM {table}) AS t WHERE {places}",
        lambda rows: [(row[1], row[3]) for row, at in ranked(rows) if is_place(at)],
    )
    yield (
        every,
        f"SELECT i, r FROM (SELECT *, row_number() {window} AS r FROM {table}) AS t WHERE {places}",
        lambda rows: [(row[0], at) for row, at in ranked(rows) if is_place(at)],
    )
    both = f"first_value(v) {window} AS f, row_number() {window} AS r"
    yield (
        every,
        f"SELECT f, v FROM (SELECT *, {both} FROM {table}) AS t WHERE {places}",
        lambda rows: [
            (by_key(group)[0][3], row[3])
            for group in groups_of(rows)
            for at, row in enumerate(by_key(group), 1)
            if is_place(at)
        ],
    )
    yield (
        ("duckdb",),
        f"SELECT g, v FROM {table} QUALIFY row_number() {window} = {n}",
        lambda rows: [(row[1], row[3]) for row, at in ranked(rows) if at == n],
    )
    yield (
        every,
        f"SELECT (SELECT v FROM {table} AS u WHERE u.g = t.g ORDER BY k LIMIT 1 OFFSET {m}) AS v, g FROM {table} AS t",
        lambda rows: [
            (dict(enumerate(row[3] for row in by_key(group))).get(m), group[0][1])
            for group in groups_of(rows)
            for _ in group
        ],
    )
    yield (
        every,
        f"SELECT i FROM {table} WHERE g IN (SELECT g FROM {table} GROUP BY g ORDER BY count(*) LIMIT 1)",
        lambda rows: [(row[0],) for row in min(groups_of(rows), key=len)],
    )
    yield (
        every,
        f"SELECT i FROM {table} EXCEPT SELECT i FROM ({limited}) AS t",
        lambda rows: [(row[0],) for row in rows if row not in chosen(rows)],
    )
    yield (
        every,
        f"SELECT v AS g, first_value(v) {window} AS v FROM {table}",
        lambda rows: [(row[3], by_key(group)[0][3]) for group in groups_of(rows) for row in group],
    )
    yield (
        every,
        f"SELECT i, row_number() {window} AS r FROM {table}",
        lambda rows: [(row[0], at) for row, at in ranked(rows)],
    )
    yield (
        every,
        f"SELECT v, row_number() {window} AS r FROM {table}",
        lambda rows: [(row[3], at) for row, at in ranked(rows)],
    )
    yield (
        every,
        f"SELECT i, first_value(v) {window} AS f FROM {table}",
        lambda rows: [(row[0], by_key(group)[0][3]) for group in groups_of(rows) for row in group],
    )
    yield (
        ("sqlite",),
        f"SELECT g, v, w FROM {table} GROUP BY g",
        lambda rows: [(group[0][1], group[0][3], group[0][4]) for group in groups_of(rows)],
    )
    yield (
        ("sqlite",),
        f"SELECT g, v, max(k) FROM {table} GROUP BY g{random.choice(('', ' HAVING max(k) > 0'))}",
        lambda rows: [(it[1], it[3], it[2]) for group in groups_of(rows) for it in by_key(group, descending=True)[:1]],
    )
    yield ("sqlite",), f"SELECT * FROM {table} GROUP BY g", lambda rows: [group[0] for group in groups_of(rows)]
    yield (
        ("sqlite",),
        f"SELECT 'n' || i AS n, w FROM (SELECT i, w, min(k) FROM {table} GROUP BY g) AS t",
        lambda rows: [(f"n{it[0]}", it[4]) for group in groups_of(rows) for it in by_key(group)[:1]],
    )
    yield (
        ("duckdb", "postgres"),
        f"SELECT DISTINCT ON (g) g, v FROM {table} ORDER BY g, k",
        lambda rows: [
            (it[1], it[3])
            for group in sorted(groups_of(rows), key=lambda group: group[0][1])
            for it in by_key(group)[:1]
        ],
    )
    yield (
        ("duckdb",),
        f"SELECT g, arg_max(i, k) FROM {table} GROUP BY g",
        lambda rows: [(it[1], it[0]) for group in groups_of(rows) for it in by_key(group, descending=True)[:1]],
    )
    yield (
        ("duckdb",),
        f"SELECT 'n' || arg_max(i, k) AS n FROM {table} GROUP BY g",
        lambda rows: [(f"n{it[0]}",) for group in groups_of(rows) for it in by_key(group, descending=True)[:1]],
    )
    yield (
        ("duckdb",),
        f"SELECT g, last(v) AS f FROM {table} GROUP BY g",
        lambda rows: [(group[-1][1], group[-1][3]) for group in groups_of(rows)],
    )
    yield (
        ("duckdb",),
        f"SELECT g, first(v) AS f FROM {table} GROUP BY g",
        lambda rows: [(group[0][1], group[0][3]) for group in groups_of(rows)],
    )
    yield (
        ("duckdb",),
        f"SELECT g, arg_max([v, CAST(w AS TEXT)], k) AS p FROM {table} GROUP BY g",
        lambda rows: [
            (it[1], (it[3], None if it[4] is None else str(it[4])))
            for group in groups_of(rows)
            for it in by_key(group, descending=True)[:1]
        ],
    )
    top = f"SELECT v, w FROM {table} AS u WHERE u.g = t.g ORDER BY k LIMIT {n}"
    yield (
        ("duckdb", "postgres"),
        f"SELECT t.i, x.v, x.w FROM {table} AS t, LATERAL ({top}) AS x",
        lambda rows: [(row[0], it[3], it[4]) for group in groups_of(rows) for row in group for it in by_key(group)[:n]],
    )
    yield (
        every,
        f"SELECT i, (SELECT v FROM {table} AS u WHERE u.g = t.g ORDER BY k LIMIT 1) AS v FROM {table} AS t",
        lambda rows: [(row[0], by_key(group)[0][3]) for group in groups_of(rows) for row in group],
    )
    ranks = f"WITH r AS (SELECT i, g, v, row_number() {window} AS r FROM {table})"
    yield (
        every,
        f"{ranks} SELECT a.g, a.v, b.v AS w FROM r AS a JOIN r AS b ON a.g = b.g AND a.r = 1 AND b.r = {n}",
        lambda rows: [(it[0][1], it[0][3], it[n - 1][3]) for it in map(by_key, groups_of(rows)) if len(it) >= n],
    )
    yield (
        every,
        f"{ranks} SELECT g, max(CASE WHEN r = 1 THEN v END), max(CASE WHEN r = {n} THEN i END) FROM r GROUP BY g",
        lambda rows: [
            (it[0][1], it[0][3], it[n - 1][0] if len(it) >= n else None) for it in map(by_key, groups_of(rows))
        ],
    )
    yield (
        every,
        f"{ranks} SELECT t.v, t.w, r.r FROM r JOIN {table} AS t ON t.i = r.i WHERE {places}",
        lambda rows: [(row[3], row[4], at) for row, at in ranked(rows) if is_place(at)],
    )
    whole = f"{window[:-1]} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
    yield (
        every,
        f"SELECT DISTINCT g, nth_value(v, {n}) {whole} AS a, nth_value(i, {n + m}) {whole} AS b FROM {table}",
        lambda rows: [
            (
                it[0][1],
                dict(enumerate(row[3] for row in it)).get(n - 1),
                dict(enumerate(row[0] for row in it)).get(n + m - 1),
            )
            for it in map(by_key, groups_of(rows))
        ],
    )
    yield (
        every,
        f"SELECT i, row_number() {window} AS r, nth_value(i, {n}) {whole} AS f FROM {table}",
        lambda rows: [
            (row[0], at, dict(enumerate(row[0] for row in it)).get(n - 1))
            for it in map(by_key, groups_of(rows))
            for at, row in enumerate(it, 1)
        ],
    )
    name, total = random.choice([("sum", sum), ("min", min), ("max", max)])
    yield (
        every,
        f"SELECT {name}(w) AS w FROM (SELECT w FROM {table} ORDER BY k {way} LIMIT {n}) AS t",
        lambda rows: [
            (
                total(values)
                if (values := [it[4] for it in by_key(rows, descending=down)[:n] if it[4] is not None])
                else None,
            )
        ],
    )
    firsts = f"SELECT g, v, w FROM {table} ORDER BY k {way} LIMIT {n}"
    means = lambda values: sum(values) / len(values) if values else None  # noqa: E731
    known = lambda rows, at: [row[at] for row in rows if row[at] is not None]  # noqa: E731
    yield (
        every,
        f"SELECT avg(w) AS a, count(v) AS n FROM ({firsts}) AS t",
        lambda rows: [
            (means(known(by_key(rows, descending=down)[:n], 4)), len(known(by_key(rows, descending=down)[:n], 3)))
        ],
    )
    best = lambda rows: [by_key(group)[0] for group in groups_of(rows)]  # noqa: E731
    numbered = f"SELECT *, row_number() {window} AS r FROM {table}"
    yield (
        every,
        f"SELECT v, count(*) AS n FROM ({numbered}) AS t WHERE r = 1 GROUP BY v",
        lambda rows: [*Counter(row[3] for row in best(rows)).items()],
    )
    yield (
        every,
        f"WITH b AS (SELECT * FROM ({numbered}) AS t WHERE r = 1) SELECT count(DISTINCT v) AS n, max(w) AS w FROM b",
        lambda rows: [(len({*known(best(rows), 3)}), max(known(best(rows), 4), default=None))],
    )
    yield (
        every,
        f"WITH f AS ({firsts}) SELECT t.v, sum(f.w) AS w FROM f JOIN {table} AS t ON t.g = f.g GROUP BY t.v",
        lambda rows: [
            (v, sum(added) if (added := known([it for it in pairs if it[3] == v], 4)) else None)
            for pairs in [
                [(*one[:4], two[4]) for two in by_key(rows, descending=down)[:n] for one in rows if one[1] == two[1]]
            ]
            for v in dict.fromkeys(row[3] for row in pairs)
        ],
    )
    yield (
        ("duckdb", "postgres"),
        f"WITH d AS (SELECT DISTINCT ON (g) i FROM {table} ORDER BY g, k) SELECT i, w FROM d JOIN {table} USING (i)",
        lambda rows: [(one[0], two[4]) for one in best(rows) for two in rows if two[0] == one[0]],
    )
    for name, is_least in (("arg_max", False), ("min_by", True)):
        yield (
            ("duckdb",),
            f"SELECT g, {name}(i, k, {n}) AS f FROM {table} GROUP BY g",
            lambda rows, is_least=is_least: [
                (group[0][1], tuple(row[0] for row in by_key(group, descending=not is_least)[:n]))
                for group in groups_of(rows)
            ],
        )
    yield (
        ("duckdb",),
        f"SELECT g, arg_max(v, k, {n}) AS f FROM {table} GROUP BY g",
        lambda rows: [
            (group[0][1], tuple(known(by_key(group, descending=True), 3)[:n]) or None) for group in groups_of(rows)
        ],
    )
    yield (
        ("sqlite",),
        f"SELECT g, json_group_array(v) AS c FROM {table} GROUP BY g",
        lambda rows: [(it[0][1], json.dumps([row[3] for row in it], separators=(",", ":"))) for it in groups_of(rows)],
    )
    json_agg = random.choice(["json_agg", "jsonb_agg"])
    yield (
        ("postgres",),
        f"SELECT g, {json_agg}(v) AS c, {json_agg}(w) AS d FROM {table} GROUP BY g",
        lambda rows: [(it[0][1], *(tuple(row[at] for row in it) for at in (3, 4))) for it in groups_of(rows)],
    )
    joined_by = lambda text, rows: text.join(known(rows, 3)) or None  # noqa: E731
    joined = lambda values: ",".join(str(value) for value in values if value is not None) or None  # noqa: E731
    yield (
        every,
        f"SELECT g, {collect}(v, ',') AS c FROM {table} GROUP BY g",
        lambda rows: [(group[0][1], joined(row[3] for row in group)) for group in groups_of(rows)],
    )
    yield (
        every,
        f"SELECT g, {collect}(v, ',') AS c, {collect}(CAST(w AS TEXT), ',') AS d FROM {table} GROUP BY g",
        lambda rows: [
            (group[0][1], joined(row[3] for row in group), joined(row[4] for row in group)) for group in groups_of(rows)
        ],
    )
    yield (
        every,
        f"SELECT g, {collect}(v, ',') AS c FROM (SELECT * FROM {table} ORDER BY k) AS t GROUP BY g",
        lambda rows: [(group[0][1], joined(row[3] for row in by_key(group))) for group in groups_of(rows)],
    )
    sorted_rows = f"SELECT CAST(i AS TEXT) AS i, g, CAST(k AS TEXT) AS k FROM {table} ORDER BY k {way}"
    yield (
        every,
        f"WITH t AS ({sorted_rows}) SELECT g, {collect}(i, '') AS c, {collect}(k, '') AS d FROM t GROUP BY g",
        lambda rows: [
            (group[0][1], *("".join(str(row[place]) for row in by_key(group, descending=down)) for place in (0, 2)))
            for group in groups_of(rows)
        ],
    )
    yield (
        ("duckdb", "postgres"),
        f"SELECT {collect}(v, ',' ORDER BY k), {collect}(CAST(w AS TEXT), ',' ORDER BY k) FROM {table} GROUP BY g",
        lambda rows: [tuple(joined(row[at] for row in by_key(group)) for at in (3, 4)) for group in groups_of(rows)],
    )
    yield (
        ("duckdb",),
        f"SELECT g, first(v) AS f FROM (SELECT * FROM {table} ORDER BY k {way}) GROUP BY g",
        lambda rows: [(it[1], it[3]) for group in groups_of(rows) for it in by_key(group, descending=down)[:1]],
    )
    yield (
        every,
        f"SELECT i, row_number() OVER () AS r FROM (SELECT * FROM {table} ORDER BY k) AS t",
        lambda rows: [(row[0], at) for at, row in enumerate(by_key(rows), 1)],
    )
    yield (
        every,
        f"SELECT {collect}(v, ',') AS c, count(*) AS n FROM ({numbered}) AS t WHERE r = 1",
        lambda rows: [(joined(row[3] for row in best(rows)), len(groups_of(rows)))],
    )
    yield (
        every,
        f"SELECT {collect}(v, '') AS c FROM ({firsts}) AS t",
        lambda rows: [(joined_by("", by_key(rows, descending=down)[:n]),)],
    )
    collected = f"WITH c AS (SELECT g, {collect}(v, ',') AS s FROM {table} GROUP BY g)"
    text = lambda group: joined(row[3] for row in group)  # noqa: E731
    yield (
        every,
        f"{collected} SELECT s, g FROM c",
        lambda rows: [(text(group), group[0][1]) for group in groups_of(rows)],
    )
    yield (
        every,
        f"{collected} SELECT i, s FROM {table} JOIN c ON c.g = {table}.g",
        lambda rows: [(row[0], text(group)) for group in groups_of(rows) for row in group],
    )
    yield (
        every,
        f"{collected} SELECT one.s, two.s AS t FROM c AS one JOIN c AS two ON one.g = two.g",
        lambda rows: [(text(group), text(group)) for group in groups_of(rows)],
    )
    yield (
        every,
        f"{collected} SELECT g, s FROM c WHERE s > 'x,y'",
        lambda rows: [(it[0][1], text(it)) for it in groups_of(rows) if (text(it) or "") > "x,y"],
    )
    yield (
        every,
        f"{collected} SELECT s, substr(s, 1, 1) AS t FROM c",
        lambda rows: [(text(group), text(group) and text(group)[0]) for group in groups_of(rows)],
    )
    yield (
        every,
        f"SELECT i, (SELECT {collect}(u.v, ',') FROM {table} AS u WHERE u.g = t.g) AS s FROM {table} AS t",
        lambda rows: [(row[0], text(group)) for group in groups_of(rows) for row in group],
    )

    read = f"FROM {table} WHERE g IN (SELECT g FROM {table} ORDER BY k {way} LIMIT {n})"
    firsts = lambda rows: by_key(rows, descending=down)[:n]  # noqa: E731
    among = lambda rows: [row for row in rows if row[1] in {it[1] for it in firsts(rows)}]  # noqa: E731
    yield every, f"SELECT v, w {read}", lambda rows: [(row[3], row[4]) for row in among(rows)]
    yield (
        every,
        f"SELECT count(*) AS n, max(i) - min(i) AS d {read}",
        lambda rows: [(len(it := among(rows)), max(row[0] for row in it) - min(row[0] for row in it))],
    )
    yield (
        every,
        f"SELECT max(i) - min(i) AS d, sum(w) AS w FROM (SELECT * FROM {table} ORDER BY k {way} LIMIT {n}) AS t",
        lambda rows: [
            (
                max(row[0] for row in firsts(rows)) - min(row[0] for row in firsts(rows)),
                sum(values) if (values := known(firsts(rows), 4)) else None,
            )
        ],
    )
    yield (
        every,
        f"SELECT t.v, s.w FROM ({limited}) AS s JOIN {table} AS t ON t.g = s.g",
        lambda rows: [(row[3], it[4]) for it in chosen(rows) for row in rows if row[1] == it[1]],
    )
    at_first = f"SELECT * FROM ({numbered}) AS n WHERE r = 1"
    yield (
        every,
        f"SELECT b.i, {collect}(t.v, ',') AS c FROM {table} AS t JOIN ({at_first}) AS b ON t.g = b.g GROUP BY b.i",
        lambda rows: [
            (one[0], joined(row[3] for row in group)) for group in groups_of(rows) for one in by_key(group)[:1]
        ],
    )
    yield (
        ("sqlite",),
        f"SELECT g, v FROM {table} GROUP BY g HAVING v > 'x'",
        lambda rows: [(it[0][1], it[0][3]) for it in groups_of(rows) if (it[0][3] or "") > "x"],
    )


def open_gold(engine, table, rows, random):
    """Draw a gold that the engine runs, with all its answers."""
    drawn = [(query, answer) for engines, query, answer in sorts(engine, table, random) if engine in engines]
    while True:
        query, answer = random.choice(drawn)
        # DISTINCT ON orders its rows by the group; all other answers have no order.
        answers = {frozenset(Counter(answer(list(order))).items()): answer(list(order)) for order in permutations(rows)}
        if row := next(chain.from_iterable(answers.values()), ()):
            return OpenGold(query, list(answers.values()), len(row))


def written(value):
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


def drawn_cases(engine, number, seed):
    """Return a script that makes tables, a case for each of them, and by its id the gold and the predicted rows."""
    random = Random(seed)
    script, cases, drawn = [], [], {}
    for table in (f"t{place}" for place in range(number)):
        rows = random_rows(random)
        script.append(f"create table {table} (i integer, g varchar(9), k integer, v varchar(9), w integer);")
        script += [f"insert into {table} values ({', '.join(map(written, row))});" for row in rows]
        gold = open_gold(engine, table, rows, random)
        answer = predicted_rows(gold, random)
        drawn[table] = gold, answer
        predicted = {"columns": [f"c{place}" for place in range(gold.width)], "rows": answer}
        cases.append({"id": table, "question": "q", "gold": gold.query, "predicted_table": predicted})
    return "\n".join(script), cases, drawn


def predicted_rows(gold, random):
    """Draw rows that gold may give, half of the time with one cell changed to another one of its column."""
    rows = list(random.choice(gold.answers))
    if rows and random.random() < 0.5:
        at, place = random.randrange(len(rows)), random.randrange(len(rows[0]))
        cells = [row[place] for answer in gold.answers for row in answer]
        rows[at] = tuple(random.choice(cells) if column == place else cell for column, cell in enumerate(rows[at]))
    return rows


def may_give(gold, rows):
    """Return whether the rows are an answer that gold may give, in any order of rows and columns."""
    width = len(rows[0]) if rows else 0
    wanted = Counter(rows)
    return any(
        Counter(tuple(row[place] for place in order) for row in answer) == wanted
        for answer, order in product(gold.answers, permutations(range(width)))
        if len(answer) == len(rows)
    )
