"""Statements that no model should write, and the kinds of failure they may end in."""

from __future__ import annotations

DOUBLING = ", ".join(f"c{level} as (select a.x from c{level - 1} a, c{level - 1} b)" for level in range(1, 26))
TWENTY_CONCERTS = ", ".join(f"concerts c{number}" for number in range(20))
ENDLESS = "with recursive n(i) as (select 1 union all select i + 1 from n)"

WRITES = {
    "insert": "insert into concerts values (9, 'x', 1.0)",
    "insert returning": "insert into concerts values (9, 'x', 1.0) returning id",
    "replace": "replace into concerts values (1, 'x', 1.0)",
    "upsert": "insert into concerts values (1, 'x', 1.0) on conflict do update set city = 'y'",
    "update": "update concerts set city = 'x'",
    "update from": "update concerts set city = v.words from notes v",
    "delete": "delete from concerts",
    "delete behind a CTE": "with old as (select 1) delete from concerts",
    "delete returning": "delete from concerts returning *",
    "explain delete": "explain delete from concerts",
    "insert into a view's table": "insert into sqlite_master values (1, 2, 3, 4, 5)",
    "insert into a full-text table": "insert into notes(notes) values ('rebuild')",
    "insert into an R-tree": "insert into boxes values (7, 0, 1)",
    "drop table": "drop table concerts",
    "drop view": "drop view cities",
    "create table": "create table extra (x)",
    "create table as": "create table extra as select * from concerts",
    "create temporary table": "create temp table extra (x)",
    "create temporary view": "create temp view extra as select 1",
    "create temporary trigger": "create temp trigger extra after insert on concerts begin select 1; end",
    "create virtual table": "create virtual table extra using fts5(x)",
    "create index": "create index extra on concerts(city)",
    "alter table": "alter table concerts rename to gone",
    "reindex": "reindex",
    "analyze": "analyze",
}
ESCAPES = {
    "attach": "attach '{folder}/attached.db' as extra",
    "attach in memory": "attach ':memory:' as extra",
    "detach": "detach main",
    "vacuum": "vacuum",
    "vacuum into": "vacuum into '{folder}/copy.db'",
    "begin": "begin",
    "begin immediate": "begin immediate",
    "commit": "commit",
    "rollback": "rollback",
    "savepoint": "savepoint extra",
    "release": "release extra",
    "pragma that reads": "pragma table_info(concerts)",
    "pragma that FTS5 uses": "pragma data_version",
    "pragma that writes": "pragma user_version = 7",
    "pragma that makes the schema writable": "pragma writable_schema = on",
    "pragma that changes the journal": "pragma journal_mode = wal",
    "pragma that lifts the read-only mode": "pragma query_only = off",
    "pragma as a table": "select * from pragma_optimize",
    "pragma as a table that tells a path": "select * from pragma_database_list",
    "pragma as a table behind one that is allowed": "select * from pragma_table_list, pragma_journal_mode",
    "pragma as a table in an expression": "select 1 where exists (select 1 from pragma_integrity_check)",
    "statements of others": "select sql from sqlite_stmt",
    "pragma that reads behind a second statement": "select 1; pragma table_info(concerts)",
    "extension": "select load_extension('evil')",
    "extension in capitals": "select LOAD_EXTENSION('evil', 'entry')",
    "tokenizer": "select fts3_tokenizer('simple')",
    "second statement": "select 1; drop table concerts",
    "second select": "select 1; select 2",
    "second statement behind a comment": "select 1 /* ; */; -- x\ndelete from concerts",
}
LARGE = {
    "random blob": "select randomblob(1e9)",
    "zero blob": "select zeroblob(1e9)",
    "hex of a zero blob": "select hex(zeroblob(1e9))",
    "a value just over the limit": "select hex(zeroblob(20000000))",
    "replace bomb": "select replace(replace(hex(zeroblob(9999)), '0', hex(zeroblob(999))), '0', hex(zeroblob(999)))",
    "too many rows": f"{ENDLESS} select i from n",
}
SLOW = {
    "too many bytes": f"{ENDLESS} select zeroblob(9000000) from n limit 90",
    "printf": "select printf('%.*c', 1e9, 'x')",
    "endless recursion": f"{ENDLESS} select count(*) from n",
    "cartesian join": f"select count(*) from {TWENTY_CONCERTS}",
    "doubling CTEs": f"with c0 as (select 1 as x), {DOUBLING} select count(*) from c25",
    "long LIKE pattern": f"select hex(zeroblob(9999999)) like '%{'0' * 20_000}1'",
    "long GLOB pattern": f"select hex(zeroblob(9999999)) glob '*{'0' * 20_000}1'",
    "group_concat bomb": f"{ENDLESS} select length(group_concat(hex(zeroblob(99)))) from n",
    "sort without end": f"{ENDLESS} select i from n order by i desc",
    "distinct without end": f"{ENDLESS} select count(distinct i) from n",
    "nested replace": f"{ENDLESS} select sum(length(replace(hex(zeroblob(1000000)), '00', 'xyz'))) from n",
    "window without end": f"{ENDLESS} select sum(i) over (order by i desc) from n",
    "json bomb": f"{ENDLESS} select json_group_array(i) from n",
}
INVALID = {
    "syntax error": "selec * from concerts",
    "no such table": "select * from nowhere",
    "no such column": "select nowhere from concerts",
    "no such function": "select writefile('{folder}/x', 'x')",
    "comment": "-- nothing here",
    "block comment": "/* nothing here */",
    "semicolon": ";",
    "prose": "Sure! Here is your query.",
    "fenced block": "```sql\nselect 1\n```",
    "placeholder": "select ?",
    "named placeholder": "select :name",
    "NUL byte": "select 1\0; drop table concerts",
    "lone surrogate": "select '\ud800'",
    "over the length limit": "select " + "1" * 100_000,
    "deep parentheses": "select " + "(" * 30_000 + "1" + ")" * 30_000,
    "deep subqueries": "select * from " + "(select * from " * 5_000 + "concerts" + ")" * 5_000,
    "deep negation": "select " + "- " * 40_000 + "1",
    "long expression": "select 1" + "+1" * 49_000,
    "many compound selects": "select 1" + " union all select 1" * 4_000,
    "many columns": "select " + ",".join("1" * 30_000),
    "many joined tables": "select 1 from " + ",".join(["concerts"] * 100),
    "unfinished string": "select 'x",
    "escape codes": 'select * from "\x1b[2J\r\nfine"',
}

HOSTILE = [
    (name, query, frozenset(kinds))
    for table, kinds in (
        (WRITES, {"unsafe"}),
        (ESCAPES, {"unsafe"}),
        (LARGE, {"too_large"}),
        (SLOW, {"timeout", "too_large"}),
        (INVALID, {"invalid"}),
    )
    for name, query in table.items()
]
