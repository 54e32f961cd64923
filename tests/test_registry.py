import sys
from importlib.metadata import EntryPoint, EntryPoints
from types import SimpleNamespace

import pytest

from pytest_queryeval.core.errors import MissingFeatureError, QueryEvalError, UnknownNameError, did_you_mean
from pytest_queryeval.core.json_value import JsonAnswer
from pytest_queryeval.core.metric import Metric, describe_metric, metric
from pytest_queryeval.core.registry import (  # white box: a registry without the members that are installed
    Registry,
    installed_entry_points,
)
from pytest_queryeval.core.table import Policy, Table
from pytest_queryeval.metrics import MetricRegistry

GROUP = "pytest_queryeval.tested"
ENTRY_POINTS = "pytest_queryeval.core.registry.installed_entry_points"


def make(**members):
    return Registry("engine", group=GROUP, members=members)


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The name of a module that counts how often it was imported, and is forgotten after the test."""
    (tmp_path / "lately_imported.py").write_text("class Home:\n    thing = object()\nthing = Home.thing\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "lately_imported"
    sys.modules.pop("lately_imported", None)


@pytest.fixture
def install(monkeypatch):
    """Makes an entry point known, as an installed package does."""
    calls = []

    def add(name, value):
        def installed_entry_points():
            calls.append(name)
            return EntryPoints([EntryPoint(name=name, value=value, group=GROUP)])

        monkeypatch.setattr(ENTRY_POINTS, installed_entry_points)
        return calls

    return add


@pytest.mark.parametrize("way", ["member", "nested", "registered", "entry point", "entry point with extras"])
def test_a_member_is_imported_once_when_it_is_asked_for_and_not_before(module, install, way):
    place = f"{module}:Home.thing" if way in ("nested", "entry point with extras") else f"{module}:thing"
    if way.startswith("entry point"):
        install("late", f"{place} [fast]" if way.endswith("extras") else place)
    registry = make(sqlite=1, **({"late": place} if way in ("member", "nested") else {}))
    if way == "registered":
        registry.register("late", place)

    assert "late" in registry
    assert registry.names() == ("sqlite", "late")
    assert module not in sys.modules
    first = registry["late"]
    assert first is sys.modules[module].thing
    del sys.modules[module]
    assert registry["late"] is first


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("no_such_module:thing", "ModuleNotFoundError"),
        ("json:no_such_thing", "AttributeError"),
        ("not a place", "ValueError"),
    ],
)
def test_a_member_that_cannot_be_imported_is_named_with_its_place(place, reason):
    with pytest.raises(QueryEvalError, match=rf"^engine 'late' cannot be imported from {place}: {reason}: "):
        make(late=place)["late"]


def test_an_unknown_name_far_from_all_is_reported_with_all():
    message = "unknown engine 'xyz': choose from duckdb, sqlite, or install the package that adds it"
    with pytest.raises(UnknownNameError, match=f"^{message}$"):
        make(sqlite=1, duckdb=2)["xyz"]


def test_a_registry_is_iterated_like_a_mapping(module, install):
    install("theirs", "json:loads")
    registry = make(late=f"{module}:thing", sqlite=1)

    assert (list(registry), len(registry)) == (["late", "sqlite", "theirs"], 3)
    assert module not in sys.modules  # names alone import nothing

    assert dict(registry) == {"late": registry["late"], "sqlite": 1, "theirs": registry["theirs"]}
    assert (registry.get("sqlite"), registry.get("mysql"), registry.get("mysql", 2)) == (1, None, 2)


def test_an_object_can_be_registered_and_replaced():
    registry = make(sqlite="old")

    registry.register("sqlite", 1)
    registry.register("ours", 2)

    assert (registry["sqlite"], registry["ours"]) == (1, 2)
    assert registry.names() == ("sqlite", "ours")


def test_an_entry_point_does_not_replace_a_member_of_its_name(install):
    install("sqlite", "no_such_module:thing")
    registry = make(sqlite=1)

    assert registry.names() == ("sqlite",)
    assert registry["sqlite"] == 1


def test_no_package_replaces_a_feature_by_an_entry_point_of_its_name(monkeypatch):
    feature = EntryPoint(name="csv", value="pytest_queryeval.core.errors:did_you_mean", group=GROUP)
    points = [EntryPoint(name=name, value="no_such_module:thing", group=GROUP) for name in ("aaa", "csv")]
    monkeypatch.setattr(ENTRY_POINTS, lambda: EntryPoints([*points, feature]))
    registry = make()

    assert registry.names() == ("csv", "aaa")
    assert registry["csv"] is did_you_mean


@pytest.mark.feature("history")
def test_a_feature_that_lacks_a_module_is_not_called_missing():
    features = "pytest_queryeval.features"  # apart, or all tests here would be left out without the feature
    registry = make(history=f"{features}.history.no_such_module:thing")

    with pytest.raises(QueryEvalError, match=r"'history' cannot be imported from .*no_such_module") as raised:
        registry["history"]
    assert not isinstance(raised.value, MissingFeatureError)


def test_entry_points_are_read_once_and_only_for_names_that_are_not_known(install):
    entry_point = install("theirs", "json:loads")
    registry = make(sqlite=1)

    assert registry["sqlite"] == 1
    assert entry_point == []
    assert "unknown" not in registry
    assert "theirs" in registry
    assert entry_point == ["theirs"]


def distribution(name, *points):
    """An installed package with these entry points."""
    text = "".join(f"[{point.group}]\n" for point in points)
    return SimpleNamespace(name=name, read_text=lambda _: text, entry_points=EntryPoints(points))


def test_of_a_package_that_is_installed_twice_the_first_one_adds(monkeypatch):
    new, old = (EntryPoint(name, "theirs:thing", "pytest_queryeval.metrics") for name in ("new", "old"))
    found = [distribution("theirs", new), distribution("theirs", old), distribution("other")]
    monkeypatch.setattr("pytest_queryeval.core.registry.distributions", lambda: found)

    assert [*installed_entry_points.__wrapped__()] == [new]


def test_a_package_that_adds_to_a_group_of_earlier_versions_is_an_error(monkeypatch):
    point = EntryPoint("theirs", "their.module:thing", "pytest_queryeval.challengers")
    monkeypatch.setattr("pytest_queryeval.core.registry.distributions", lambda: [distribution("theirs", point)])
    monkeypatch.setattr(ENTRY_POINTS, installed_entry_points.__wrapped__)  # not the cached ones

    with pytest.raises(
        QueryEvalError, match=r"'theirs' of another package is in the group .*\.challengers, which this"
    ):
        make(sqlite=1).names()


def make_metrics():
    return MetricRegistry("metric", group=GROUP, members={})


def test_options_are_the_keyword_only_arguments_that_the_evaluation_does_not_inject():
    def ours(gold, predicted, weight=1, *, alpha=0.5, beta: float = 0.1, policy: Policy, schema=None):
        return 1.0

    described = describe_metric(ours)

    assert described.options == {"alpha", "beta"}
    assert described.injected == {"policy", "schema"}


def test_a_decorated_function_stays_as_it_is_and_tells_what_it_needs():
    @metric(kinds=frozenset({"sql"}), input="executions", rewrite=(str.lower, str.upper))
    def ours(gold, predicted, *, alpha=0.5):
        return alpha

    registry = make_metrics()
    registry.register("ours", ours)

    assert ours(None, None, alpha=0.25) == 0.25
    assert registry["ours"] == Metric(
        function=ours,
        answers=Table,
        kinds=frozenset({"sql"}),
        input="executions",
        rewrite=(str.lower, str.upper),
        options=frozenset({"alpha"}),
        max_score=1.0,
    )
    assert registry["ours"].applies_to("sql", Table)
    assert not registry["ours"].applies_to("json", JsonAnswer)


def test_a_member_of_a_feature_that_is_not_installed_is_named_with_it_and_not_available():
    registry = make(here=1, gone="pytest_queryeval.features.gone:THING")

    with pytest.raises(MissingFeatureError, match=r"^engine 'gone' needs the feature gone, which is not installed$"):
        registry["gone"]
    assert registry.names() == ("here", "gone")
    assert registry.available() == {"here": 1}
