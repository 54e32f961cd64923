"""Where vectors are kept: what is found again, and what becomes of a file that is damaged, locked or full."""

import fcntl
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing

import pytest

from pytest_queryeval.features.embeddings import Cache

pytestmark = pytest.mark.process

KEY, OTHER = b"k" * 32, b"o" * 32
VECTOR = b"a vector of some floats."


def days_of(folder):
    with closing(sqlite3.connect(folder / "m.sqlite")) as connection:
        return dict(connection.execute("SELECT key, day FROM vectors"))


def make_older(folder, days):
    with closing(sqlite3.connect(folder / "m.sqlite")) as connection, connection:
        connection.execute("UPDATE vectors SET day = day - ?", (days,))


def kept(folder, name="m", vectors=None):
    cache = Cache(name, folder)
    cache.add({KEY: VECTOR} if vectors is None else vectors)
    return cache


def test_a_vector_is_found_again_by_others_for_the_same_model(tmp_path):
    kept(tmp_path)

    assert Cache("m", tmp_path).vectors([KEY, OTHER]) == {KEY: VECTOR}
    assert Cache("m", tmp_path).vectors([]) == Cache("n", tmp_path).vectors([KEY]) == {}


def test_more_vectors_than_a_statement_takes_are_found(tmp_path):
    many = {number.to_bytes(32, "big"): VECTOR for number in range(3_000)}
    kept(tmp_path, vectors=many)

    assert Cache("m", tmp_path).vectors(many.keys()) == many


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: b"x" * len(content),
        lambda content: content[: len(content) // 2],
        lambda content: content[:100] + bytes(len(content) - 100),
        lambda content: b"some text",
    ],
    ids=["empty", "overwritten", "half", "zeros", "text"],
)
def test_a_damaged_file_is_made_anew(tmp_path, damage):
    many = {number.to_bytes(32, "big"): VECTOR * 50 for number in range(100)}
    kept(tmp_path, vectors=many).close()
    path = tmp_path / "m.sqlite"
    path.write_bytes(damage(path.read_bytes()))

    cache = Cache("m", tmp_path)
    assert len(cache.vectors(many.keys())) < len(many)
    cache.add({KEY: VECTOR})
    assert cache.vectors([KEY]) == {KEY: VECTOR}
    assert Cache("m", tmp_path).vectors([KEY]) == {KEY: VECTOR}


def test_a_file_that_is_damaged_while_it_is_open_is_made_anew(tmp_path):
    cache = kept(tmp_path)
    path = tmp_path / "m.sqlite"
    path.write_bytes(b"x" * path.stat().st_size)

    cache.add({OTHER: VECTOR})

    assert cache.vectors([OTHER]) == {OTHER: VECTOR}
    assert Cache("m", tmp_path).vectors([OTHER]) == {OTHER: VECTOR}


def test_a_vector_that_was_overwritten_is_not_taken(tmp_path):
    kept(tmp_path).close()
    path = tmp_path / "m.sqlite"
    path.write_bytes(path.read_bytes().replace(VECTOR, VECTOR.swapcase()))

    assert Cache("m", tmp_path).vectors([KEY]) == {}
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE vectors SET vector = zeroblob(4)")  # the checksum of nothing
    assert Cache("m", tmp_path).vectors([KEY]) == {}


def test_a_file_that_another_one_has_locked_for_too_long_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(f"{Cache.__module__}.BUSY_SECONDS", 0.1)
    kept(tmp_path)
    with closing(sqlite3.connect(tmp_path / "m.sqlite", isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        cache = kept(tmp_path, vectors={OTHER: VECTOR})

        assert cache.vectors([KEY, OTHER]) == {OTHER: VECTOR}

    assert Cache("m", tmp_path).vectors([KEY, OTHER]) == {KEY: VECTOR}


def test_a_file_that_is_read_by_others_is_read_though_its_days_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.setattr(f"{Cache.__module__}.BUSY_SECONDS", 0.1)
    kept(tmp_path)
    make_older(tmp_path, 2)
    with closing(sqlite3.connect(tmp_path / "m.sqlite", isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")

        assert Cache("m", tmp_path).vectors([KEY]) == {KEY: VECTOR}


def test_a_full_disk_fails_nothing(tmp_path):
    program = f"""
import resource
from pathlib import Path
from pytest_queryeval.features.embeddings.cache import Cache
resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))
cache = Cache("m", Path({str(tmp_path)!r}))
vectors = {{bytes([number]) * 32: bytes(3_000) for number in range(100)}}
cache.add(vectors)
assert cache.vectors(vectors.keys()) == vectors
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, timeout=300)


@pytest.mark.parametrize("home", ["", "relative", "/dev/null/cache", "/proc/cache"])
def test_without_a_cache_folder_temporary_files_serve(tmp_path, monkeypatch, home):
    monkeypatch.setenv("XDG_CACHE_HOME", home)
    monkeypatch.setenv("HOME", "/proc/nowhere")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    kept(None)

    assert Cache("m").vectors([KEY]) == {KEY: VECTOR}
    assert list(tmp_path.glob("pytest-queryeval-*/m.sqlite"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # the folder of the user is taken first
    kept(None)
    assert (tmp_path / "pytest-queryeval/embeddings/m.sqlite").is_file()


def test_without_any_folder_memory_serves(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / f"pytest-queryeval-{os.getuid()}").symlink_to("/")

    cache = kept(None)
    with cache.turn():
        assert cache.vectors([KEY]) == {KEY: VECTOR}
    assert Cache("m").vectors([KEY]) == {}


def test_a_lock_that_is_a_link_is_not_followed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/dev/null")
    precious = tmp_path / "precious"
    precious.write_text("mine", encoding="utf-8")
    (tmp_path / "m.lock").symlink_to(precious)

    assert kept(tmp_path).vectors([KEY]) == {KEY: VECTOR}
    assert precious.read_text(encoding="utf-8") == "mine"


def test_vectors_that_nobody_used_for_long_are_dropped_and_those_that_are_used_stay(tmp_path):
    kept(tmp_path)
    today = days_of(tmp_path)[KEY]
    make_older(tmp_path, 29)
    assert Cache("m", tmp_path).vectors([KEY]) == {KEY: VECTOR}
    assert days_of(tmp_path)[KEY] >= today
    make_older(tmp_path, 31)

    kept(tmp_path, vectors={OTHER: VECTOR})

    assert Cache("m", tmp_path).vectors([KEY, OTHER]) == {OTHER: VECTOR}


def test_a_file_does_not_grow_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(f"{Cache.__module__}.MAX_BYTES", 200_000)
    cache = Cache("m", tmp_path)
    for number in range(100):
        cache.add({bytes([number]) * 32: bytes(10_000)})

    assert (tmp_path / "m.sqlite").stat().st_size < 300_000
    assert cache.vectors([bytes([99]) * 32, bytes([0]) * 32]) == {bytes([99]) * 32: bytes(10_000)}


def test_files_of_models_that_nobody_used_for_long_are_removed(tmp_path):
    kept(tmp_path, "old")
    long_ago = time.time() - 400 * 86_400
    os.utime(tmp_path / "old.sqlite", (long_ago, long_ago))

    kept(tmp_path)

    assert not (tmp_path / "old.sqlite").exists()
    assert Cache("m", tmp_path).vectors([KEY]) == {KEY: VECTOR}


def test_processes_that_write_at_once_lose_nothing(tmp_path):
    program = """
import sys
from pathlib import Path
from pytest_queryeval.features.embeddings.cache import Cache
cache = Cache("m", Path(sys.argv[1]))
for number in range(50):
    cache.add({bytes([int(sys.argv[2]), number]) * 16: bytes(2_000)})
"""
    writers = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path), str(number)]) for number in range(3)]
    assert [writer.wait(timeout=300) for writer in writers] == [0] * 3

    keys = [bytes([writer, number]) * 16 for writer in range(3) for number in range(50)]
    assert len(Cache("m", tmp_path).vectors(keys)) == len(keys)


def test_who_comes_second_waits_and_finds_what_the_first_one_made(tmp_path):
    first, second = Cache("m", tmp_path), Cache("m", tmp_path)
    has_begun = threading.Event()

    def make():
        with first.turn():
            has_begun.set()
            time.sleep(0.3)
            first.add({KEY: VECTOR})

    maker = threading.Thread(target=make)
    maker.start()
    has_begun.wait()
    with second.turn():
        assert second.vectors([KEY]) == {KEY: VECTOR}
    maker.join()


def test_who_makes_nothing_is_not_waited_for_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(f"{Cache.__module__}.WAIT_SECONDS", 0.2)
    cache = Cache("m", tmp_path)

    with (tmp_path / "m.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with cache.turn():
            cache.add({KEY: VECTOR})

    assert cache.vectors([KEY]) == {KEY: VECTOR}
