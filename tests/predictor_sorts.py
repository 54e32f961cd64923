"""One system under test behind every sort of predictor: what it says, and the doors to it.

A test writes the system into a folder, `open_door` puts it behind a sort of predictor, and `evaluate` asks it.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openpyxl
from http_services import Said, serving

from pytest_queryeval import evaluate, load_cases
from pytest_queryeval.cli import main
from pytest_queryeval.reports import render_json

SYSTEM = '''
"""Says what is in said.json, after it has waited as the case wants; notes each call and its end in calls.txt."""

import json
import os
import time
from contextlib import closing
from pathlib import Path

HERE = Path(__file__).parent
SAID = json.loads((HERE / "said.json").read_text(encoding="utf-8"))
MEETING = 3  # calls that wait for each other


def note(line):
    with (HERE / "calls.txt").open("a") as file:
        file.write(f"{line} {os.getpid()}\\n")


def replying(case, trial):
    """Yield seconds to wait, and return the reply."""
    note(f"+ {case['id']}")
    try:
        if case["id"].startswith("meets"):
            (HERE / f"{case['id']}.here").touch()
            while len(list(HERE.glob("*.here"))) < MEETING:
                yield 0.01
        while case["id"].startswith("late") and not (HERE / "over").exists():
            yield 0.05
        if case["id"] == "raises":
            raise ValueError(f"no\\x1b[2J answer with {os.environ['MODEL_API_KEY']} today")
        if case["id"] == "huge":
            return {"predicted": "x" * (17 * 2**20)}
        if case["id"] == "trials":
            return {"predicted": f"SELECT {trial}"}
        if case["id"] == "sees":
            return {"predicted": json.dumps(case)}
        return SAID.get(case["id"], {"predicted": "SELECT 1"})
    finally:
        note(f"- {case['id']}")


def ask(case, trial):
    with closing(replying(case, trial)) as waiting:
        while True:
            try:
                pause = next(waiting)
            except StopIteration as end:
                return end.value
            time.sleep(pause)
'''
FUNCTIONS = """
import asyncio
from collections import Counter
from contextlib import closing
from pytest_queryeval import Abstention, Prediction, Step
from SYSTEM import ask, replying

NAMES = ("id", "question", "evidence", "kind", "dialect", "source", "tags", "difficulty", "schema", "metadata")
trials = Counter()


def seen(case):
    messages = [{"role": message.role, "content": message.content} for message in case.conversation]
    values = {name: getattr(case, name) for name in NAMES}
    case = {**values, "tags": list(case.tags), "metadata": dict(case.metadata), "conversation": messages}
    trials[case["id"]] += 1
    return case, trials[case["id"]]


def prediction(case, said):
    case.metadata["told"] = "again"  # which no other call sees
    if "garbage" in said:
        return object()
    parts = dict(said)
    answer = Abstention(parts.pop("reason")) if parts.pop("abstained", False) else parts.pop("predicted")
    seconds, steps = parts.pop("seconds", 0.0), parts.pop("steps", None)
    steps = None if steps is None else [Step(**step) for step in steps]
    return Prediction(answer, seconds=seconds, steps=steps, metadata=parts)


def predict(case):
    return prediction(case, ask(*seen(case)))


async def predict_async(case):
    with closing(replying(*seen(case))) as waiting:
        while True:
            try:
                pause = next(waiting)
            except StopIteration as end:
                return prediction(case, end.value)
            await asyncio.sleep(pause)


def pytest_queryeval_predict(case, config):
    return predict(case)
"""
PROGRAM = """
import json
import sys
from SYSTEM import ask

for line in sys.stdin:
    case = json.loads(line)
    said = ask(case, case.pop("trial"))
    sys.stdout.buffer.write(b'{"predicted": "\\xe9' if "garbage" in said else json.dumps(said).encode())
    print(flush=True)
"""
SENT = ("id", "question", "evidence", "kind", "dialect", "source", "tags", "difficulty", "conversation", "schema")
FUNCTION_SORTS = ("function", "function in threads", "async function", "hook")
PROGRAM_SORTS = ("program", "program of lines")
CALLING_SORTS = (*FUNCTION_SORTS, *PROGRAM_SORTS, "service")
FILE_SORTS = ("p.jsonl", "p.json", "p.csv", "p.tsv", "p.xlsx")
FEATURES = {"program": "command_predictor", "program of lines": "command_predictor", "service": "http_predictor"}


def write_system(folder: Path, said: Mapping[str, Any]) -> None:
    """Write the system, which says this by the ids of cases, with a name that no other folder has."""
    name = f"system_of_{folder.name.replace('-', '_').replace(' ', '_')}"
    (folder / f"{name}.py").write_text(SYSTEM, encoding="utf-8")
    (folder / "functions.py").write_text(FUNCTIONS.replace("SYSTEM", name), encoding="utf-8")
    (folder / "program.py").write_text(PROGRAM.replace("SYSTEM", name), encoding="utf-8")
    (folder / "said.json").write_text(json.dumps(said), encoding="utf-8")
    (folder / "shop.sql").write_text("CREATE TABLE product (id INTEGER);", encoding="utf-8")


def write_suite(folder: Path, predictor: Any, cases: Sequence[Mapping[str, Any]], **settings: Any) -> None:
    """Write a suite of SQL; `name` is that of its file."""
    name = settings.pop("name", "s.queryeval.yaml")
    top = {
        "kind": "sql",
        "source": {"sqlite": {"script": "shop.sql"}},
        **({"predictor": predictor} if predictor else {}),
    }
    suite = {key: value for key, value in {**top, **settings}.items() if value is not None}
    (folder / name).write_text(json.dumps({**suite, "cases": cases}), encoding="utf-8")


def service_at(folder: Path):
    """What the service answers: the reply of the system, by a function that is not a predictor's."""
    names: dict[str, Any] = {"__file__": str(next(folder.glob("system_of_*.py")))}
    exec(Path(names["__file__"]).read_text(encoding="utf-8"), names)

    def answer(request):
        case = json.loads(request.body)
        try:
            said = names["ask"](case, case.pop("trial"))
        except ValueError as error:
            return Said(str(error), 500, "text/plain")
        return Said(b'{"predicted": "\xe9' if "garbage" in said else said)

    return answer


@contextmanager
def open_door(sort: str, folder: Path) -> Iterator[dict[str, Any]]:
    """Give the setting `predictor` by which a sort asks the system of a folder, three calls at once."""
    run = [sys.executable, "-S", "-B", "program.py"]
    match sort:
        case "function":
            yield {"python": "functions.py:predict"}
        case "function in threads":
            yield {"python": "functions.py:predict", "concurrency": 3}
        case "async function":
            yield {"python": "functions.py:predict_async", "concurrency": 3}
        case "hook":
            (folder / "conftest.py").write_text("from functions import pytest_queryeval_predict\n", encoding="utf-8")
            yield {"hook": {}}
        case "program":
            yield {"command": run, "concurrency": 3, "send_schema": True}
        case "program of lines":
            yield {"command": {"run": run, "mode": "lines"}, "concurrency": 3, "send_schema": True}
        case "service":
            body = {name: f"{{{name}}}" for name in (*SENT, "trial")} | {"metadata": {"top": "{metadata.top}"}}
            with serving(service_at(folder)) as running:
                yield {"http": {"url": running.url, "body": body}, "concurrency": 3, "retries": 0}


def write_predictions(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write a file of predictions, in the format of its name."""
    if path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows), encoding="utf-8")
    else:
        columns = list(dict.fromkeys(name for row in rows for name in row))
        table = [columns, *([_cell(row.get(name, "")) for name in columns] for row in rows)]
        if path.suffix == ".xlsx":
            book = openpyxl.Workbook()
            for row in table:
                book.active.append(row)
            book.save(path)
        else:
            with path.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",").writerows(table)


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list | bool) else value


def report_of(folder: Path, *options: str, hook: bool = False) -> dict[str, Any]:
    """Evaluate the suites of a folder, and return the report.

    With options by `queryeval evaluate`; with `hook` by pytest, in a process of its own.
    """
    report = folder / "report.json"
    if hook:
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--queryeval-report={report}"]
        subprocess.run(command, cwd=folder, capture_output=True, timeout=300, check=False)
    elif options:
        main(["evaluate", str(folder), f"--rootdir={folder}", f"--report={report}", *options])
    else:
        report.write_bytes(render_json(evaluate(load_cases(folder, root=folder))))
    return json.loads(report.read_bytes())
