"""A PostgreSQL cluster of the tests' own, one a session, on a free port of this machine.

A test module takes the fixture `cluster` by `pytest_plugins = ["postgres"]` and imports nothing from here. Needs the
programs of a PostgreSQL server; as root they run under the user postgres. Stopped by its process id.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from servers import HOST, free_port

PASSWORD = "tr0ub@dor/&3 %41"
SPELLED = "tr0ub%40dor%2F%263%20%2541"
START_SECONDS = 30.0
# The role `guarded` needs its password, all others none.
ACCESS = "host all guarded 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\nlocal all all trust\n"
ROLES = f"""
    create role owner login;
    create role reader login;
    create role guarded login password '{PASSWORD}';
"""
TABLES = """
    create table concerts (id int primary key, city text, price numeric(6,2));
    insert into concerts values (1, 'Graz', 12.5), (2, 'Wien', null), (3, 'Linz', 8.0);
    create table tickets (number serial primary key, concert int references concerts (id), sold timestamptz);
    insert into tickets (concert, sold) values (1, '2026-01-01 10:00+01'), (3, '2026-01-02 11:00+01');
    create view cities as select distinct city from concerts;
"""


@dataclass(frozen=True)
class Cluster:
    """A running server with the database `music`, whose tables the role `owner` owns."""

    programs: Path
    folder: Path
    port: int
    password: str = PASSWORD
    spelled: str = SPELLED

    def url(self, user: str = "owner", *, database: str = "music", password: str = "") -> str:
        login = f"{user}:{password}" if password else user
        return f"postgresql://{login}@{HOST}:{self.port}/{database}"

    def connect(self, user: str = "postgres", database: str = "music"):
        """A connection of its own, to look at the database without the engine under test."""
        import psycopg

        return psycopg.connect(host=HOST, port=self.port, user=user, dbname=database, autocommit=True)

    def sql(self, text: str, *, user: str = "postgres", database: str = "music") -> list[tuple]:
        """Run one or more statements; the rows of the last one."""
        with self.connect(user, database) as connection:
            cursor = connection.execute(text.encode())
            while cursor.nextset():
                pass
            return cursor.fetchall() if cursor.description else []

    def backends(self) -> int:
        """How many queries of the engine the server is busy with."""
        text = "select count(*) from pg_stat_activity where application_name = 'pytest-queryeval' and state <> 'idle'"
        return self.sql(text)[0][0]

    def dump(self, database: str = "music") -> str:
        """All of a database as a script; newer versions put a random word into two lines."""
        command = [self.programs / "pg_dump", "-h", HOST, "-p", str(self.port), "-U", "postgres", database]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return "\n".join(line for line in text.splitlines() if not line.startswith(("\\restrict", "\\unrestrict")))


@pytest.fixture(scope="module")
def cluster(_cluster_of_all_modules: Cluster) -> Iterator[Cluster]:
    """Give each module the database as it is at the start, whatever the modules before it have created."""
    yield _cluster_of_all_modules
    _cluster_of_all_modules.sql("drop database music with (force)", database="postgres")
    _cluster_of_all_modules.sql("create database music owner owner template music_at_start", database="postgres")


@pytest.fixture(scope="session")
def _cluster_of_all_modules() -> Iterator[Cluster]:
    pytest.importorskip("psycopg")
    pytest.importorskip("sqlalchemy")
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL's server is not installed")
    with tempfile.TemporaryDirectory(prefix="queryeval-postgres-") as name, running(programs, Path(name)) as started:
        yield started


def find_programs() -> Path | None:
    """The folder of `initdb` and `postgres`; Debian keeps one for each version out of the PATH."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: float(folder.parent.name))
    program = shutil.which("initdb")
    folders += [Path(program).resolve().parent] if program else []
    return next((folder for folder in reversed(folders) if (folder / "postgres").exists()), None)


@contextmanager
def running(programs: Path, folder: Path) -> Iterator[Cluster]:
    prefix = []
    if os.geteuid() == 0:
        # The server refuses to run as root.
        owner = pwd.getpwnam("postgres")
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        prefix = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    data = folder / "data"
    initdb = [*prefix, programs / "initdb", "-D", data, "--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8"]
    subprocess.run([*initdb, "--no-locale"], check=True, capture_output=True, cwd=folder)
    (data / "pg_hba.conf").write_text(ACCESS)
    started = Cluster(programs, folder, free_port())
    options = {"fsync": "off", "listen_addresses": HOST, "port": started.port, "unix_socket_directories": folder}
    command = [*prefix, programs / "postgres", "-D", data, *(f"--{name}={value}" for name, value in options.items())]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder)
    try:
        wait_for(process, started)
        started.sql(ROLES, database="postgres")
        started.sql("create database music owner owner", database="postgres")
        started.sql(TABLES, user="owner")
        started.sql("grant select on all tables in schema public to reader, guarded")
        started.sql("create database music_at_start template music", database="postgres")
        yield started
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(START_SECONDS)


def wait_for(process: subprocess.Popen, cluster: Cluster) -> None:
    import psycopg

    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            cluster.sql("select 1", database="postgres")
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"PostgreSQL does not start: {(cluster.folder / 'log').read_text()}")
