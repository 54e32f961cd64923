"""The predictor `command`: a process for each case, or processes that answer line by line."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from asyncio import gather
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from pytest_queryeval.core.errors import PredictorError, SettingError
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.model import Prediction, PredictorSpec
from pytest_queryeval.core.shapes import (
    STRING,
    TRUE_OR_FALSE,
    SettingValidator,
    Shape,
    choice_setting,
    either,
    is_text,
    list_shape,
    text_setting,
    validate_settings,
)
from pytest_queryeval.features.command_predictor.processes import GRACE_SECONDS, Command, Process
from pytest_queryeval.features.command_predictor.replies import (
    decode_utf8,
    encode_question,
    exit_error,
    make_prediction,
    make_question,
    output_excerpt,
    output_too_large,
    read_line,
    read_output,
    stderr_text,
)
from pytest_queryeval.predictors import SEND_SCHEMA, SURROUNDINGS, CaseView, Predictor, PredictorType
from pytest_queryeval.text.formatting import one_line
from pytest_queryeval.text.redaction import mask_credentials, may_hold_credentials, register_secrets

MODES = ("each", "lines")
SCHEMA = "{schema}"  # a placeholder within arguments
_INTERPRETER = re.compile(r"python[\d.]*|bash|sh|node")
_SCRIPT = re.compile(r"[^-].*\.(?:py|sh|js)")
_VARIABLE = re.compile(r"[^=\0]+")


def is_environment(value: Any) -> bool:
    """Return whether a value maps names of environment variables to texts or whole numbers."""
    return isinstance(value, dict) and all(
        isinstance(name, str) and _VARIABLE.fullmatch(name) and (text == "" or is_text(text) or type(text) is int)
        for name, text in value.items()
    )


_TEXT_OR_NUMBER: Shape = {"type": ["string", "integer"]}
_WORDS = either(STRING, {**list_shape(_TEXT_OR_NUMBER), "minItems": 1})
SETTINGS = {
    "run": SettingValidator(lambda _: True, "a program and its arguments", shape=_WORDS),  # `split_command` reads it
    "mode": choice_setting(MODES),
    "env": SettingValidator(
        is_environment,
        "a mapping of names to texts: write other values in quotes",
        shape={"type": "object", "additionalProperties": _TEXT_OR_NUMBER},
    ),
    "cwd": text_setting("the name of a folder"),
    SEND_SCHEMA: TRUE_OR_FALSE,
}


def check_command(settings: Mapping[str, JsonValue]) -> None:
    """Raise `SettingError` for the first setting that is unknown, invalid or missing, or does not fit the mode."""
    validate_settings(settings, SETTINGS)
    if not split_command(settings.get("run", [])):
        raise SettingError("run", "the predictor 'command' needs `run`: a program and its arguments")
    if settings.get("mode") == "lines" and has_schema(settings):
        problem = f'"{SCHEMA}" in `run` needs a process for each case: write `{SEND_SCHEMA}: true`'
        raise SettingError("run", f"{problem}, or leave out `mode: lines`")


def has_schema(settings: Mapping[str, JsonValue]) -> bool:
    """Return whether an argument of the program contains the placeholder of the schema."""
    return any(SCHEMA in word for word in split_command(settings.get("run", []))[1:])


def split_command(run: object) -> tuple[str, ...]:
    """Return the program and its arguments as texts; a text is split like a shell command.

    The result is empty for an empty command. Raise `SettingError` if the text cannot be split, or an item is neither a
    text nor a whole number.
    """
    if isinstance(run, str):
        try:
            run = shlex.split(run)
        except ValueError as error:
            raise SettingError("run", f"`run` cannot be split into words: {error}") from error
    arguments = [str(word) if type(word) is int else word for word in run] if isinstance(run, list) else [None]
    texts = tuple(word for word in arguments if isinstance(word, str) and "\0" not in word)
    if len(texts) < len(arguments) or texts[:1] == ("",):
        raise SettingError("run", "`run` must be a list of texts: write items such as false in quotes")
    return texts


class CommandPerCase:
    """Starts the program for each case, with the case on stdin and the answer on stdout.

    `name` is the program's name in messages.
    """

    concurrency = 8
    retries = 0

    def __init__(self, command: Command, name: str, *, sends_schema: bool) -> None:
        self._command = command
        self._name = name
        self._sends_schema = sends_schema

    async def predict(self, case: CaseView, trial: int) -> Prediction:
        """Return what the program prints for a case, with the start of its stderr as metadata.

        Raise `PredictorError` if it does not start, fails, prints too much, or prints no valid answer. The process is
        ended in any case.
        """
        question = make_question(case, trial, sends_schema=self._sends_schema)
        program, *arguments = self._command.words
        words = (program, *(word.replace(SCHEMA, case.schema or "") for word in arguments))
        start = perf_counter()
        process = await _start(replace(self._command, words=words), self._name)
        try:
            process.give(encode_question(question), is_last=True)
            await process.until(lambda: process.ended)
            seconds = perf_counter() - start
        finally:
            await process.stop()
        if process.printed_too_much:
            raise output_too_large(self._name)
        if process.exit_code != 0:
            raise exit_error(process, by=self._name)
        text = decode_utf8(process.output, by=self._name)
        prediction = read_output(text, case, question, by=self._name, seconds=seconds)
        stderr = stderr_text(process.errors)
        return replace(prediction, metadata={"stderr": stderr, **prediction.metadata}) if stderr else prediction

    async def close(self) -> None:
        """Do nothing, because no process outlives its case."""


class _EarlyExitError(PredictorError):
    """The error of a process that ended with exit code 0, probably before it read the question."""


class CommandOfLines:
    """Keeps processes that answer one case after the other: a line of JSON on stdin, a line on stdout.

    `name` is the program's name in messages.
    """

    concurrency = 8
    retries = 0

    def __init__(self, command: Command, name: str, *, sends_schema: bool) -> None:
        self._command = command
        self._name = name
        self._sends_schema = sends_schema
        self._idle: list[Process] = []

    async def predict(self, case: CaseView, trial: int) -> Prediction:
        """Return the answer of an idle or new process; raise `PredictorError` if there is none, or it is invalid.

        A process that did not answer as it should is ended, because its later output must not answer the next case.
        """
        question = make_question(case, trial, sends_schema=self._sends_schema)
        start = perf_counter()
        process, line = await self._ask_any(encode_question(question))
        try:
            entry = read_line(line, case, by=self._name)
        except PredictorError:
            await process.stop()
            raise
        self._idle.append(process)
        return make_prediction(entry, case, question, by=self._name, seconds=perf_counter() - start)

    async def close(self) -> None:
        """End all processes: those that wait for input by the end of their stdin, the others by signals."""
        processes, self._idle = self._idle, []
        await gather(*(process.dismiss() for process in processes))

    async def _ask_any(self, line: bytes) -> tuple[Process, bytes]:
        """Return a process and the line that it answers to `line`.

        An idle process is used first, and skipped if it has ended; otherwise a new process is started.
        """
        while self._idle:
            process = self._idle.pop()
            if process.exit_code is not None or not process.prints:
                await process.stop()
                continue
            with suppress(_EarlyExitError):
                return process, await self._ask(process, line)
        process = await _start(self._command, self._name)
        return process, await self._ask(process, line)

    async def _ask(self, process: Process, line: bytes) -> bytes:
        """Return the line that a process answers to `line`.

        Raise `PredictorError` if it prints anything before or after, prints too much, or ends; it is then stopped.
        """
        try:
            self._require_silence(process)
            process.give(line, is_last=False)
            await process.until(lambda: b"\n" in process.output or process.ended or not process.prints)
            if process.printed_too_much:
                raise output_too_large(self._name)
            answer, line_end, remainder = process.output.partition(b"\n")
            if not line_end:
                raise await self._no_answer(process)
            process.output[:] = remainder
            self._require_silence(process)
        except BaseException:
            await process.stop()
            raise
        return bytes(answer)

    def _require_silence(self, process: Process) -> None:
        if process.output:
            text = output_excerpt(process.output.decode("utf-8", "replace"))
            raise PredictorError(f"{self._name} printed {text} that nothing asked for: one line answers one case")

    async def _no_answer(self, process: Process) -> PredictorError:
        """Return the error of a process that ended or closed its stdout without an answer."""
        if not await process.until(lambda: process.exit_code is not None, GRACE_SECONDS):
            return PredictorError(f"{self._name} closed its stdout before it answered", temporary=True)
        await process.until(lambda: process.ended)
        error = exit_error(process, by=self._name)
        has_left = process.exit_code == 0 and not process.output
        return _EarlyExitError(str(error), temporary=True) if has_left else error


def open_command(spec: PredictorSpec) -> Predictor:
    """Return the predictor of the settings; nothing is started yet.

    The settings' credentials are registered as secrets. Raise `PredictorError` for invalid settings, and if the
    program, its script or its folder does not exist.
    """
    try:
        check_command(spec.settings)
    except SettingError as error:
        raise PredictorError(str(error)) from error
    register_secrets(spec.settings)
    command = _command(spec.settings, spec.folder)
    name = _shown_name(split_command(spec.settings["run"]), command.folder)
    kind = CommandOfLines if spec.settings.get("mode") == "lines" else CommandPerCase
    return kind(command, name, sends_schema=spec.settings.get(SEND_SCHEMA, False))


def sent_surroundings(settings: Mapping[str, JsonValue]) -> frozenset[str]:
    """Return which SURROUNDINGS of a case are sent next to its question: all, the schema only if settings say so."""
    return SURROUNDINGS if settings.get(SEND_SCHEMA) or has_schema(settings) else SURROUNDINGS - {"schema"}


def _command(settings: Mapping[str, Any], folder: Path) -> Command:
    environment = {**os.environ, **{name: str(value) for name, value in settings.get("env", {}).items()}}
    program, *arguments = split_command(settings["run"])
    work = Path(os.path.abspath(folder / settings.get("cwd", ".")))  # noqa: PTH100 - resolve() would follow links
    if not os.path.isdir(work):  # noqa: PTH112 - Path.is_dir raises for names that no folder can have
        raise PredictorError(f"the command's folder is not there: {mask_credentials(str(work))}")
    executable = _executable(program, folder, environment)
    if arguments and _INTERPRETER.fullmatch(Path(program).name) and _SCRIPT.fullmatch(arguments[0]):
        script = Path(os.path.abspath(work / arguments[0]))  # noqa: PTH100 - see above
        if not _is_file(script):
            problem = f"there is no file {one_line(mask_credentials(arguments[0]))} for {Path(program).name}"
            raise PredictorError(f"{problem}: correct the path, which leads to {mask_credentials(str(script))}")
    return Command((executable, *arguments), work, environment)


def _executable(program: str, folder: Path, environment: Mapping[str, str]) -> str:
    """Return the absolute path of a program; raise `PredictorError` with a remedy if it is missing or not executable.

    A name without a slash is searched on the PATH of `environment`; a path is relative to `folder`.
    """
    shown_program = one_line(mask_credentials(program))
    if "/" not in program:
        executable = shutil.which(program, path=environment.get("PATH"))
        if executable is None:
            hint = ": install it, or write its path, as in ./bin/ask, from the folder of the file that names it"
            hint = f": did you mean './{program}'?" if _is_file(folder / program) else hint
            raise PredictorError(f"there is no program '{shown_program}' on the PATH{hint}")
        return os.path.abspath(executable)  # noqa: PTH100 - see above: a virtual environment's python is a link
    path = Path(os.path.abspath(folder / program))  # noqa: PTH100 - see above
    if not _is_file(path):
        raise PredictorError(f"there is no program '{shown_program}': {mask_credentials(str(path))} is not a file")
    if not os.access(path, os.X_OK):
        hint = f"make it so (chmod +x), or name what runs it: [python3, {shown_program}]"
        raise PredictorError(f"'{shown_program}' is not executable: {hint}")
    return str(path)


def _shown_name(command: tuple[str, ...], folder: Path) -> str:
    """Return the program's name for messages, with the script that it runs; other arguments may be secrets."""
    script = [word for word in command[1:2] if not may_hold_credentials(word) and _is_file(folder / word)]
    program = Path(command[0]).name if Path(command[0]).is_absolute() else command[0]
    return one_line(" ".join((mask_credentials(program), *script)))


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 - Path.is_file raises for names that no file can have


async def _start(command: Command, name: str) -> Process:
    try:
        return await Process.start(command)
    except (OSError, RuntimeError) as error:  # RuntimeError: a watcher of children that another loop has to run
        reason = getattr(error, "strerror", None) or str(error)
        raise PredictorError(f"{name} cannot be started: {reason}") from error


COMMAND = PredictorType(
    opener=open_command,
    text_setting="run",
    check=check_command,
    settings=SETTINGS,
    shared=True,
    sends=sent_surroundings,
)
