"""What is an interruption and passes through code of users, and what is their error."""

import subprocess
import sys
from pathlib import Path

import pytest
from samples import make_case

from pytest_queryeval import evaluate
from pytest_queryeval.core.model import PredictorSpec
from pytest_queryeval.predictors import PREDICTORS, PredictorType

ONE_CASE = "{kind: json, cases: [{id: one, question: '?', gold: 1, predicted: 1}]}"


class Raising:
    """A system that raises an error."""

    concurrency = 1
    retries = 0

    def __init__(self, error):
        self._error = error

    def predict(self, case, trial):
        raise self._error

    def close(self):
        pass


def message_of(error):
    """The message of a case whose system raises this."""
    PREDICTORS.register("raising", PredictorType(opener=lambda spec: Raising(error)))
    spec = PredictorSpec(kind="raising", settings={}, folder=Path())
    (case,) = evaluate([make_case(predictor=spec, predicted=None, question="q")])["cases"]
    return case["message"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), pytest.exit.Exception("enough")])
def test_interruptions_pass_through_code_of_users(error):
    with pytest.raises(type(error)):
        message_of(error)


@pytest.mark.parametrize("error", [SystemExit(0), GeneratorExit(), ValueError(), pytest.skip.Exception("no")])
def test_everything_else_that_users_raise_is_their_error(error):
    assert message_of(error).startswith(f"the predictor raised {type(error).__name__}")


@pytest.mark.process
def test_a_command_exits_with_130_where_ctrl_c_interrupts_code_of_a_string(tmp_path):
    (tmp_path / "conftest.py").write_text("exec('raise KeyboardInterrupt')", encoding="utf-8")
    (tmp_path / "one.queryeval.yaml").write_text(ONE_CASE, encoding="utf-8")
    command = [sys.executable, "-m", "pytest_queryeval", "check", "."]

    completed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    assert (completed.returncode, completed.stderr) == (130, "queryeval: interrupted\n")
