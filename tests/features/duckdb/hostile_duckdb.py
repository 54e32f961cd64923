"""Statements that no model should write for DuckDB, and the kinds of failure they may end in."""

from __future__ import annotations

from hostile_sql import DOUBLING, ENDLESS, TWENTY_CONCERTS

WRITES = {
    "insert": "insert into concerts values (9, 'x', 1.0)",
    "insert returning": "insert into concerts values (9, 'x', 1.0) returning id",
    "insert or replace": "insert or replace into concerts values (1, 'x', 1.0)",
    "update": "update concerts set city = 'x'",
    "delete": "delete from concerts",
    "delete behind a CTE": "with old as (select 1) delete from concerts",
    "delete around a PIVOT": "with wide as (pivot concerts on city using count(*)) delete from concerts",
    "truncate": "truncate concerts",
    "merge": "merge into concerts using concerts as c on c.id = concerts.id when matched then delete",
    "explain delete": "explain delete from concerts",
    "explain": "explain select 1",
    "explain analyze": "explain analyze select * from concerts",
    "sequence": "select nextval('numbers')",
    "drop table": "drop table concerts",
    "drop schema": "drop schema main cascade",
    "create table": "create table extra (x int)",
    "create table as": "create table extra as select * from concerts",
    "create temporary table": "create temp table extra as select 1",
    "create temporary table of a PIVOT": "create temp table extra as pivot concerts on city using count(*)",
    "create temporary view": "create temp view concerts as select 1",
    "create macro": "create or replace temp macro upper(x) as lower(x)",
    "create type": "create type extra as enum ('a')",
    "create secret": "create secret (type s3)",
    "create index": "create index extra on concerts(city)",
    "alter table": "alter table concerts rename to gone",
    "comment": "comment on table concerts is 'x'",
    "analyze": "analyze",
}
ESCAPES = {
    "attach": "attach '{folder}/attached.duckdb' as extra",
    "attach in memory": "attach ':memory:' as extra",
    "detach": "detach concerts",
    "vacuum": "vacuum",
    "checkpoint": "force checkpoint",
    "begin": "begin",
    "commit": "commit",
    "rollback": "rollback",
    "use": "use temp",
    "set": "set threads = 8",
    "set that opens the files": "set enable_external_access = true",
    "set that unlocks": "set lock_configuration = false",
    "set variable": "set variable x = 1",
    "reset": "reset threads",
    "pragma that writes": "pragma enable_profiling",
    "call": "call pragma_version()",
    "call that logs to a file": "call enable_logging('QueryLog', storage = 'file', storage_path = '{folder}/log')",
    "prepare": "prepare p as select 1",
    "execute": "execute p",
    "deallocate": "deallocate p",
    "install": "install httpfs",
    "load": "load httpfs",
    "load of a path": "load '{folder}/evil.duckdb_extension'",
    "copy to": "copy concerts to '{folder}/copy.csv'",
    "copy of a PIVOT": "copy (pivot concerts on city using count(*)) to '{folder}/copy.csv'",
    "copy over the database": "copy concerts to '{database}'",
    "copy from": "copy concerts from '{folder}/beside.csv'",
    "copy database": "copy from database concerts to temp",
    "export": "export database '{folder}/export'",
    "import": "import database '{folder}/export'",
    "read_csv": "from read_csv('{folder}/beside.csv')",
    "read_text": "from read_text('{folder}/beside.csv')",
    "read_text of the system": "from read_text('/etc/passwd')",
    "read_text of the environment": "from read_text('/proc/self/environ')",
    "read_blob": "from read_blob('{folder}/beside.csv')",
    "read_blob of the database": "from read_blob('{database}')",
    "read_json": "from read_json('{folder}/beside.csv')",
    "glob": "from glob('{folder}/*')",
    "glob of the root": "from glob('/*')",
    "parquet_scan": "from parquet_scan('{folder}/x.parquet')",
    "parquet_metadata": "from parquet_metadata('{folder}/x.parquet')",
    "standard input": "from read_text('/dev/stdin')",
    "open file": "from read_csv('/proc/self/fd/0')",
    "sniff_csv": "from sniff_csv('{folder}/beside.csv')",
    "second statement": "select 1; drop table concerts",
    "second select": "select 1; select 2",
    "second statement behind a comment": "select 1 /* ; */; -- x\ndelete from concerts",
    "second statement behind a PIVOT": "pivot concerts on city using count(*); create temp table concerts as select 1",
}
CALLS = {
    call: f"from {call}()"
    for call in (
        "checkpoint",
        "force_checkpoint",
        "truncate_duckdb_logs",
        "enable_logging",
        "disable_logging",
        "enable_profiling",
        "disable_profiling",
        '"CheckPoint"',
        "system.main.checkpoint",
        "checkpoint /* ( */ -- (\n ",
    )
} | {
    "log": "select write_log('x')",
    "log as a method": "select 'ö'.write_log()",
    "call within a CTE": "with a as (from checkpoint()) from a",
    "call around a PIVOT": "pivot checkpoint() on success using count(*)",
    "call in a text": "from query('from check' || 'point()')",
    "call in JSON": "from json_execute_serialized_sql(json_serialize_sql('from check' || 'point()'))",
    "pointers": "from arrow_scan(1, 2, 3)",
    # The parser reads a space, then a text: for the tokenizer it is a name, and the text begins at the second mark.
    "call behind a space beyond ASCII": "select\u00a0$a$ x $a$, success from checkpoint() --$a$",
    "the same in a PIVOT": "pivot (select\ufeff$a$ x $a$ as x, * from checkpoint()) on success using count(*) --$a$",
}
# What is refused as unsafe, or as something that this version does not have.
GUARDED = {
    "delete within a CTE": "with gone as (delete from concerts returning *) select * from gone",
    "getenv": "select getenv('HOME')",
    "file as a table": "from '{folder}/beside.csv'",
    "quoted file as a table": 'from "{folder}/beside.csv"',
    "file URL": "from 'file://{folder}/beside.csv'",
    "database as a table": "from '{database}'",
    "web page as a table": "from 'http://127.0.0.1:9/x.csv'",
    "web page": "from read_csv('https://127.0.0.1:9/x.csv')",
    "bucket": "from read_parquet('s3://bucket/x.parquet')",
    "read_duckdb": "from read_duckdb('{database}', table_name = 'concerts')",
    "statement in a text": "from query('delete from concerts')",
    "logging as a table": "from enable_logging('QueryLog', storage := 'file', storage_path := '{folder}/log')",
    "Python variable": "from connection",
    "pointer": "from pandas_scan(1)",
    "another database": "from sqlite_scan('{folder}/beside.csv', 'x')",
    "resource that is made": "from create_external_resource('duckdb', map {'path': '{folder}/extra.duckdb'}, 'extra')",
    "resource that is known": (
        "from register_external_resource('duckdb', 'extra', map {'a': 'b'}, '{folder}/extra.duckdb', 'duckdb', 'x')"
    ),
    "resource that is removed": "from destroy_external_resource('read_text', '{folder}/beside.csv')",
    "Python function": "from python_map_function((select 1))",
    "compressed file": "from read_csv('{folder}/beside.csv.gz')",
    "no file": "from read_csv('')",
    "no files": "from read_csv([])",
    "setting by function": "select set_config('threads', '8')",
}
LARGE = {
    "too many rows": "select i from range(10000000) t(i)",
}
SLOW = {
    "texts in all": "select string_agg(repeat('x', 100000), '') from range(1000000)",
    "list of numbers": "select len(range(10000000000))",
    "doubled texts": "select length(repeat(repeat(repeat('x', 100000), 1000), 1000))",
    "bytes in all": "select i, repeat('x', 1000000) from range(10000) t(i)",
    "one long text": "select repeat('x', 300000000)",
    "repeat": "select length(repeat('x', 1000000000))",
    "lpad": "select length(lpad('x', 1000000000, 'y'))",
    "printf": "select length(printf('%1000000000d', 1))",
    "format": "select length(format('{:>1000000000}', 'x'))",
    "levenshtein": "select levenshtein(repeat('a', 200000), repeat('b', 200000))",
    "damerau_levenshtein": "select damerau_levenshtein(repeat('a', 20000), repeat('b', 20000))",
    "jaro_winkler": "select jaro_winkler_similarity(repeat('a', 2000000), repeat('b', 2000000))",
    "list_sort": "select len(list_sort(list_transform(range(50000000), lambda x: hash(x))))",
    "list of lists": "select len([range(10000) for x in range(100000)])",
    "string_split": "select len(string_split(repeat('a,', 100000000), ','))",
    "doubled lists": "select len(flatten([flatten([range(1000000) for x in range(100)]) for y in range(100)]))",
    "endless recursion": f"{ENDLESS} select count(*) from n",
    "recursion that doubles a text": "with recursive n(t) as (select 'x' union all select t || t from n) from n",
    "recursion that doubles rows": "with recursive n as (select 1 union all (from n union all from n)) table n",
    "cartesian join": f"select count(*) from {TWENTY_CONCERTS}, range(100) a, range(100) b, range(100) c, range(100) d",
    "doubling CTEs": f"with c0 as (select 1 as x), {DOUBLING} select count(*) from c25, range(100000), range(1000000)",
    "sort without end": "select i from range(100000000000) t(i) order by hash(i)",
    "distinct without end": "select count(distinct i) from range(100000000000) t(i)",
    "list without end": "select list(i) from range(100000000000) t(i)",
    "window without end": "select sum(i) over (order by hash(i)) from range(100000000000) t(i)",
    "sleep": "select pg_sleep(60) from range(1000)",
    "PIVOT of many values": "pivot (from range(99999) t(i)) on i using count(*)",
}
INVALID = {
    "syntax error": "selec * from concerts",
    "no such table": "select * from nowhere",
    "no such column": "select nowhere from concerts",
    "no such function": "select nowhere(1)",
    "error by function": "select error('boom')",
    "division": "select 9223372036854775807 + id from concerts",
    "cast": "select city::int from concerts",
    "interval that Python cannot hold": "select interval '10000000 years'",
    "comment": "-- nothing here",
    "block comment": "/* nothing here */",
    "semicolon": ";",
    "prose": "Sure! Here is your query.",
    "fenced block": "```sql\nselect 1\n```",
    "placeholder": "select ?",
    "named placeholder": "select $name",
    "NUL byte": "select 1\0; drop table concerts",
    "lone surrogate": "select '\ud800'",
    "over the length limit": "select " + "1" * 100_000,
    "unfinished string": "select 'x",
    "escape codes": 'select * from "\x1b[2J\r\nfine"',
}
# Deep or long texts: some versions refuse them, others need too long or die; all that matters is that they fail.
DEEP = {
    "deep parentheses": "select " + "(" * 30_000 + "1" + ")" * 30_000,
    "deep subqueries": "select * from " + "(select * from " * 5_000 + "concerts" + ")" * 5_000,
    "deep negation": "select " + "- " * 40_000 + "1",
    "deep lists": "select " + "[" * 30_000 + "1" + "]" * 30_000,
    "deep types": "select null::" + "struct(a " * 9_000 + "int" + ")" * 9_000,
    "deep comments": "/*" * 40_000,
}

# What begins like reading for a reader who does not nest comments as DuckDB does.
COMMENTS = [
    *(
        "/* /* */ select */ ",
        "/* a /* b /* */ c */ from */\n",
        "/*/**/pivot*/",
        "-- select\n/* */ ",
        "/* '/* */ with ' */ (",
    ),
    *("/* $$ /* */ $$ summarize */ ", "; /* ; /* */ select 1; */ ", ""),
]
CREATED = [
    *(
        "secret made (type s3)",
        "or replace temporary secret made (type s3, key_id 'a')",
        "persistent secret made (type s3)",
    ),
    *(
        "table made (x int)",
        "temp table made as from concerts",
        "or replace temp table concerts (id int, city varchar)",
    ),
    *(
        "view made as select 1",
        "temp view concerts as select 1 as id, 'x' as city",
        "sequence made",
        "temp sequence made",
    ),
    *("macro made(x) as x", "or replace temp macro upper(x) as lower(x)", "temp macro made(x) as table select x"),
    *("function made(x) as x", "type made as enum ('a')", "temp type made as int", "schema made"),
    *("index made on concerts(city)", "temp table made as pivot concerts on city using count(*)"),
]
BEHIND = [
    *("; select 1", "; from concerts; select upper('a')", "; pivot concerts on city using count(*)"),
    " /* /* */ ; */ ;\nwith a as (pivot concerts on city using count(*)) from a",
]
BEFORE_READING = [f"{comment}create {what}{query}" for comment in COMMENTS for what in CREATED for query in BEHIND]

HOSTILE = [
    (name, query, frozenset(kinds))
    for table, kinds in (
        (WRITES, {"unsafe"}),
        (ESCAPES, {"unsafe"}),
        (CALLS, {"unsafe"}),
        (GUARDED, {"unsafe", "invalid"}),
        (LARGE, {"too_large"}),
        (SLOW, {"timeout", "too_large", "invalid"}),
        (INVALID, {"invalid"}),
        (DEEP, {"invalid", "timeout", "too_large"}),
    )
    for name, query in table.items()
]
