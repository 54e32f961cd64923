"""How often the cause of a wrong answer is found, on mutants of Spider's golds and on real predictions, and what it costs.

Needs QUERYEVAL_CONFORMANCE. Each mutant is a gold query with one edit after which it has another answer; it is taken for
the prediction, and its cause should have the label of that edit: `python benchmarks/bench_causes.py [MUTANTS] [RUNS]`.
Repaired queries are run once more with sqlite3 alone, and their rows compared with gold's. The same is measured on the
SPARQL of ck25, with what causes cost at 30 % wrong answers: `python benchmarks/bench_causes.py sparql`. What a wrong answer
of 60 flag columns and 3,000 rows costs, by that of the same without causes, which should be at most 1.3:
`python benchmarks/bench_causes.py flags`. Causes of real predictions whose repaired query differs from gold on variants, which
`queryeval strengthen` made of Spider's golds: `python benchmarks/bench_causes.py variants FOLDER`.
"""

from __future__ import annotations

import json
import os
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlglot import exp, parse_one

from pytest_queryeval import load_cases
from pytest_queryeval.core.model import QueryOrAnswer, Source
from pytest_queryeval.core.table import Policy
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.strength import Mutant
from pytest_queryeval.features.strength.case_strength import is_right
from pytest_queryeval.features.strength.sparql import mutants as sparql_mutants
from pytest_queryeval.runs.evaluate import evaluate

REAL = ("dail_gpt4", "c3_chatgpt", "graphix_t5")
OPERATORS = {exp.GT: exp.GTE, exp.GTE: exp.GT, exp.LT: exp.LTE, exp.LTE: exp.LT, exp.EQ: exp.NEQ, exp.NEQ: exp.EQ}
AGGREGATES = {exp.Max: exp.Min, exp.Min: exp.Max, exp.Avg: exp.Sum, exp.Sum: exp.Avg}
SET_OPERATIONS = {exp.Union: exp.Intersect, exp.Intersect: exp.Except, exp.Except: exp.Union}
# Of operators of `queryeval strength` that make an error of one sort.
SPARQL_LABELS = {
    "pattern-dropped": "missing-pattern",
    "direction": "swapped",
    "path": "wrong-path",
    "filter-dropped": "missing-condition",
    "condition-dropped": "missing-condition",
    "having-dropped": "missing-having",
    "optional-required": "optional",
    "distinct": "missing-distinct",
    "value": "wrong-value",
    "aggregate": "wrong-aggregate",
    "connector": "wrong-connector",
    "comparison-boundary": "wrong-operator",
    "comparison-flip": "wrong-operator",
    "arithmetic": "wrong-operator",
    "grouping": "wrong-grouping",
    "order-direction": "wrong-order",
    "order-dropped": "missing-order",
    "limit": "wrong-limit",
}
Tables = dict[str, list[str]]


def main() -> None:
    if sys.argv[1:] == ["flags"]:
        with tempfile.TemporaryDirectory() as temporary:
            show_wide(Path(temporary))
        return
    conformance = Path(os.environ["QUERYEVAL_CONFORMANCE"]).resolve()
    if sys.argv[1:] == ["sparql"]:
        with tempfile.TemporaryDirectory() as temporary:
            show_sparql(conformance / "ck25", Path(temporary))
        return
    spider = conformance / "spider"
    if sys.argv[1:2] == ["variants"]:
        with tempfile.TemporaryDirectory() as temporary:
            show_on_variants(spider, Path(sys.argv[2]).resolve(), Path(temporary))
        return
    wanted, runs = (int(text) for text in (*sys.argv[1:], "1500", "3")[:2])
    records = {
        name: [json.loads(line) for line in (spider / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
        for name in REAL
    }
    with tempfile.TemporaryDirectory() as folder:
        show_mutants(spider, records[REAL[0]], wanted, Path(folder))
        wrong: list[dict[str, str]] = []
        right: list[dict[str, str]] = []
        for name in REAL:
            failed = show_real(spider, name, records[name], Path(folder))
            for number, record in enumerate(records[name]):
                (wrong if str(number) in failed else right).append(record)
        chance = random.Random(5)
        pairs = chance.sample(wrong, 310) + chance.sample(right, 724)
        chance.shuffle(pairs)
        show_cost(spider, pairs, runs, Path(folder))


def show_wide(folder: Path) -> None:
    """Print the CPU of one wrong answer over flags that are each set in half of the rows, with a cause and without."""
    chance, flags, number = random.Random(3), [f"f{place}" for place in range(60)], 3_000
    columns = [
        chance.sample([0, 1] * (number // 2), number) + chance.sample([0, 1] * (number // 2), number) for _ in flags
    ]
    with sqlite3.connect(folder / "flags.db") as connection:
        connection.execute(f"CREATE TABLE t (kind INTEGER, {', '.join(flags)})")
        rows = zip([0] * number + [1] * number, *columns, strict=True)
        connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * 61)})", rows)
    gold = f"SELECT {', '.join(flags)} FROM t WHERE kind = 1 AND f0 IN (0, 1) AND f1 < 2"
    queries = {
        "a wrong value": gold.replace("= 1", "= 0"),
        "no cause": f"SELECT {', '.join(flags)} FROM (SELECT * FROM t) AS x WHERE x.kind = 0 UNION ALL {gold} AND f2 > 5",
    }
    for what, predicted in queries.items():
        suite = f"kind: sql\nsource: flags.db\non_miss: xfail\ncases: [{{id: a, gold: '{gold}', predicted: '{predicted}'}}]\n"
        (folder / "a.queryeval.yaml").write_text(suite, encoding="utf-8")
        pairs = [[cpu_of_evaluate(folder, mode) for mode in ("auto", "off")] for _ in range(5)]
        with_causes, without = map(min, zip(*pairs, strict=True))
        print(
            f"60 flags, {what}: {with_causes / without:.2f} x ({with_causes:.2f} s of CPU, {without:.2f} s without causes)"
        )


def cpu_of_evaluate(folder: Path, mode: str) -> float:
    """Return the seconds of CPU of a run, with its child processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "pytest_queryeval", "evaluate", ".", "--cause", mode]
    subprocess.run(command, cwd=folder, check=False, capture_output=True)  # 1 where answers are wrong
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def show_mutants(spider: Path, records: list[dict[str, str]], wanted: int, folder: Path) -> None:
    pairs = []
    for record in records:
        with sqlite3.connect(spider / "databases" / f"{record['db_id']}.sqlite") as connection:
            gold = rows(connection, record["gold"])
            for label, mutant in mutants(record["gold"], tables_of(connection)):
                if gold is not None and (answer := rows(connection, mutant)) is not None and answer != gold:
                    pairs.append({**record, "predicted": mutant, "label": label})
    chosen = random.Random(7).sample(pairs, min(wanted, len(pairs)))
    report = evaluate(cases_of(chosen, spider, folder / "mutants"))
    right, by_label, missed = Counter[str](), Counter[str](), Counter[str]()
    verified = repaired = 0
    for case in report["cases"]:
        pair = chosen[int(case["id"])]
        if case["outcome"] != "failed":  # the same answer under the rules of execution_accuracy
            continue
        label = case["cause"]["edits"][0]["label"] if case["cause"] else "none"
        by_label[pair["label"]] += 1
        right[pair["label"]] += label == pair["label"]
        if label != pair["label"]:
            missed[f"{pair['label']} as {label}"] += 1
        if case["cause"] and case["cause"]["repaired_query"]:
            repaired += 1
            with sqlite3.connect(spider / "databases" / f"{pair['db_id']}.sqlite") as connection:
                verified += alike(
                    rows(connection, case["cause"]["repaired_query"], is_sorted=False),
                    rows(connection, pair["gold"], is_sorted=False),
                )
    print(
        f"{sum(by_label.values())} mutants of {len(by_label)} kinds: label right in {share(sum(right.values()), sum(by_label.values()))}"
    )
    print(f"repaired queries: {repaired}; rows as gold's in {verified}")
    for label in sorted(by_label):
        print(f"  {label:<22} {right[label]:>5} of {by_label[label]}")
    print(f"  most frequent misses: {missed.most_common(12)}")


def show_real(spider: Path, name: str, records: list[dict[str, str]], folder: Path) -> set[str]:
    """Print how many wrong answers have a cause, and return the ids of all wrong cases."""
    report = evaluate(cases_of(records, spider, folder / name))
    wrong = [case for case in report["cases"] if case["outcome"] == "failed" and case["predicted"] is not None]
    wrong = [case for case in wrong if case["predicted"] and not case["predicted"]["error"]]
    causes = [case["cause"] for case in wrong if case["cause"]]
    single = sum(len(cause["edits"]) == 1 for cause in causes)
    print(f"{name}: {len(wrong)} wrong answers, {share(len(causes), len(wrong))} with a cause, {single} of one edit")
    return {case["id"] for case in report["cases"] if case["outcome"] == "failed"}


def show_on_variants(spider: Path, variants: Path, folder: Path) -> None:
    """Print how many repaired queries of real predictions differ from gold on a variant of their database."""
    repaired_count = differing = 0
    with Session() as session:
        for name in REAL:
            lines = (spider / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
            cases = cases_of([json.loads(line) for line in lines], spider, folder / name)
            by_id = {case.id: case for case in cases}
            for entry in evaluate(cases)["cases"]:
                query = entry["cause"] and entry["cause"]["repaired_query"]
                if not query or entry["predicted"]["error"]:
                    continue
                repaired_count += 1
                case = by_id[entry["id"]]
                files = sorted(variants.glob(f"{Path(case.settings.source.name).stem}-*.sql"))
                differing += any(differs_on(file, case, query, session) for file in files)
    print(f"{repaired_count} repaired queries, {share(differing, repaired_count)} differ from gold on a variant")


def differs_on(file: Path, case: Any, query: str, session: Session) -> bool:
    source = Source(name=file.name, engine="sqlite", settings={"script": file.name}, folder=file.parent)
    case = replace(case, settings=replace(case.settings, source=source))
    gold = session.execute_cached(case.golds[0], case)
    execution = session.execute(QueryOrAnswer(query=query), case)
    return gold.error is None and not is_right(execution, [gold], case, session)


def show_sparql(ck25: Path, folder: Path) -> None:
    """Print how often the label of a mutant is right that answers otherwise, and causes of real predictions."""
    records = [json.loads(line) for line in (ck25 / "pairs.jsonl").read_text(encoding="utf-8").splitlines()]
    golds = dict.fromkeys(record["gold"] for record in records)
    mutants_of_golds = [
        {"gold": gold, "predicted": mutant.query, "label": sparql_label(mutant)}
        for gold in golds
        for mutant in sparql_mutants(gold, {}, Policy(), lambda _: None)
        if mutant.operator in SPARQL_LABELS and not mutant.equivalent
    ]
    for name, pairs in (("mutants", mutants_of_golds), ("real", records)):
        path = write_sparql_suite(ck25, pairs, folder / f"{name}.queryeval.yaml")
        wrong = [
            case
            for case in evaluate(load_cases(path))["cases"]
            if case["outcome"] == "failed" and case["predicted"] and not case["predicted"]["error"]
        ]
        named_cases = [case for case in wrong if case["cause"]]
        single = sum(len(case["cause"]["edits"]) == 1 for case in named_cases)
        print(
            f"{name}: {len(wrong)} wrong answers, {share(len(named_cases), len(wrong))} with a cause, {single} of one edit"
        )
        labels = [(pairs[int(case["id"])].get("label"), case["cause"]["edits"][0]["label"]) for case in named_cases]
        if name == "mutants":
            right = sum(label == expected for label, expected in labels)
            missed = Counter(f"{label} as {expected}" for label, expected in labels if label != expected)
            print(f"  label right in {share(right, len(named_cases))}; most frequent misses: {missed.most_common(8)}")

    show_sparql_cost(ck25, records, folder)


def show_sparql_cost(ck25: Path, records: list[dict[str, Any]], folder: Path) -> None:
    """Print what causes add to the CPU of a run in which 30 % of the answers are wrong, the others golds."""
    cost = folder / "cost"
    cost.mkdir()
    path = write_sparql_suite(ck25, records, cost / "a.queryeval.yaml")
    cases = [case for case in evaluate(load_cases(path), cause="off")["cases"] if case["outcome"] != "error"]
    wrong = [case for case in cases if case["outcome"] == "failed" and not case["predicted"]["error"]]
    right_cases = random.Random(1).choices(cases, k=len(wrong) * 7 // 3)
    pairs = [(case["gold"]["query"], case["predicted"]["query"]) for case in wrong]
    pairs += [(case["gold"]["query"], case["gold"]["query"] + "\n#") for case in right_cases]
    write_sparql_suite(ck25, [{"gold": gold, "predicted": predicted} for gold, predicted in pairs], path)
    off, auto = (min(cpu_of_evaluate(cost, mode) for _ in range(3)) for mode in ("off", "auto"))
    print(f"{len(pairs)} cases, {len(wrong)} wrong: {auto / off:.2f} x the CPU of a run without causes ({off:.1f} s)")


def write_sparql_suite(ck25: Path, pairs: list[dict[str, Any]], path: Path) -> Path:
    """Write a suite of pairs over the graph of ck25."""
    source = {"rdf": {"files": [str(file) for file in ck25.glob("*.ttl")], "engine": ["oxigraph", "rdflib"]}}
    cases = [
        {"id": str(number), "question": "?", "gold": pair["gold"], "predicted": pair["predicted"]}
        for number, pair in enumerate(pairs)
    ]
    path.write_text(json.dumps({"kind": "sparql", "source": source, "cases": cases}), encoding="utf-8")
    return path


def sparql_label(mutant: Mutant) -> str:
    """Return the label that the cause of a mutant should have, which leads back to gold."""
    before, _, after = mutant.change.partition(" → ")
    if mutant.operator == "value" and before.casefold() == after.casefold():
        return "value-case"
    if (mutant.operator == "distinct" and "added" in mutant.change) or "DISTINCT" in after.replace(before, ""):
        return "extra-distinct"
    if mutant.operator == "aggregate" and "DISTINCT" in before and "DISTINCT" not in after:
        return "missing-distinct"
    return SPARQL_LABELS[mutant.operator]


def show_cost(spider: Path, records: list[dict[str, str]], runs: int, folder: Path) -> None:
    """Print what causes add to the CPU of `queryeval evaluate` of real pairs, 30 % of them wrong.

    Runs with causes and without alternate, and the best of each counts.
    """
    cases_of(records, spider, folder / "cost")
    pairs = [[cpu_of_evaluate(folder / "cost", mode) for mode in ("auto", "off")] for _ in range(runs)]
    auto, off = map(min, zip(*pairs, strict=True))
    print(f"{len(records)} pairs: {auto / off:.2f} x the CPU of a run without causes ({off:.1f} s)")


def share(part: int, whole: int) -> str:
    return f"{part} ({part / whole:.1%})" if whole else "0"


def cases_of(pairs: list[dict[str, str]], spider: Path, folder: Path) -> Any:
    """Write a suite of these pairs, and return its cases."""
    folder.mkdir()
    cases = [
        {
            "id": str(number),
            "question": pair["question"],
            "source": {"sqlite": str(spider / "databases" / f"{pair['db_id']}.sqlite")},
            "gold": pair["gold"],
            "predicted": pair["predicted"],
        }
        for number, pair in enumerate(pairs)
    ]
    path = folder / "spider.queryeval.yaml"
    path.write_text(json.dumps({"kind": "sql", "cases": cases}), encoding="utf-8")
    return load_cases(path)


def tables_of(connection: sqlite3.Connection) -> Tables:
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return {name.lower(): [row[1] for row in connection.execute(f'PRAGMA table_info("{name}")')] for (name,) in names}


def rows(connection: sqlite3.Connection, query: str, *, is_sorted: bool = False) -> list[Any] | None:
    steps = iter(range(2_000))
    connection.set_progress_handler(lambda: next(steps, None) is None, 10_000)
    connection.text_factory = lambda text: text.decode(errors="replace")
    try:
        rows = connection.execute(query).fetchmany(20_000)
    except sqlite3.Error:
        return None
    return sorted(rows, key=repr) if is_sorted else rows


def alike(one: list[Any] | None, other: list[Any] | None) -> bool:
    """Return whether both have the same rows, whatever the order of rows and columns."""
    if one is None or other is None:
        return False
    return Counter(tuple(sorted(map(number, row))) for row in one) == Counter(
        tuple(sorted(map(number, row))) for row in other
    )


def number(cell: Any) -> str:
    return repr(round(float(cell), 6)) if isinstance(cell, int | float) else repr(cell)


def mutants(query: str, tables: Tables) -> Iterator[tuple[str, str]]:
    """Yield for each kind of edit one mutant of the query, with the label that its cause should have."""
    try:
        tree = parse_one(query, dialect="sqlite")
    except Exception:  # noqa: BLE001 - golds that sqlglot cannot read
        return
    for label, change in KINDS:
        copy = tree.copy()
        try:
            changed = change(copy, tables)
        except (AttributeError, IndexError, KeyError, StopIteration, TypeError):
            continue
        if changed:
            yield label, copy.sql(dialect="sqlite")


def change_value(tree: exp.Expr, tables: Tables) -> bool:
    literal = next(node for node in tree.find_all(exp.Literal) if isinstance(node.parent, exp.Predicate))
    literal.set("this", f"{literal.name}x" if literal.is_string else str(int(float(literal.name)) + 1))
    return True


def change_operator(tree: exp.Expr, tables: Tables) -> bool:
    node = next(node for node in tree.find_all(*OPERATORS) if node.find_ancestor(exp.Where, exp.Having))
    node.replace(OPERATORS[type(node)](**node.args))
    return True


def drop_condition(tree: exp.Expr, tables: Tables) -> bool:
    node = next(node for node in tree.find_all(exp.And) if node.find_ancestor(exp.Where))
    node.replace(node.left)
    return True


def add_condition(tree: exp.Expr, tables: Tables) -> bool:
    where = tree.find(exp.Where)
    column = next(where.find_all(exp.Column))
    where.set("this", exp.and_(where.this, exp.Like(this=column.copy(), expression=exp.Literal.string("%1%"))))
    return True


def change_connector(tree: exp.Expr, tables: Tables) -> bool:
    node = next(node for node in tree.find_all(exp.And, exp.Or) if node.find_ancestor(exp.Where))
    node.replace((exp.Or if isinstance(node, exp.And) else exp.And)(**node.args))
    return True


def drop_where(tree: exp.Expr, tables: Tables) -> bool:
    where = tree.find(exp.Where)
    return not isinstance(where.this, exp.Connector) and bool(where.pop())


def change_aggregate(tree: exp.Expr, tables: Tables) -> bool:
    node = next(node for node in tree.find_all(*AGGREGATES) if node.find_ancestor(exp.Order) is None)
    node.replace(AGGREGATES[type(node)](**node.args))
    return True


def drop_distinct(tree: exp.Expr, tables: Tables) -> bool:
    for node in tree.find_all(exp.Distinct):
        if isinstance(node.parent, exp.Count):
            node.replace(node.expressions[0])
        else:
            node.pop()
        return True
    return False


def add_distinct(tree: exp.Expr, tables: Tables) -> bool:
    node = next(tree.find_all(exp.Select))
    if not node.args.get("distinct"):
        node.set("distinct", exp.Distinct())
        return True
    return False


def another_column(tree: exp.Expr, column: exp.Column, tables: Tables) -> str:
    names = {source.alias_or_name.lower(): source.name.lower() for source in tree.find_all(exp.Table)}
    table = names[column.table.lower()] if column.table else next(iter(names.values()))
    used = {column.name.lower() for column in tree.find_all(exp.Column)}
    return next(name for name in tables[table] if name.lower() not in used)


def change_column(tree: exp.Expr, tables: Tables) -> bool:
    column = next(item for item in tree.expressions if isinstance(item, exp.Column))
    column.set("this", exp.to_identifier(another_column(tree, column, tables), quoted=False))
    return True


def drop_column(tree: exp.Expr, tables: Tables) -> bool:
    return len(tree.expressions) > 1 and bool(tree.expressions[-1].pop())


def add_column(tree: exp.Expr, tables: Tables) -> bool:
    column = next(item for item in tree.expressions if isinstance(item, exp.Column)).copy()
    column.set("this", exp.to_identifier(another_column(tree, column, tables), quoted=False))
    tree.append("expressions", column)
    return True


def flip_order(tree: exp.Expr, tables: Tables) -> bool:
    key = next(tree.find_all(exp.Ordered))
    key.set("desc", not key.args.get("desc"))
    return True


def drop_order(tree: exp.Expr, tables: Tables) -> bool:
    return bool(tree.find(exp.Order).pop())


def change_limit(tree: exp.Expr, tables: Tables) -> bool:
    amount = tree.find(exp.Limit).expression
    amount.set("this", str(int(amount.name) + 1))
    return True


def change_join_type(tree: exp.Expr, tables: Tables) -> bool:
    join = tree.find(exp.Join)
    join.set("side", "LEFT")
    return bool(join.args.get("on"))


def change_join_condition(tree: exp.Expr, tables: Tables) -> bool:
    column = tree.find(exp.Join).args["on"].find(exp.Column)
    column.set("this", exp.to_identifier(another_column(tree, column, tables), quoted=False))
    return True


def drop_join(tree: exp.Expr, tables: Tables) -> bool:
    return bool(tree.args["joins"][-1].pop())


def change_table(tree: exp.Expr, tables: Tables) -> bool:
    table = tree.args["from_"].this
    used = {column.name.lower() for column in tree.find_all(exp.Column)}
    named = {table.name.lower() for table in tree.find_all(exp.Table)}
    fits = (name for name, columns in tables.items() if name not in named and used <= {*map(str.lower, columns)})
    table.set("this", exp.to_identifier(next(fits)))
    return True


def drop_group_key(tree: exp.Expr, tables: Tables) -> bool:
    group = tree.args["group"]
    column = group.expressions[0]
    column.set("this", exp.to_identifier(another_column(tree, column, tables), quoted=False))
    return True


def drop_having(tree: exp.Expr, tables: Tables) -> bool:
    return bool(tree.find(exp.Having).pop())


def change_set_operation(tree: exp.Expr, tables: Tables) -> bool:
    node = tree.find(*SET_OPERATIONS)
    if node is not tree:
        return False
    changed = SET_OPERATIONS[type(node)](**{**node.args, "distinct": True})
    node.set("this", changed.this)
    node.__class__ = type(changed)
    return True


KINDS: tuple[tuple[str, Callable[[Any, Tables], bool]], ...] = (
    ("wrong-value", change_value),
    ("wrong-operator", change_operator),
    ("missing-condition", drop_condition),
    ("extra-condition", add_condition),
    ("wrong-connector", change_connector),
    ("missing-condition", drop_where),
    ("wrong-aggregate", change_aggregate),
    ("missing-distinct", drop_distinct),
    ("extra-distinct", add_distinct),
    ("wrong-column", change_column),
    ("missing-column", drop_column),
    ("extra-column", add_column),
    ("wrong-order", flip_order),
    ("missing-order", drop_order),
    ("wrong-limit", change_limit),
    ("wrong-join-type", change_join_type),
    ("wrong-join-condition", change_join_condition),
    ("missing-join", drop_join),
    ("wrong-table", change_table),
    ("wrong-grouping", drop_group_key),
    ("missing-having", drop_having),
    ("set-operation", change_set_operation),
)

if __name__ == "__main__":
    main()
