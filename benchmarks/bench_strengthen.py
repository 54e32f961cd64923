"""Variants of databases: which wrong variants of queries they kill that the source does not.

`bench_strengthen.py tpch` takes the 22 queries of TPC-H and a few hundred generated rows. `bench_strengthen.py spider`
takes Spider's golds, those that are held out apart, and needs QUERYEVAL_CONFORMANCE. Databases are SQLite's, with the
second argument `duckdb` copies of them in DuckDB, where golds that do not run are left out. Each variant is checked: every
gold runs on it. Survivors that are equivalent and not recognised count as not killed. Times are of the processor.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections import defaultdict
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from bench_strength import load, spider_suite
from duckdb_copies import copy_to_duckdb

from pytest_queryeval.core.errors import GoldError
from pytest_queryeval.core.model import Case, Source
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.evaluation.strength.case_strength import CaseStrength, measure_strength
from pytest_queryeval.evaluation.strength.variants import Variant, build_variants
from pytest_queryeval.languages.sql.scripts import insert_rows
from pytest_queryeval.suites.suites import load_suites

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


def strengthen(name: str, cases: list[Case]) -> None:
    began = used()
    by_source: dict[str, list[CaseStrength]] = defaultdict(list)
    built: list[Variant] = []
    failing: list[str] = []
    broken = 0
    with Session() as session:
        for case in cases:
            try:
                found = measure_strength(case, session)
            except GoldError:
                failing.append(case.id)
                continue
            assert found is not None
            assert case.source is not None
            by_source[case.source.name].append(found)
        for strengths in by_source.values():
            for variant in build_variants(strengths, session):
                built.append(variant)
                broken += failing_golds([one.case for one in strengths], variant)
    every = [one for strengths in by_source.values() for one in strengths]
    killed, survivors = sum(len(one.killed) for one in every), sum(len(one.survivors) for one in every)
    by_variants = len({(case.id, mutant.query) for variant in built for case, mutant in variant.kills})
    print(f"{name}: {killed + survivors:,} wrong variants of {len(every):,} golds that are not known to be equivalent")
    print(f"  {killed:,} killed by the source, {by_variants:,} of the other {survivors:,} by {len(built)} variants")
    print(
        f"  together {(killed + by_variants) / (killed + survivors):.1%}, of the survivors {by_variants / survivors:.1%}"
    )
    rows = median(sum(map(len, variant.rows.values())) for variant in built)
    seconds = (used() - began) / len(every)
    print(f"  median rows of a variant {rows:g}; {broken} golds fail on a variant; {seconds:.2f} s a gold")
    if failing:
        print(f"  left out are {len(failing)} golds that do not run: {', '.join(failing)}")
    if os.environ.get("VERBOSE"):
        gone = {(case.id, mutant.query) for variant in built for case, mutant in variant.kills}
        for one in every:
            for mutant in one.survivors:
                if (one.case.id, mutant.query) not in gone:
                    print(f"    left: {one.case.id}: {mutant.operator}: {mutant.change}")


def failing_golds(cases: list[Case], variant: Variant) -> int:
    with tempfile.TemporaryDirectory() as folder, Session() as session:
        (Path(folder) / "variant.sql").write_text(variant.script, encoding="utf-8")
        engine = cases[0].source.engine if cases[0].source else ""
        source = Source(name="variant.sql", engine=engine, settings={"script": "variant.sql"}, folder=Path(folder))
        answers = [session.execute(case.golds[0], replace(case, source=source)) for case in cases]
    return sum(answer.error is not None for answer in answers)


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
                    *(each.isoformat() for each in dates),
                    random.choice(("MAIL", "SHIP", "AIR", "REG AIR")),
                )
            )
    inserts = (insert_rows(name, own, "sqlite") for name, own in {**rows, "orders": orders, "lineitem": lines}.items())
    return "\n".join([DDL, *inserts])


def used() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


if __name__ == "__main__":
    main()
