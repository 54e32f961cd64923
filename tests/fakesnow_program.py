"""A program: fakesnow as a server, with what sessions of Snowflake have and those of fakesnow lack.

`python fakesnow_program.py PORT`, in an environment of its own: fakesnow needs an older driver than the tests.
"""

import json
import re
import sys
from threading import Timer

import fakesnow.server
import uvicorn
from fakesnow.cursor import FakeSnowflakeCursor
from fakesnow.instance import FakeSnow
from snowflake.connector.errors import ProgrammingError
from starlette.responses import JSONResponse

LIMIT = re.compile(r"ALTER SESSION SET STATEMENT_TIMEOUT_IN_SECONDS = (\d+)")
SESSION = "SELECT CURRENT_DATABASE(), CURRENT_SCHEMA(), CURRENT_WAREHOUSE()"
statements = []
execute = FakeSnowflakeCursor.execute


def execute_within_limit(cursor, command, *arguments, **options):
    """End a statement by the time limit of its session, with Snowflake's own error."""
    statements.append(command)
    if match := LIMIT.fullmatch(command):
        cursor._conn.seconds = int(match[1])
    if command == SESSION:  # fakesnow has no warehouses, and names DuckDB's database where Snowflake has none
        session = cursor._conn
        names = (session.database if session.database_set else "", session.schema if session.schema_set else "", "")
        command = "SELECT " + ", ".join(f"NULLIF('{name}', '')" for name in names)
    seconds = getattr(cursor._conn, "seconds", None)
    if seconds is None:
        return execute(cursor, command, *arguments, **options)
    timer = Timer(seconds, cursor._duck_conn.interrupt)
    timer.start()
    try:
        return execute(cursor, command, *arguments, **options)
    except Exception as error:
        if "INTERRUPT" not in str(error):
            raise
        message = f"Statement reached its statement or warehouse timeout of {seconds} second(s) and was canceled."
        raise ProgrammingError(msg=message, errno=630, sqlstate="57014") from None
    finally:
        timer.cancel()


class Server:
    """fakesnow's application; the answer to a login has the fields that the driver needs since its version 5."""

    async def __call__(self, scope, receive, send):
        path = scope.get("path", "")
        if path == "/statements":
            await JSONResponse(statements)(scope, receive, send)
        elif path.endswith("login-request"):
            parts = []

            async def keep(message):
                parts.append(message.get("body", b""))

            await fakesnow.server.app(scope, receive, keep)
            await JSONResponse(with_session(json.loads(b"".join(parts))))(scope, receive, send)
        else:
            await fakesnow.server.app(scope, receive, send)


def with_session(answer):
    data = answer["data"]
    data |= {"masterToken": "m", "validityInSeconds": 3600, "masterValidityInSeconds": 14400, "sessionId": 1}
    return answer


FakeSnowflakeCursor.execute = execute_within_limit
fakesnow.server.shared_fs = FakeSnow(
    create_database_on_connect=False, create_schema_on_connect=False, nop_regexes=["ALTER SESSION SET "]
)
uvicorn.run(Server(), host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
