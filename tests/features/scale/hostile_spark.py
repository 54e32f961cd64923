"""Statements that no model should write, and what may come of them on Spark: kinds of failure, or an answer.

`{folder}` stands for a folder with files that no query may read or change, `{address}` for an address of this machine
at which nobody may knock.
"""

from __future__ import annotations

ANSWER = "answer"
XML = '<!DOCTYPE a [<!ENTITY x SYSTEM "http://{address}/x">]><a><b>&x;</b></a>'

COMMANDS = {
    "insert": "insert into hall values (9, 'x', 1)",
    "insert behind a CTE": "with x as (select 9, 'x', 1) insert into hall select * from x",
    "insert behind from": "from hall insert into hall select *",
    "insert overwrite": "insert overwrite hall select * from hall",
    "files written": "insert overwrite directory '{folder}/written' using csv select * from hall",
    "files written by Hive": "insert overwrite local directory '{folder}/written' select * from hall",
    "delete": "delete from hall",
    "update": "update hall set name = 'x'",
    "merge": "merge into hall using hall h on true when matched then delete",
    "create table": "create table extra (x int) using parquet location '{folder}/written'",
    "create table as": "create table extra using csv location '{folder}/written' as select * from hall",
    "create view": "create or replace temporary view hall as select 1 as hall_id",
    "view of a file": "create temporary view extra using text options (path '{folder}/secret.txt')",
    "create function": "create temporary function f as 'java.lang.Runtime'",
    "drop": "drop view hall",
    "truncate": "truncate table hall",
    "load": "load data local inpath '{folder}/secret.txt' into table hall",
    "set": "set spark.sql.runSQLOnFiles = true",
    "set behind a comment": "/* read */ set spark.sql.runSQLOnFiles = true",
    "reset": "reset",
    "add jar": "add jar '{folder}/evil.jar'",
    "add file": "add file 'http://{address}/x'",
    "cache": "cache table hall",
    "cache of a query": "cache lazy table extra as select 1",
    "use": "use other",
    "show": "show tables",
    "describe": "describe extended hall",
    "explain": "explain select 1",
    "call": "call system.extra()",
    "variable": "declare variable x int default 1",
    "variable set": "set var x = 2",
    "run a text": "execute immediate 'set spark.sql.runSQLOnFiles = true'",
    "script": "begin drop view hall; end",
    "two statements": "select 1; drop view hall",
    "copy": "copy into hall from '{folder}'",
    "stop": "stop",
}
REACHING = {
    "Java": "select reflect('java.lang.System', 'getenv', 'PATH')",
    "Java by its other name": "select java_method('java.lang.System', 'exit', 1)",
    "Java that may fail": "select try_reflect('java.lang.System', 'getProperty', 'user.home')",
    "Java in quotes": "select `reflect` /* x */ ('java.util.UUID', 'randomUUID')",
    "Java by its full name": "select system.builtin.reflect('java.util.UUID', 'randomUUID')",
    "Java in a filter": "select * from hall where java_method('java.lang.Thread', 'sleep', 60000L) is null",
    "Java in pipes": "from hall |> select reflect('java.util.UUID', 'randomUUID')",
    "Java in a subquery": "from hall |> where exists (select reflect('java.util.UUID', 'randomUUID'))",
    "program": "select transform(name) using 'tee {folder}/written' as (x) from hall",
    "program with map": "from hall map name using 'tee {folder}/written' as (x)",
    "Parquet file": "select * from parquet.`{folder}/secret.parquet`",
    "text file": "select * from text.`{folder}/secret.txt`",
    "CSV file": "select * from csv.`file:{folder}/secret.txt`",
    "JSON file": "select * from json.`{folder}/secret.txt`",
    "ORC file": "select * from orc.`{folder}`",
    "bytes of a file": "select * from binaryFile.`{folder}/secret.txt`",
    "format by its class": "select * from `org.apache.spark.sql.execution.datasources.text.TextFileFormat`.`{folder}`",
    "file in pipes": "from text.`{folder}/secret.txt` |> select *",
    "file by a name that is made": "select * from identifier('text.`{folder}/secret.txt`')",
    "another server's file": "select * from text.`http://{address}/x`",
    "another server's table": "select * from jdbc.`jdbc:postgresql://{address}/x`",
    "bucket": "select * from parquet.`s3a://bucket@{address}/x`",
    "name of the file": "select input_file_name() from hall",
    "place in the file": "select input_file_block_start() from hall",
    "where the file is": "select _metadata.file_path from hall",
    "earlier state": "select * from hall version as of 1",
    "stream": "select * from stream(hall)",
    "functions of Databricks": "select * from read_files('{folder}')",
    "request": "select http_request('http://{address}/')",
    "description of a message": "select from_protobuf(x'00', 'A', '{folder}/secret.txt')",
    "logs": "select * from python_worker_logs()",
    "another catalog": "select * from other.main.hall",
}
HARMLESS = {
    "path of a table": "select * from hall with (path = '{folder}/secret.txt')",
    "entity in XPath": f"select xpath_string('{XML}', '/a/b')",
    "entity in XML": f"select from_xml('{XML}', 'b string').b",
    "schema of XML": f"select schema_of_xml('{XML}')",
}
WRONG = {
    "no such table": "select * from nowhere",
    "no such column": "select nowhere from hall",
    "division by zero": "select 1 / 0",
    "prose": "Sure! Here is your query.",
    "nested": f"select {'(' * 3000}1{')' * 3000}",
}
HEAVY = {
    "cartesian join": ("select count(*) from range(10000000000) a cross join range(1000) b", ("timeout",)),
    "recursion": (
        "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n",
        ("timeout",),
    ),
    "too many rows": ("select id from range(1001)", ("too_large",)),
    "memory": ("select collect_list(repeat(id, 100000)) from range(1000000)", ("timeout", "too_large")),
}
HOSTILE = {
    **{name: (query, ("unsafe", "invalid")) for name, query in {**COMMANDS, **REACHING}.items()},
    **{name: (query, (ANSWER, "invalid")) for name, query in HARMLESS.items()},
    **{name: (query, ("invalid",)) for name, query in WRONG.items()},
    **HEAVY,
}
