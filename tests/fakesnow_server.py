"""A server of fakesnow, which answers Snowflake's own driver; one a session, as `mariadb` in its use.

Needs an environment with the package `fakesnow[server]`: FAKESNOW_PYTHON names its Python.
"""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from servers import HOST, free_port, server

PROGRAM = Path(__file__).with_name("fakesnow_program.py")
PYTHON = "FAKESNOW_PYTHON"
PASSWORD = "tr0ub@dor/&3"
SPELLED = "tr0ub%40dor%2F%263"
PREPARED = ("create database music", "create schema music.public")


@dataclass(frozen=True)
class Snowflake:
    """A running server with the database `music`."""

    port: int
    secrets: tuple[str, ...] = (PASSWORD, SPELLED)

    def url(self, database: str = "music/public", **parameters: str) -> str:
        """The driver speaks HTTP without TLS, and asks once instead of six times."""
        here = {"account": "fakesnow", "server_url": self.origin, "retry_max_attempts": "1", **parameters}
        query = "&".join(f"{name}={value}" for name, value in here.items())
        return f"snowflake://reader:{SPELLED}@{HOST}:{self.port}/{database}?{query}"

    @property
    def origin(self) -> str:
        return f"http://{HOST}:{self.port}"

    def sql(self, *statements: str, database: str = "") -> list[Any]:
        """Run statements as the administrator; the rows of the last one."""
        import sqlalchemy

        with sqlalchemy.create_engine(self.url(database), poolclass=sqlalchemy.NullPool).connect() as connection:
            for statement in statements:
                result = connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
                rows = [tuple(row) for row in result.fetchall()]
            connection.commit()
        return rows

    def statements(self) -> list[str]:
        """All statements so far."""
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"{self.origin}/statements") as answer:
            return json.loads(answer.read())


@pytest.fixture(scope="session")
def snowflake() -> Iterator[Snowflake]:
    pytest.importorskip("snowflake.sqlalchemy", reason="pip install '.[snowflake]'")
    if not (python := os.environ.get(PYTHON)):
        pytest.skip(f"{PYTHON} names no Python with fakesnow: make test-engines")
    started = Snowflake(free_port())
    with server([python, str(PROGRAM), str(started.port)], started.statements, OSError):
        started.sql(*PREPARED)
        yield started
