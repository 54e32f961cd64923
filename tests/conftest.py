"""What holds for all tests: graphs that they parse are kept in a folder of their own, and few examples are tried.

`--hypothesis-profile=thorough` tries many examples; `make test-slow` does.
"""

import gc

import pytest
from hypothesis import HealthCheck, settings

from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.metrics import METRICS
from pytest_queryeval.results.run_name import COMMIT_VARIABLES
from pytest_queryeval.runs.workers.registrations import REGISTRIES
from pytest_queryeval.sandbox.host import Hosts

# Deadlines and "too slow" are about the machine, which may be busy.
settings.register_profile("small", max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", settings.get_profile("small"), max_examples=400)
settings.load_profile("small")


SERVERS = {"cluster", "mariadb", "virtuoso", "clickhouse"}
SLOW_SERVERS = {"virtuoso", "clickhouse"}
SLOW_ENGINES = ("spark", "clickhouse+native", "clickhouse+http")  # of `every_engine`
# Plugins that take longer to import than all else that a run of pytest in a process of its own does.
WITHOUT_OTHERS = "-p no:hypothesispytest -p no:anyio"


def pytest_itemcollected(item):
    fixtures = set(getattr(item, "fixturenames", ()))
    if SERVERS & fixtures:
        item.add_marker("server")
    parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
    if SLOW_SERVERS & fixtures or any(name in parameters for name in SLOW_ENGINES):
        item.add_marker("slow")


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("PYTEST_ADDOPTS", WITHOUT_OTHERS)
        for variable in COMMIT_VARIABLES:  # of the commit that is tested
            patch.delenv(variable, raising=False)
        yield


@pytest.fixture(autouse=True)
def registrations(monkeypatch):
    """Forget what a test has registered, which later tests would send to their workers."""
    for registry in REGISTRIES.values():
        monkeypatch.setattr(registry, "_registrations", {})


@pytest.fixture(scope="module", autouse=True)
def little_to_search_for_garbage():
    """Leave out of all later searches what there is before: thousands of collected tests, and libraries."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish():
    gc.unfreeze()


@pytest.fixture
def pytester(pytester, monkeypatch):
    """Give runs of `pytester`, which forgets the options of the environment, those of all tests."""
    monkeypatch.setenv("PYTEST_ADDOPTS", WITHOUT_OTHERS)
    return pytester


@pytest.fixture(scope="module")
def hosts():
    with Hosts() as pool:
        yield pool


@pytest.fixture
def session():
    with Session() as opened:
        yield opened


@pytest.fixture
def register(monkeypatch):
    """Makes a metric known for one test."""

    def add(name, function):
        monkeypatch.setitem(METRICS._members, name, METRICS._admit(function))

    return add
