"""TPC-H moved from PostgreSQL to DuckDB: python benchmarks/tpch_migration.py QUERIES DATA

QUERIES is a file with the 22 queries as sqlglot's tests have them (tests/fixtures/optimizer/tpc-h/tpc-h.sql): of each two
statements the first, which is PostgreSQL's but for one type STRING. DATA has a CSV file for each table, as made by
`tpchgen-cli csv --scale-factor 0.1 --output-dir DATA`. Both databases have the types of the specification, and
PostgreSQL, a cluster of its own as the tests start it, the collation of en-US.

Prints what becomes of each query that sqlglot translates: its outcome, gold's rows, the seconds of gold and of the
translation, and where the answers differ, by the default comparison and by one without tolerances.
"""

import json
import sys
import tempfile
from pathlib import Path

import duckdb

from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.reports.story import problem_text
from pytest_queryeval.text.formatting import one_line

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from postgres import find_programs, running

TABLES = {
    "region": "r_regionkey integer primary key, r_name char(25), r_comment varchar(152)",
    "nation": "n_nationkey integer primary key, n_name char(25), n_regionkey integer, n_comment varchar(152)",
    "supplier": """s_suppkey integer primary key, s_name char(25), s_address varchar(40), s_nationkey integer,
        s_phone char(15), s_acctbal decimal(15, 2), s_comment varchar(101)""",
    "customer": """c_custkey integer primary key, c_name varchar(25), c_address varchar(40), c_nationkey integer,
        c_phone char(15), c_acctbal decimal(15, 2), c_mktsegment char(10), c_comment varchar(117)""",
    "part": """p_partkey integer primary key, p_name varchar(55), p_mfgr char(25), p_brand char(10), p_type varchar(25),
        p_size integer, p_container char(10), p_retailprice decimal(15, 2), p_comment varchar(23)""",
    "partsupp": """ps_partkey integer, ps_suppkey integer, ps_availqty integer, ps_supplycost decimal(15, 2),
        ps_comment varchar(199), primary key (ps_partkey, ps_suppkey)""",
    "orders": """o_orderkey integer primary key, o_custkey integer, o_orderstatus char(1), o_totalprice decimal(15, 2),
        o_orderdate date, o_orderpriority char(15), o_clerk char(15), o_shippriority integer, o_comment varchar(79)""",
    "lineitem": """l_orderkey integer, l_partkey integer, l_suppkey integer, l_linenumber integer,
        l_quantity decimal(15, 2), l_extendedprice decimal(15, 2), l_discount decimal(15, 2), l_tax decimal(15, 2),
        l_returnflag char(1), l_linestatus char(1), l_shipdate date, l_commitdate date, l_receiptdate date,
        l_shipinstruct char(25), l_shipmode char(10), l_comment varchar(44), primary key (l_orderkey, l_linenumber)""",
}
INDEXED = {"lineitem": ("l_partkey", "l_suppkey"), "orders": ("o_custkey",), "partsupp": ("ps_suppkey",)}
COMPARISONS = {"default": {}, "exact": {"numbers": {"rel": 0, "abs": 0}, "row_order": "strict"}}


def queries(file):
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if not line.lstrip().startswith("--")]
    statements = [statement for statement in "\n".join(lines).split(";") if statement.strip()]
    return [statement.strip().replace("AS STRING", "AS TEXT") for statement in statements[::2]]


def fill_postgres(cluster, data):
    cluster.sql(
        "create database tpch owner owner template template0 locale_provider icu icu_locale 'en-US'",
        database="postgres",
    )
    with cluster.connect("owner", "tpch") as connection:
        for name, columns in TABLES.items():
            connection.execute(f"create table {name} ({columns})")
            with connection.cursor().copy(f"copy {name} from stdin (format csv, header)") as copy:
                copy.write((data / f"{name}.csv").read_bytes())
            for column in INDEXED.get(name, ()):
                connection.execute(f"create index on {name} ({column})")
        connection.execute("analyze")


def fill_duckdb(file, data):
    with duckdb.connect(file) as connection:
        for name, columns in TABLES.items():
            connection.execute(f"create table {name} ({columns})")
            connection.execute(f"insert into {name} from read_csv(?, header = true)", [str(data / f"{name}.csv")])


def main(queries_file, data):
    golds = queries(Path(queries_file))
    with tempfile.TemporaryDirectory() as name, running(find_programs(), Path(name)) as cluster:
        Path(name).chmod(0o755)
        fill_postgres(cluster, Path(data))
        fill_duckdb(Path(name, "tpch.duckdb"), Path(data))
        for comparison, compare in COMPARISONS.items():
            suite = Path(name, f"{comparison}.queryeval.yaml")
            settings = {
                "kind": "sql",
                "source": {"duckdb": "tpch.duckdb"},
                "gold_source": {"sqlalchemy": cluster.url(database="tpch")},
                "timeout": 300,
                "compare": compare,
                "cases": [
                    {"id": f"q{number:02}", "gold": gold, "predicted": {"translate": "gold"}}
                    for number, gold in enumerate(golds, start=1)
                ],
            }
            suite.write_text(json.dumps(settings), encoding="utf-8")
            report = evaluate(load_cases(suite))
            print(f"{comparison}: {report['totals']['passed']} of {len(golds)} passed")
            for case in report["cases"]:
                seconds = [side["seconds"] if side else 0.0 for side in (case["gold"], case["predicted"])]
                times = " ".join(f"{second:7.3f} s" for second in seconds)
                rows = (case["gold"] or {}).get("row_count") or 0
                print(f"  {case['id']} {case['outcome']:7} {rows:6,} rows {times}  {one_line(problem_text(case), 200)}")
                for change in (case["difference"] or {}).get("changed", ())[:1]:
                    print(f"      {change}")


if __name__ == "__main__":
    main(*sys.argv[1:])
