"""What code of users writes to standard output while a command runs: when it is shown, and without secrets."""

import io

import pytest

from pytest_queryeval.cli.output import RedactedStream

MARK = "[redacted]"
SECRET = "sk-0123456789abcdef"


@pytest.fixture
def streams(monkeypatch):
    monkeypatch.setenv("MODEL_KEY", SECRET)
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)

    def written():
        return terminal.buffer.getvalue().decode()

    return RedactedStream(terminal), written


def test_a_prompt_is_shown_before_its_line_ends(streams):
    stream, written = streams

    print("Continue? ", end="", flush=True, file=stream)
    assert written() == "Continue? "

    print(f"yes, {SECRET}", file=stream)
    assert written() == f"Continue? yes, {MARK}\n"


def test_a_secret_in_pieces_that_are_flushed_is_not_shown(streams):
    stream, written = streams

    for character in f"it is {SECRET} or s":
        print(character, end="", flush=True, file=stream)
    assert written() == f"it is {MARK} or "

    stream.end()
    assert written() == f"it is {MARK} or s"


def test_a_flush_within_the_beginning_of_a_longer_secret_shows_no_part_of_it(streams, monkeypatch):
    monkeypatch.setenv("OTHER_KEY", f"{SECRET}-and-more")
    monkeypatch.setenv("THIRD_KEY", "cdef-other-secret")
    stream, written = streams

    print(f"it is {SECRET}", end="", flush=True, file=stream)
    assert SECRET[:4] not in written()

    print("-and-more.", file=stream)
    assert written() == f"it is {MARK}.\n"


def test_bytes_are_written_without_secrets(streams):
    stream, written = streams
    data = f"é {SECRET}\n".encode()

    assert [stream.buffer.write(data[:1]), stream.buffer.write(memoryview(data)[1:])] == [1, len(data) - 1]
    stream.buffer.write(b"\xff ")
    stream.buffer.flush()

    assert written() == f"é {MARK}\n\\xff "


def test_a_text_stream_on_the_buffer_writes_without_secrets(streams):
    stream, written = streams

    with io.TextIOWrapper(stream.buffer, encoding="utf-8") as wrapper:
        print(SECRET, file=wrapper)

    assert written() == f"{MARK}\n"
