"""What holds for all tests: graphs that they parse are kept in a folder of their own, and few examples are tried.

`--hypothesis-profile=thorough` tries many examples; `make test-slow` does.
"""

import pytest
from hypothesis import HealthCheck, settings

# Deadlines and "too slow" are about the machine, which may be busy.
settings.register_profile("small", max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", settings.get_profile("small"), max_examples=400)
settings.load_profile("small")


SERVERS = {"cluster", "mariadb"}


def pytest_itemcollected(item):
    if SERVERS & set(getattr(item, "fixturenames", ())):
        item.add_marker("server")


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield
