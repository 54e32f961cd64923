"""Runs that start no process, as `make quick`: whatever would start one is skipped at that point."""

import os
import subprocess

import pytest


def _skip(*_args, **_options):
    pytest.skip("starts a process")


def leave_out_tests_that_start_processes(patch: pytest.MonkeyPatch) -> None:
    """Let tests end as skipped where they start a process, so that none of them needs a marker for it."""
    patch.setattr(subprocess.Popen, "__init__", _skip)
    for name in ("fork", "forkpty", "posix_spawn", "posix_spawnp"):
        patch.setattr(os, name, _skip)
