"""The console script from its first moment on."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

# Ctrl-C while a module is imported, in the process that the console script starts.
INTERRUPTED_SCRIPT = """
import os, signal, sys
from importlib import import_module

signal.signal(signal.SIGINT, signal.default_int_handler)
interrupted_module, entry_point, *sys.argv[1:] = sys.argv[1:]

class Interruption:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == interrupted_module:
            os.kill(os.getpid(), signal.SIGINT)

module, _, function = entry_point.partition(":")
main = getattr(import_module(module), function)
sys.meta_path.insert(0, Interruption())
sys.exit(main())
"""
PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"


@pytest.mark.parametrize(
    "module",
    ["pytest_queryeval.cli", "pytest_queryeval.cli.output", "pytest_queryeval.features.transfer.importers.command"],
)
def test_an_interrupt_while_modules_are_imported_ends_in_one_line(tmp_path, module):
    entry_point = tomllib.loads(PYPROJECT.read_text())["project"]["scripts"]["queryeval"]
    command = [sys.executable, "-c", INTERRUPTED_SCRIPT, module, entry_point, "import", "spider", "x", "-o", "y"]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "queryeval: interrupted\n")
