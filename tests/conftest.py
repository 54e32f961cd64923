"""What holds for all tests: graphs that they parse are kept in a folder of their own, and few examples are tried.

`--hypothesis-profile=thorough` tries many examples; `make test-slow` does.
"""

import functools
import gc
import gettext
import signal
import sys

import pytest
from child_processes import leave_out_tests_that_start_processes
from hidden_features import pytest_addoption, pytest_configure, pytest_ignore_collect, pytest_runtest_setup  # noqa: F401 - hooks
from hypothesis import HealthCheck, settings
from installed_modules import InstalledModules, remember_distributions
from samples import COMMIT_VARIABLES

from pytest_queryeval.core.registry import USED_BY_WORKERS  # white box: what tests have registered is forgotten
from pytest_queryeval.evaluation import Session
from pytest_queryeval.metrics import METRICS
from pytest_queryeval.predictors import PREDICTORS
from pytest_queryeval.reports import REPORTS
from pytest_queryeval.sandbox.host import Hosts

# Deadlines and "too slow" are about the machine, which may be busy.
settings.register_profile("small", max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", settings.get_profile("small"), max_examples=400)
settings.load_profile("small")


SERVERS = {"cluster", "mariadb", "virtuoso", "clickhouse", "snowflake"}
SLOW_SERVERS = {"virtuoso", "clickhouse", "snowflake"}
SLOW_ENGINES = ("spark", "clickhouse+native", "clickhouse+http", "snowflake")  # of `every_engine`
# Plugins that take longer to import than all else that a run of pytest in a process of its own does.
WITHOUT_OTHERS = "-p no:hypothesispytest -p no:anyio"


def pytest_itemcollected(item):
    fixtures = set(getattr(item, "fixturenames", ()))
    if {"pytester", "shared_pytester"} & fixtures:
        item.add_marker("process")
    if SERVERS & fixtures:
        item.add_marker("server")
    parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
    if SLOW_SERVERS & fixtures or any(name in parameters for name in SLOW_ENGINES):
        item.add_marker("slow")


def pytest_collection_finish():
    gc.freeze()  # what thousands of tests and modules hold would be searched by each collection of garbage


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("PYTEST_ADDOPTS", WITHOUT_OTHERS)
        for variable in COMMIT_VARIABLES:  # of the commit that is tested
            patch.delenv(variable, raising=False)
        yield


@pytest.fixture(scope="session", autouse=True)
def processes_as_selected(pytestconfig):
    with pytest.MonkeyPatch.context() as patch:
        if "not process" in pytestconfig.option.markexpr:
            leave_out_tests_that_start_processes(patch)
        yield


@pytest.fixture(scope="session")
def members_of_registries():
    registries = (*USED_BY_WORKERS.values(), PREDICTORS, REPORTS)
    for registry in registries:
        registry.names()  # reads entry points, which are read once
    return {registry: dict(registry._members) for registry in registries}


@pytest.fixture(autouse=True)
def registrations(members_of_registries):
    """Forget what a test has registered, and the conftest.py files by which it has.

    Later tests would send it to their workers. A conftest.py that is still imported would not register it again.
    """
    yield
    registries_to_restore = [registry for registry in members_of_registries if registry._registrations]
    for registry in registries_to_restore:
        registry._members = {
            name: member if name in registry._registrations else registry._members[name]
            for name, member in members_of_registries[registry].items()
        }
        registry._registrations = {}
    if registries_to_restore:
        for name in [name for name in sys.modules if name.startswith("queryeval conftest of ")]:
            del sys.modules[name]


def pytest_collection_modifyitems(items):
    """Let one worker run all tests that load an embedding model: the first worker starts with the first tests."""
    items.sort(key=lambda item: item.get_closest_marker("model") is None)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Search for no garbage while tests are collected: thousands of items are kept."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.fixture(scope="module", autouse=True)
def little_to_search_for_garbage():
    """Leave out of all later searches what there is before: thousands of collected tests, and libraries."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish():
    gc.unfreeze()


@pytest.fixture(scope="session", autouse=True)
def sigint_interrupts():
    """Let SIGINT interrupt tests and their programs, which would ignore it in `nohup make test` or `make test &`."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def distributions_read_once():
    with pytest.MonkeyPatch.context() as patch:
        remember_distributions(patch)
        yield


@pytest.fixture(scope="session", autouse=True)
def translations_searched_once():
    """Let argparse, which asks for each of its words when a command starts, search the disk once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gettext, "find", functools.cache(gettext.find))
        yield


@pytest.fixture(scope="session")
def installed_modules():
    return InstalledModules()


@pytest.fixture
def _imports_stay(installed_modules):
    """Undo the last thing that `pytester` does after a test: forget all that the test has imported."""
    yield
    installed_modules.restore()


def give_what_all_tests_have(pytester, patch, installed_modules):
    """Give runs of `pytester`, which forgets options of the environment and imports, what all tests have."""
    inline_run = pytester.inline_run

    def run(*args, plugins=(), **options):
        try:
            return inline_run(*args, plugins=[*plugins, installed_modules], **options)
        finally:
            installed_modules.restore()

    patch.setattr(pytester, "inline_run", run)
    patch.setenv("PYTEST_ADDOPTS", WITHOUT_OTHERS)


@pytest.fixture
def pytester(_imports_stay, installed_modules, pytester, monkeypatch):
    give_what_all_tests_have(pytester, monkeypatch, installed_modules)
    yield pytester
    installed_modules.remember()


class ModuleRequest:
    """A request of a fixture that a whole module shares, as `Pytester` wants it: without a function."""

    function = None

    def __init__(self, request):
        self.node, self.config, self.addfinalizer = request.node, request.config, request.addfinalizer


@pytest.fixture(scope="module")
def _shared_imports_stay(installed_modules):
    yield
    installed_modules.restore()


@pytest.fixture(scope="module")
def shared_pytester(_shared_imports_stay, request, tmp_path_factory, installed_modules):
    """A folder for runs of pytest whose results several tests look at."""
    with pytest.MonkeyPatch.context() as patch:
        pytester = pytest.Pytester(ModuleRequest(request), tmp_path_factory, patch, _ispytest=True)
        give_what_all_tests_have(pytester, patch, installed_modules)
        yield pytester
        installed_modules.remember()


@pytest.fixture
def working_folder(tmp_path, monkeypatch):
    """An empty folder, in which the test runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def hosts():
    with Hosts() as pool:
        yield pool


class KeptHosts(Hosts):
    """Hosts that a session does not close."""

    def close(self):
        pass


@pytest.fixture(scope="module", autouse=True)
def kept_hosts():
    """Let all evaluations of a module share their child processes, as the cases of one run do.

    A module whose tests are about the processes of a session has a fixture of this name, which does nothing.
    """
    hosts = KeptHosts()
    with pytest.MonkeyPatch.context() as patch:
        for module in ("evaluation.session", "testing"):
            patch.setattr(f"pytest_queryeval.{module}.Hosts", lambda: hosts)
        yield
    Hosts.close(hosts)


@pytest.fixture
def impatient(monkeypatch):
    """Give up servers that answer nothing after a late query soon."""
    monkeypatch.setattr("pytest_queryeval.engines.bases.PATIENCE_SECONDS", 0.2)


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
