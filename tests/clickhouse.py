"""A ClickHouse server of the tests' own, one a session, on free ports of this machine; as `mariadb` in its use.

Needs Debian's clickhouse-server. Stopped by its process id.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from servers import HOST, free_port

START_SECONDS = 60.0
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
<logger><level>error</level><log>{folder}/log</log><errorlog>{folder}/errors</errorlog></logger>
<listen_host>{host}</listen_host><http_port>{http}</http_port><tcp_port>{native}</tcp_port>
<path>{folder}/data/</path><tmp_path>{folder}/temporary/</tmp_path><users_config>{folder}/users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database>
<mark_cache_size>100000000</mark_cache_size>
</yandex>"""
# The recipe of docs/sqlalchemy.md: `readonly = 1` lets nothing be changed, not even a setting.
USERS = """<yandex><quotas><default/></quotas>
<profiles><default/>
<reader><readonly>1</readonly><max_execution_time>60</max_execution_time></reader>
</profiles>
<users>
<default><password/><networks><ip>{host}</ip></networks><profile>default</profile><quota>default</quota></default>
<reader><password>{password}</password><networks><ip>{host}</ip></networks><profile>reader</profile>
<quota>default</quota><allow_databases><database>music</database></allow_databases></reader>
</users></yandex>"""


@dataclass(frozen=True)
class ClickHouse:
    """A running server with the database `music`, which the user `reader` may read."""

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
    server = shutil.which("clickhouse-server", path="/usr/bin:/usr/sbin")
    if not server:
        pytest.skip("ClickHouse's server is not installed: apt-get install clickhouse-server")
    with tempfile.TemporaryDirectory(prefix="queryeval-clickhouse-") as name:
        folder, started = Path(name), ClickHouse(free_port(), free_port())
        (folder / "data").mkdir()
        (folder / "temporary").mkdir()
        ports = {"folder": name, "host": HOST, "http": started.http, "native": started.native}
        (folder / "config.xml").write_text(SETTINGS.format(**ports))
        (folder / "users.xml").write_text(USERS.format(host=HOST, password=PASSWORD.replace("&", "&amp;")))
        with (folder / "output").open("wb") as output:
            process = subprocess.Popen(
                [server, f"--config-file={folder / 'config.xml'}"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        try:
            wait_for(process, started, folder / "errors")
            started.sql(*PREPARED)
            yield started
        finally:
            process.terminate()
            try:
                process.wait(START_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_for(process: subprocess.Popen, server: ClickHouse, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            server.sql("select 1")
        except urllib.error.URLError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"ClickHouse does not start: {log.read_text() if log.exists() else 'no log'}")
