"""Variants of databases: which mutants of queries they kill that the source does not.

`bench_strengthen.py tpch` takes the 22 queries of TPC-H and a few hundred generated rows. `bench_strengthen.py spider`
takes Spider's golds, those that are held out apart, and needs QUERYEVAL_CONFORMANCE. Databases are SQLite's, with the
second argument `duckdb` copies of them in DuckDB, where golds that do not run are left out. `bench_strengthen.py imported`
takes the same golds as `queryeval import spider` writes them, with their `db_schema`; names of databases behind it choose
some. Each variant is checked: every gold runs on it, no row of it breaks a constraint of its SQLite source, and every
mutant that is called equivalent answers as gold on it and on the source. Survivors that are equivalent and not recognised
count as not killed. Times are of the processor.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from bench_strength import load, spider_suite
from duckdb_copies import copy_to_duckdb

from pytest_queryeval.cli import main as main_command
from pytest_queryeval.core.errors import GoldError, SourceError
from pytest_queryeval.core.model import Case, QueryOrAnswer, Source
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.strength.case_strength import CaseStrength, is_right, measure_strength
from pytest_queryeval.features.strength.sql.candidates import insert_statement
from pytest_queryeval.features.strength.strengthen_command import Variant, build_variants
from pytest_queryeval.suites import load_suites

HELD_OUT = "frozen-2026-11-22"
QUERIES = Path(__file__).with_name("tpch_queries.sql")
DDL = """
CREATE TABLE region (r_regionkey INTEGER PRIMARY KEY, r_name TEXT NOT NULL);
CREATE TABLE nation (n_nationkey INTEGER PRIMARY KEY, n_name TEXT NOT NULL,
  n_regionkey INTEGER NOT NULL REFERENCES region (r_regionkey));
CREATE TABLE supplier (s_suppkey INTEGER PRIMARY KEY, s_name TEXT NOT NULL, s_address TEXT NOT NULL,
  s_nationkey INTEGER NOT NULL REFERENCES nation (n_nationkey), s_phone TEXT NOT NULL, s_acctbal DOUBLE NOT NULL,
  s_comment TEXT NOT NULL);
CREATE TABLE part (p_partkey INTEGER PRIMARY KEY, p_name TEXT NOT NULL, p_mfgr TEXT NOT NULL, p_brand TEXT NOT NULL,
  p_type TEXT NOT NULL, p_size INTEGER NOT NULL, p_container TEXT NOT NULL);
CREATE TABLE partsupp (ps_partkey INTEGER NOT NULL REFERENCES part (p_partkey),
  ps_suppkey INTEGER NOT NULL REFERENCES supplier (s_suppkey), ps_availqty INTEGER NOT NULL,
  ps_supplycost DOUBLE NOT NULL, PRIMARY KEY (ps_partkey, ps_suppkey));
CREATE TABLE customer (c_custkey INTEGER PRIMARY KEY, c_name TEXT NOT NULL, c_address TEXT NOT NULL,
  c_nationkey INTEGER NOT NULL REFERENCES nation (n_nationkey), c_phone TEXT NOT NULL, c_acctbal DOUBLE NOT NULL,
  c_mktsegment TEXT NOT NULL);
CREATE TABLE orders (o_orderkey INTEGER PRIMARY KEY, o_custkey INTEGER NOT NULL REFERENCES customer (c_custkey),
  o_orderstatus TEXT NOT NULL, o_totalprice DOUBLE NOT NULL, o_orderdate TEXT NOT NULL, o_orderpriority TEXT NOT NULL,
  o_shippriority INTEGER NOT NULL, o_comment TEXT NOT NULL);
CREATE TABLE lineitem (l_orderkey INTEGER NOT NULL REFERENCES orders (o_orderkey), l_linenumber INTEGER NOT NULL,
  l_partkey INTEGER NOT NULL, l_suppkey INTEGER NOT NULL, l_quantity DOUBLE NOT NULL, l_extendedprice DOUBLE NOT NULL,
  l_discount DOUBLE NOT NULL, l_tax DOUBLE NOT NULL, l_returnflag TEXT NOT NULL, l_linestatus TEXT NOT NULL,
  l_shipdate TEXT NOT NULL, l_commitdate TEXT NOT NULL, l_receiptdate TEXT NOT NULL, l_shipmode TEXT NOT NULL,
  PRIMARY KEY (l_orderkey, l_linenumber),
  FOREIGN KEY (l_partkey, l_suppkey) REFERENCES partsupp (ps_partkey, ps_suppkey));
"""
REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = {"KENYA": 0, "BRAZIL": 1, "CANADA": 1, "INDIA": 2, "FRANCE": 3, "GERMANY": 3, "SAUDI ARABIA": 4}


def main() -> None:
    name, engine = (*sys.argv[1:], "sqlite")[:2]
    with tempfile.TemporaryDirectory() as folder:
        if name == "imported":
            strengthen("Spider, imported", imported_cases(Path(folder), databases=sys.argv[2:]))
            return
        if name == "tpch":
            strengthen("TPC-H", tpch_cases(Path(folder), engine))
            return
        spider = Path(os.environ["QUERYEVAL_CONFORMANCE"]).resolve() / "spider"
        cases = load(
            Path(folder), spider_suite(spider) if engine == "sqlite" else spider_in_duckdb(spider, Path(folder))
        )
        ids = list(range(len(cases)))
        Random(HELD_OUT).shuffle(ids)
        for name, part in (("held out", sorted(ids[:345])), ("developed on", sorted(ids[345:]))):
            strengthen(f"Spider, {name}", [cases[number] for number in part])


def spider_in_duckdb(spider: Path, folder: Path) -> dict[str, Any]:
    suite = spider_suite(spider)
    for source in {case["source"] for case in suite["cases"]}:
        copy_to_duckdb(Path(source), folder / f"{Path(source).stem}.duckdb")
    cases = [{**case, "source": f"{Path(case['source']).stem}.duckdb"} for case in suite["cases"]]
    return {**suite, "cases": cases}


def imported_cases(folder: Path, databases: Collection[str]) -> list[Case]:
    """Import Spider's golds as a user does; of all databases where none is given."""
    spider = Path(os.environ["QUERYEVAL_CONFORMANCE"]).resolve() / "spider"
    with (spider / "graphix_t5.jsonl").open(encoding="utf-8") as file:
        pairs = [json.loads(line) for line in file]
    records = [
        {"db_id": pair["db_id"], "question": pair["question"], "query": pair["gold"]}
        for pair in pairs
        if not databases or pair["db_id"] in databases
    ]
    (folder / "dev.json").write_text(json.dumps(records), encoding="utf-8")
    shutil.copy(spider / "tables.json", folder)
    arguments = ["import", "spider", str(folder / "dev.json"), "--databases", str(spider / "databases")]
    assert main_command([*arguments, "-o", str(folder / "suites")]) == 0
    (loaded,) = load_suites(folder / "suites", require_prediction=False)
    return list(loaded.cases)


def strengthen(name: str, cases: list[Case]) -> None:
    began = used()
    by_source: dict[str, list[CaseStrength]] = defaultdict(list)
    built: list[Variant] = []
    failing: list[str] = []
    failures: Counter[str] = Counter()
    with Session() as session:
        for case in cases:
            try:
                found = measure_strength(case, session)
            except GoldError:
                failing.append(case.id)
                continue
            assert found is not None
            assert case.settings.source is not None
            by_source[case.settings.source.name].append(found)
        for strengths in by_source.values():
            failures["equivalent on the source"] += len(differing(strengths, None, session))
            for variant in variants_of(strengths, session):
                built.append(variant)
                failures.update(check_variant(strengths, variant))
    strengths_of_all = [strength for strengths in by_source.values() for strength in strengths]
    killed, survivors = (
        sum(len(strength.killed) for strength in strengths_of_all),
        sum(len(one.survivors) for one in strengths_of_all),
    )
    by_variants = len({(case.id, mutant.query) for variant in built for case, mutant in variant.kills})
    print(
        f"{name}: {killed + survivors:,} mutants of {len(strengths_of_all):,} golds that are not known to be equivalent"
    )
    print(f"  {killed:,} killed by the source, {by_variants:,} of the other {survivors:,} by {len(built)} variants")
    print(
        f"  together {(killed + by_variants) / (killed + survivors):.1%}, of the survivors {by_variants / survivors:.1%}"
    )
    rows = median(sum(len(table.rows) for table in variant.tables.values()) for variant in built)
    seconds = (used() - began) / len(strengths_of_all)
    print(f"  median rows of a variant {rows:g}; {failures['golds']} golds fail on a variant; {seconds:.2f} s a gold")
    print(f"  {failures['constraints']} constraints of a source are broken by a variant")
    print(
        f"  of {sum(len(strength.equivalent) for strength in strengths_of_all):,} mutants that are called equivalent, "
        f"{failures['equivalent on the source']} differ from gold on the source, "
        f"{failures['equivalent']} on a variant"
    )
    if failing:
        print(f"  left out are {len(failing)} golds that do not run: {', '.join(failing)}")
    if os.environ.get("VERBOSE"):
        gone = {(case.id, mutant.query) for variant in built for case, mutant in variant.kills}
        for one in strengths_of_all:
            for mutant in one.survivors:
                if (one.case.id, mutant.query) not in gone:
                    print(f"    left: {one.case.id}: {mutant.operator}: {mutant.change}")


def variants_of(strengths: list[CaseStrength], session: Session) -> Iterator[Variant]:
    """Yield the variants of a source, none of one that has none."""
    try:
        yield from build_variants(strengths, session)
    except SourceError as error:
        print(f"  no variants of a source: {error}")


def check_variant(strengths: list[CaseStrength], variant: Variant) -> Counter[str]:
    """Count golds that fail on a variant, constraints of the source that it breaks, and equivalent mutants that differ."""
    source = strengths[0].case.settings.source
    assert source is not None
    with tempfile.TemporaryDirectory() as folder, Session() as session:
        (Path(folder) / "variant.sql").write_text(variant.script, encoding="utf-8")
        settings = {"script": "variant.sql"}
        there = Source(name="variant.sql", engine=source.engine, settings=settings, folder=Path(folder))
        cases = [on_source(strength.case, there) for strength in strengths]
        answers = [session.execute(case.golds[0], case) for case in cases]
        counts = Counter(golds=sum(answer.error is not None for answer in answers))
        counts["equivalent"] = len(differing(strengths, there, session))
    if source.engine == "sqlite":
        broken = [*broken_constraints(source, variant.script)]
        counts["constraints"] = len(broken)
        for constraint in broken if os.environ.get("VERBOSE") else ():
            print(f"    broken: {source.name}: {constraint}")
    return counts


def on_source(case: Case, source: Source) -> Case:
    return replace(case, settings=replace(case.settings, source=source))


def differing(strengths: list[CaseStrength], source: Source | None, session: Session) -> list[str]:
    """Return the mutants that are called equivalent and do not answer as gold on another source, or on their own."""
    rows = []
    for strength in strengths:
        case = strength.case if source is None else on_source(strength.case, source)
        golds = [session.execute_cached(gold, case) for gold in case.golds]
        for mutant in strength.equivalent:
            if not is_right(session.execute(QueryOrAnswer(query=mutant.query), case), golds, case, session):
                rows.append(mutant.query)
                if os.environ.get("VERBOSE"):
                    print(f"    not equivalent: {case.id}: {mutant.change} ({mutant.equivalent}): {mutant.query}")
    return rows


def broken_constraints(source: Source, script: str) -> Iterator[str]:
    """Yield what SQLite says where rows of a variant go into the tables as the source declares them.

    Foreign keys that rows of the source break are none of its constraints.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "source.db"
        if "path" in source.settings:
            shutil.copy(source.folder / source.settings["path"], path)
        else:
            with closing(sqlite3.connect(path)) as database:
                database.executescript((source.folder / source.settings["script"]).read_text(encoding="utf-8"))
        with closing(sqlite3.connect(path)) as copy, closing(sqlite3.connect(":memory:")) as variant:
            variant.executescript(script)
            tables_of_copy = copy.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            )
            tables = [table for (table,) in tables_of_copy]
            keys = [
                query for table in tables for query in orphans(copy, table) if not copy.execute(query).fetchone()[0]
            ]
            for table in tables:
                copy.execute(f'DELETE FROM "{table}"')
            for table in tables:
                for row in variant.execute(f'SELECT * FROM "{table}"'):
                    try:
                        copy.execute(f'INSERT INTO "{table}" VALUES ({", ".join("?" * len(row))})', row)
                    except sqlite3.IntegrityError as error:
                        yield str(error)
            yield from (query for query in keys if copy.execute(query).fetchone()[0])


def orphans(database: sqlite3.Connection, table: str) -> Iterator[str]:
    """Yield for each foreign key the query for the number of its rows without a partner, as foreign_key_check counts."""
    keys: dict[int, list[tuple[str, str, str]]] = defaultdict(list)
    for number, _, other, own, referred, *_ in database.execute(f'PRAGMA foreign_key_list("{table}")'):
        keys[number].append((other, own, referred))
    for pairs in keys.values():
        other = pairs[0][0]
        primary = [name for _, name, *_, place in database.execute(f'PRAGMA table_info("{other}")') if place]
        matches = " AND ".join(
            f'there."{referred or primary[at]}" = here."{own}"' for at, (_, own, referred) in enumerate(pairs)
        )
        refers = " AND ".join(f'here."{own}" IS NOT NULL' for _, own, _ in pairs)
        yield (
            f'SELECT count(*) FROM "{table}" AS here WHERE {refers} '
            f'AND NOT EXISTS (SELECT * FROM "{other}" AS there WHERE {matches})'
        )


def tpch_cases(folder: Path, engine: str) -> list[Case]:
    (folder / "tpch.sql").write_text(tpch_script(Random(22)), encoding="utf-8")
    queries = QUERIES.read_text(encoding="utf-8").split("\n-- ")[1:]
    cases = []
    for query in queries:
        number, _, gold = query.partition("\n")
        cases.append({"id": f"q{number}", "question": "?", "gold": gold.strip()})
    suite = {"kind": "sql", "source": {engine: {"script": "tpch.sql"}}, "timeout": 1, "cases": cases}
    (folder / "tpch.queryeval.yaml").write_text(json.dumps(suite), encoding="utf-8")
    (loaded,) = load_suites(folder, require_prediction=False)
    return list(loaded.cases)


def tpch_script(random: Random) -> str:
    def day(first: date = date(1993, 1, 1), days: int = 1900) -> date:
        return first + timedelta(days=random.randrange(days))

    def phone() -> str:
        return f"{random.choice((13, 31, 23, 29, 40, 18))}-{random.randrange(100, 999)}"

    def money(most: int) -> float:
        return round(random.uniform(0, most), 2)

    types = ("ECONOMY BRASS", "PROMO BRASS", "MEDIUM STEEL", "PROMO STEEL", "ECONOMY TIN")
    comments = ("quick", "Customer insists Complaints", "slow")
    rows = {
        "region": list(enumerate(REGIONS)),
        "nation": [(number, name, region) for number, (name, region) in enumerate(NATIONS.items())],
        "supplier": [
            (n, f"Supplier {n}", f"Street {n}", n % 7, phone(), money(9_000), random.choice(comments)) for n in range(9)
        ],
        "part": [
            (
                *(n, random.choice(("forest green", "green tin", "red", "forest")), f"Mfgr {n % 3}"),
                *(random.choice(("Brand#12", "Brand#23", "Brand#45")), random.choice(types)),
                *(random.choice((1, 3, 5, 9, 14, 23, 36, 49)), random.choice(("SM CASE", "MED BOX", "MED BAG"))),
            )
            for n in range(15)
        ],
        "partsupp": [
            (n % 15, n * 2 % 9 if n < 15 else (n * 2 + 1) % 9, random.randrange(1, 90), money(100)) for n in range(30)
        ],
        "customer": [
            (n, f"Customer {n}", f"Road {n}", n % 7, phone(), money(9_000), random.choice(("BUILDING", "MACHINERY")))
            for n in range(15)
        ],
    }
    orders, lines = [], []
    pairs = [row[:2] for row in rows["partsupp"]]
    for n in range(45):
        ordered = day()
        priority = random.choice(("1-URGENT", "2-HIGH", "3-MEDIUM", "5-LOW"))
        comment = random.choice(("none", "special packaging requests", "special"))
        orders.append((n, n % 12, random.choice("FO"), money(9_000), ordered.isoformat(), priority, 0, comment))
        for number in range(random.randrange(1, 6)):
            shipped, committed = (ordered + timedelta(days=random.randrange(1, 100)) for _ in range(2))
            dates = (shipped, committed, shipped + timedelta(days=random.randrange(1, 30)))
            lines.append(
                (
                    *(n, number, *random.choice(pairs), random.randrange(1, 50), money(9_000)),
                    *(random.randrange(11) / 100, random.randrange(9) / 100, random.choice("RAN"), random.choice("FO")),
                    *(day.isoformat() for day in dates),
                    random.choice(("MAIL", "SHIP", "AIR", "REG AIR")),
                )
            )
    inserts = (
        insert_statement(name, own, "sqlite") for name, own in {**rows, "orders": orders, "lineitem": lines}.items()
    )
    return "\n".join([DDL, *inserts])


def used() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


if __name__ == "__main__":
    main()
