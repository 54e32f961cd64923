"""The store that RDF files are kept in: where it lies, what becomes of it, and large ones."""

import os
import shutil
import tempfile
import time

import pytest

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Source
from pytest_queryeval.engines import ENGINES, graph_store, oxigraph_child
from pytest_queryeval.sandbox.host import Hosts

COUNT = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/pytest-queryeval/graphs"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "g.ttl"
    path.write_text("<http://e/a> <http://e/b> 1, 2 .", encoding="utf-8")
    return path


def counted(file, **settings):
    with Hosts() as hosts:
        source = Source(name="g", engine="rdf", settings={"files": [file.name], **settings}, folder=file.parent)
        answer = ENGINES["rdf"].open(source, hosts).execute(COUNT, timeout=30, max_rows=1).answer
        return int(answer.rows[0][0].lexical)


@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(b"x" * path.stat().st_size), os.unlink])
@pytest.mark.parametrize("pattern", ["*.sst", "CURRENT"])
@pytest.mark.parametrize("engine", ["oxigraph", "rdflib"])
def test_a_damaged_store_is_made_anew(cache, file, engine, pattern, damage):
    assert counted(file, engine=engine) == 2
    for path in cache.rglob(pattern):
        damage(path)

    assert counted(file, engine=engine) == 2
    assert counted(file, engine=engine) == 2


def test_a_store_that_lost_everything_is_made_anew(cache, file):
    counted(file)
    for folder in cache.iterdir():
        if folder.is_dir():
            shutil.rmtree(folder)
            folder.mkdir()

    assert counted(file) == 2


@pytest.mark.parametrize("home", ["", "relative", "/dev/null/cache", "/proc/cache"])
def test_without_a_cache_folder_temporary_files_serve(file, tmp_path, monkeypatch, home):
    monkeypatch.setenv("XDG_CACHE_HOME", home)
    monkeypatch.setenv("HOME", "/proc/nowhere")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    assert counted(file) == 2
    assert list(tmp_path.glob("pytest-queryeval-*/*/CURRENT"))


def test_a_folder_of_somebody_else_is_not_used(file, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / f"pytest-queryeval-{os.getuid()}").symlink_to("/")

    with pytest.raises(SourceError, match=r"no folder to keep parsed graphs in: .* belongs to another user"):
        counted(file)


@pytest.mark.parametrize("start", [" ", "<!-- a -- b -->", "<?xml version='1.0' encoding='x-foo'?>"])
def test_entities_that_one_parser_does_not_see_are_refused(cache, tmp_path, start):
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 9))
    text = f"""{start}<?xml version="1.0"?><!DOCTYPE r [<!ENTITY l0 "ha">{laughs}]>
    <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">
    <rdf:Description rdf:about="http://e/a"><e:b>&l8;</e:b></rdf:Description></rdf:RDF>"""
    (tmp_path / "g.rdf").write_text(text, encoding="utf-8")

    with pytest.raises(SourceError, match=r"g\.rdf: (its document type cannot be read|unknown encoding)"):
        counted(tmp_path / "g.rdf")


def test_a_lock_that_is_a_link_is_not_followed(cache, file, tmp_path, monkeypatch):
    counted(file)
    (store,) = (path for path in cache.iterdir() if path.is_dir())
    precious = tmp_path / "precious"
    precious.write_text("mine", encoding="utf-8")
    lock = cache / f"{store.name}.lock"
    lock.unlink()
    lock.symlink_to(precious)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    assert counted(file) == 2
    assert precious.read_text(encoding="utf-8") == "mine"


def test_a_file_that_changes_while_it_is_parsed_is_parsed_again(cache, file, monkeypatch):
    run_program = graph_store.run_program

    def changing(*arguments):
        if "3" not in file.read_text(encoding="utf-8"):
            file.write_text("<http://e/a> <http://e/b> 1, 2, 3 .", encoding="utf-8")
        run_program(*arguments)

    monkeypatch.setattr(graph_store, "run_program", changing)
    old = file.read_text(encoding="utf-8")

    assert counted(file) == 3
    monkeypatch.setattr(graph_store, "run_program", run_program)
    file.write_text(old, encoding="utf-8")
    assert counted(file) == 2


def test_stores_that_nobody_used_for_long_are_dropped(cache, file):
    counted(file)
    (first,) = [path for path in cache.iterdir() if path.is_dir()]
    long_ago = time.time() - graph_store.KEPT_SECONDS - 1
    os.utime(first, (long_ago, long_ago))
    file.write_text("<http://e/a> <http://e/b> 3 .", encoding="utf-8")

    assert counted(file) == 1
    assert not first.exists()


def test_a_build_that_fails_leaves_nothing_behind(cache, file):
    file.write_text("<http://e/a> <http://e/b> ", encoding="utf-8")

    with pytest.raises(SourceError, match=r"g\.ttl:1"):
        counted(file)
    assert [path.name for path in cache.iterdir() if path.is_dir()] == []


@pytest.mark.parametrize("name", ["a b=c.ttl", "ünïcode.ttl", "-x.ttl", "UPPER.TTL"])
def test_a_file_may_have_any_name(cache, file, name):
    file = file.rename(file.with_name(name))

    assert counted(file) == 2


def test_of_a_store_of_many_files_more_are_opened_while_a_query_runs(cache, file, monkeypatch):
    counted(file)
    monkeypatch.setattr(oxigraph_child, "OPENED_AT_START", 0)
    (store,) = (path for path in cache.iterdir() if path.is_dir())
    settings = {"store": str(store), "default_graph": [], "states_dataset": False}

    _, fetch = oxigraph_child.Driver().run(settings, COUNT, 30)

    assert fetch(2)[0][0][0] == "2"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("error at 1:26: expected one of Prefix not found, ['%'], ['-']", "error at 1:26: prefix not found"),
        ("error at 1:1: expected one of CONSTRUCT, SELECT", "error at 1:1: expected one of CONSTRUCT, SELECT"),
        (f"error at 3:4: expected one of {'[x], ' * 99}", "error at 3:4: the query cannot be read from there"),
        ("The custom function <http://f> is not supported", "The custom function <http://f> is not supported"),
    ],
)  # fmt: skip
def test_syntax_errors_are_brief(said, expected):
    assert oxigraph_child.brief(said) == expected
