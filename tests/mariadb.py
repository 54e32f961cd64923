"""A MariaDB server of the tests' own, one a session, on a free port of this machine; as `postgres` in its use.

Needs Debian's mariadb-server-core and mariadb-client-core, or the like.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from servers import HOST, free_port, server

PASSWORD = "tr0ub@dor/&3"
SPELLED = "tr0ub%40dor%2F%263"
PREPARED = (
    "create database music",
    "use music",
    "create table concerts (id int primary key, city text, price decimal(6,2))",
    "insert into concerts values (1, 'Graz', 12.5), (2, 'Wien', null), (3, 'Linz', 8.0)",
    "create table tickets (number serial, concert int, foreign key (concert) references concerts (id))",
    "create table plain (x int) engine = MyISAM",
    "insert into plain values (1)",
    "create sequence numbers",
    "create function wipe() returns int begin delete from plain; delete from tickets; return 1; end",
    f"create user owner@localhost identified by '{PASSWORD}'",
    "grant all on *.* to owner@localhost",
)


@dataclass(frozen=True)
class MariaDB:
    """A running server with the database `music`."""

    port: int
    password: str = PASSWORD

    def url(self, scheme: str = "mysql+pymysql", password: str = SPELLED, database: str = "music") -> str:
        return f"{scheme}://owner:{password}@{HOST}:{self.port}/{database}"

    def sql(self, *statements: str) -> list[tuple]:
        """Run statements as root; the rows of the last one."""
        import pymysql

        with closing(pymysql.connect(host=HOST, port=self.port, user="root", autocommit=True)) as connection:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def dump(self) -> str:
        """All that a query could have changed."""
        rows = [self.sql(f"select * from music.{table}") for table in ("concerts", "tickets", "plain", "numbers")]
        names = self.sql("select table_name, table_type from information_schema.tables order by 1, 2, table_schema")
        return repr([rows, names, self.sql("select * from mysql.global_priv order by user")])


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDB]:
    pytest.importorskip("pymysql")
    pytest.importorskip("sqlalchemy")
    program = shutil.which("mariadbd", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")
    if not program or not shutil.which("mariadb-install-db") or not shutil.which("my_print_defaults"):
        pytest.skip("MariaDB's server is not installed")
    with tempfile.TemporaryDirectory(prefix="queryeval-mariadb-") as name, running(program, Path(name)) as started:
        yield started


@contextmanager
def running(program: str, folder: Path) -> Iterator[MariaDB]:
    """As root it runs under `nobody`, since the package of the server alone makes no user for it."""
    from pymysql import OperationalError

    user = []
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody")
        user = ["--user=nobody"]
    data = f"--datadir={folder / 'data'}"
    install = ["mariadb-install-db", "--no-defaults", data, "--auth-root-authentication-method=normal", *user]
    environment = os.environ | {"TMPDIR": str(folder)}  # a server that starts removes temporary tables of all servers
    process = subprocess.run([*install, "--skip-test-db"], capture_output=True, text=True, env=environment)
    if process.returncode:
        raise RuntimeError(f"mariadb-install-db fails: {process.stdout}{process.stderr}")
    started = MariaDB(free_port())
    options = [f"--bind-address={HOST}", f"--port={started.port}", f"--socket={folder / 'socket'}"]
    options += [f"--tmpdir={folder}", f"--pid-file={folder / 'pid'}"]
    options += ["--innodb-flush-log-at-trx-commit=0", "--secure-file-priv="]
    command = [program, "--no-defaults", data, *user, *options]
    with server(command, lambda: started.sql("select 1"), OperationalError):
        started.sql(*PREPARED)
        yield started
