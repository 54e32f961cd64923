"""The statements that make the tables of a source, as its engine gives them."""

from contextlib import closing
from pathlib import Path

from pytest_queryeval.core.model import Source
from pytest_queryeval.engines import ENGINES

SCRIPT = """
create table Singer (
    id integer primary key, -- 'quoted' and "quoted"
    "full name" text not null
);
create table appearance (singer int references Singer (id), day text, primary key (singer, day));
create view names as select "full name" from Singer;
"""


def ddl(hosts, engine, folder=Path(), **settings):
    source = Source(name="music", engine=engine, settings=settings, folder=folder)
    with closing(ENGINES[engine].open(source, hosts)) as opened:
        return opened.ddl(timeout=20)


def lines(text):
    return [line.strip() for line in text.splitlines()]
