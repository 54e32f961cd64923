"""Write queries on PostgreSQL: statements of a text, sent to a child one text at a time, whatever process it is of."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pytest_queryeval.core.errors import SettingError
from pytest_queryeval.core.model import Execution, Failure, Source
from pytest_queryeval.engines import Engine, Settings, WriteDriver
from pytest_queryeval.features.database_servers.engine import POSTGRES_PACKAGES, is_postgres, psycopg_url
from pytest_queryeval.sandbox.host import Host, text_refusal

DRIVER = Path(__file__).with_name("postgres_writes_child.py")
LOCK_SECONDS = 600.0


class WritesHost(Host):
    """Reads the statements of a text before they are sent, and waits until no other process runs any."""

    def execute(self, settings: Mapping[str, Any], query: str, *, timeout: float, max_rows: int) -> Execution:
        """Run `query` like other hosts; the wait for others takes no time of it."""
        failure = text_refusal(query)
        if failure is None:
            from pytest_queryeval.features.database_servers.postgres_statements import read_statements

            statements = read_statements(query)
            if not isinstance(statements, Failure):
                self.describe(settings, timeout=LOCK_SECONDS)
                return super().execute(
                    {**settings, "statements": statements}, query, timeout=timeout, max_rows=max_rows
                )
            failure = statements
        return Execution(query=query, error=failure, engine=self.name)


def url_settings(source: Source, _: Engine) -> Settings:
    """Return the settings of requests about a database."""
    return {"url": psycopg_url(source.settings["url"])}


def check(source: Source) -> None:
    """Raise `SettingError` unless a source is a PostgreSQL database of which its suite says that it may be written."""
    if not is_postgres(source.settings):
        raise SettingError("url", "`writes` needs a database of PostgreSQL behind a URL")
    if source.settings.get("scratch") is not True:
        problem = "`writes` needs a database that nobody else uses meanwhile: write `scratch: true` beside its `url`"
        raise SettingError("url", problem)


WRITES = WriteDriver(
    host=partial(WritesHost, "postgresql writes", DRIVER, packages=POSTGRES_PACKAGES),
    settings=url_settings,
    check=check,
)
