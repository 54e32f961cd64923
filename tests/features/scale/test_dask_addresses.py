"""Addresses of Dask schedulers."""

import re
import sys

import pytest

from pytest_queryeval import QueryEvalError
from pytest_queryeval.features.scale.dask import dask_executor


@pytest.mark.parametrize(
    "address",
    ["dask://", "dask://a:1/x", "dask://a", "dask://a:b", "dask://a:1?b", "dask://[::1"],
)
def test_an_address_that_is_none_of_a_scheduler_is_refused(address):
    with pytest.raises(QueryEvalError, match=f"expected dask://HOST:PORT, .* found '{re.escape(address)}'"):
        dask_executor(address).__enter__()


def test_the_password_in_an_address_is_in_no_message():
    with pytest.raises(QueryEvalError, match=r"found 'dask://a:1'$"):
        dask_executor("dask://me:swordfish@a:1").__enter__()


def test_dask_that_is_not_installed_is_an_error_with_its_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)

    with pytest.raises(QueryEvalError, match=r"dask://a:1 needs the package 'distributed', .*: pip install 'pytest-q"):
        dask_executor("dask://a:1").__enter__()
