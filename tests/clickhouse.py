"""A ClickHouse server of the tests' own, one a session, on free ports of this machine; as `mariadb` in its use.

Needs Debian's clickhouse-server.
"""

from __future__ import annotations

import shutil
import tempfile
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from servers import HOST, free_port, server

PASSWORD = "tr0ub@dor/&3"
SPELLED = "tr0ub%40dor%2F%263"
PREPARED = (
    "create database music",
    "create table music.concerts (id Int32, city String, price Nullable(Decimal(9, 2))) engine = MergeTree order by id",
    "insert into music.concerts values (1, 'Graz', 12.5), (2, 'Wien', null), (3, 'Linz', 8)",
    "create table music.plain (x Int32) engine = Log",
    "insert into music.plain values (1)",
    "create table secrets (x String) engine = Log",
    "insert into secrets values ('swordfish')",
)
SETTINGS = """<yandex>
<logger><level>error</level><console>1</console></logger>
<listen_host>{host}</listen_host><http_port>{http}</http_port><tcp_port>{native}</tcp_port>
<path>{folder}/data/</path><tmp_path>{folder}/temporary/</tmp_path><users_config>{folder}/users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database>
<mark_cache_size>100000000</mark_cache_size>
</yandex>"""
# The recipe of docs/reference/sql.md: `readonly = 1` lets nothing be changed, not even a setting.
# Joins are those of standard SQL.
USERS = """<yandex><quotas><default/></quotas>
<profiles><default/>
<reader><readonly>1</readonly><max_execution_time>60</max_execution_time>
<join_default_strictness>ALL</join_default_strictness><join_use_nulls>1</join_use_nulls></reader>
</profiles>
<users>
<default><password/><networks><ip>{host}</ip></networks><profile>default</profile><quota>default</quota></default>
<reader><password>{password}</password><networks><ip>{host}</ip></networks><profile>reader</profile>
<quota>default</quota>
<allow_databases><database>music</database><database>native</database><database>http</database></allow_databases></reader>
</users></yandex>"""


@dataclass(frozen=True)
class ClickHouse:
    """A running server with the database `music`, which the user `reader` may read, as those of `every_engine`."""

    http: int
    native: int
    password: str = PASSWORD

    def url(self, scheme: str = "clickhouse+native", password: str = SPELLED, database: str = "music") -> str:
        port = self.http if "http" in scheme else self.native
        return f"{scheme}://reader:{password}@{HOST}:{port}/{database}"

    def sql(self, *statements: str) -> str:
        """Run statements as the administrator; the answer to the last one."""
        answer = b""
        for statement in statements:
            request = urllib.request.Request(f"http://{HOST}:{self.http}/", statement.encode(), method="POST")
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as response:
                answer = response.read()
        return answer.decode()

    def dump(self) -> list[str]:
        """All that a query could have changed."""
        tables = "select database, name, engine from system.tables where database <> 'system' order by 1, 2"
        return [self.sql(f"select * from {name}") for name in ("music.concerts", "music.plain", "secrets")] + [
            self.sql(tables)
        ]

    def running(self) -> str:
        """The queries of the reader that run."""
        return self.sql("select query from system.processes where user = 'reader'")


@pytest.fixture(scope="session")
def clickhouse() -> Iterator[ClickHouse]:
    pytest.importorskip("clickhouse_sqlalchemy", reason="pip install clickhouse-sqlalchemy")
    program = shutil.which("clickhouse-server", path="/usr/bin:/usr/sbin")
    if not program:
        pytest.skip("ClickHouse's server is not installed: apt-get install clickhouse-server")
    with tempfile.TemporaryDirectory(prefix="queryeval-clickhouse-") as name:
        folder, started = Path(name), ClickHouse(free_port(), free_port())
        (folder / "data").mkdir()
        (folder / "temporary").mkdir()
        ports = {"folder": name, "host": HOST, "http": started.http, "native": started.native}
        (folder / "config.xml").write_text(SETTINGS.format(**ports))
        (folder / "users.xml").write_text(USERS.format(host=HOST, password=PASSWORD.replace("&", "&amp;")))
        with server([program, f"--config-file={folder / 'config.xml'}"], lambda: started.sql("select 1"), OSError):
            started.sql(*PREPARED)
            yield started
