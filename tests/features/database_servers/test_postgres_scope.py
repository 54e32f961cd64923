"""Queries out of a scope of columns are those that PostgreSQL refuses to a role with grants of these columns."""

import re
from random import Random

from generated_reads import SCHEMA, SCRIPT, TABLES, VIEWS, Writer

from pytest_queryeval.core.scope import Scope  # white box: as below
from pytest_queryeval.languages.sql.reads import Views, view_queries  # white box: queries are many
from pytest_queryeval.languages.sql.scope import ScopeRules, UnresolvedError, scope_breaches  # white box: as above

pytest_plugins = ["postgres"]

GRANTS, QUERIES = 6, 60
OF_TEXTS = re.sub("INTEGER", "TEXT", SCRIPT).replace("tenant_id = 1", "tenant_id = '1'")
CREATED = OF_TEXTS.replace("AS SELECT", "WITH (security_invoker = true) AS SELECT")  # else owners of views read


def is_inside(query, columns, views):
    rules = ScopeRules(Scope(tables=tuple(columns), columns=columns), "postgres", SCHEMA)
    try:
        return not scope_breaches(query, rules, views)
    except UnresolvedError:
        return False


def test_queries_out_of_scope_are_those_that_a_role_may_not_run(cluster):
    import psycopg

    random, views = Random(7), Views(view_queries(CREATED.replace(";\n", ";\n\n"), "postgres"))
    cluster.sql(f"{CREATED}; CREATE ROLE scoped LOGIN; GRANT SELECT ON {', '.join(VIEWS)} TO scoped")
    missed, needless, number = [], [], 0
    for _ in range(GRANTS):
        columns = {
            name: [column for column in TABLES[name] if random.random() < 0.8]
            for name in sorted(TABLES.keys() - {*VIEWS})
        }
        columns = {name: tuple(names) for name, names in sorted(columns.items()) if names}
        cluster.sql("REVOKE ALL ON orders, customers, items, salaries FROM scoped")
        for name, names in columns.items():
            cluster.sql(f"GRANT SELECT ({', '.join(names)}) ON {name} TO scoped")
        with cluster.connect() as owner, cluster.connect("scoped") as scoped:
            for _ in range(QUERIES):
                query = re.sub("main\\.", "public.", Writer(random, "postgres").query()).replace('"', "")
                query = query.replace("> 1", "> '1'")
                try:
                    owner.execute(f"EXPLAIN {query}")
                except psycopg.Error:
                    continue
                number += 1
                try:
                    scoped.execute(f"SELECT * FROM ({query}\n) AS whole LIMIT 0")
                except psycopg.errors.InsufficientPrivilege:
                    missed += [query] if is_inside(query, columns, views) else []
                else:
                    needless += [] if is_inside(query, columns, views) else [query]

    assert number > 100
    assert missed == []
    assert len(needless) <= 0.03 * number
