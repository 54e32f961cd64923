"""What a predictor cannot do by raising."""

from __future__ import annotations

import pytest
from singers import GOLD, unpredicted

RAISES = f"""
import asyncio
import pytest

def predict(case):
    if "skips" in case.id:
        pytest.skip("not today")
    if "expects" in case.id:
        pytest.xfail("known")
    if "ends" in case.id:
        raise GeneratorExit("over")
    if "exits" in case.id:
        pytest.exit("enough")
    return {GOLD!r}

async def predict_async(case):
    await asyncio.sleep(0)
    return predict(case)
"""
PREDICTORS = {
    "in-turn": {"python": "predict.py:predict"},
    "in-threads": {"python": "predict.py:predict", "concurrency": 3},
    "async": {"python": "predict.py:predict_async"},
    "hook": {"hook": {}},
}


def test_a_predictor_can_neither_skip_a_case_nor_expect_it_to_fail(suite, write, run_and_parse):
    write("predict.py", RAISES)
    hook = "def pytest_queryeval_predict(case, config): return predict(case)"
    write("conftest.py", f"from predict import predict\n\n\n{hook}\n")
    raised = {"skips": "Skipped: not today", "expects": "XFailed: known", "ends": "GeneratorExit: over"}
    for name, predictor in PREDICTORS.items():
        asked = [unpredicted(f"{name}-{id_}") for id_ in (*raised, "good")]
        suite(*asked, name=f"{name}.queryeval.yaml", predictor={**predictor, "timeout": 20})

    run = run_and_parse("-p", "no:cacheprovider")

    for name in PREDICTORS:
        assert run.outcomes[f"{name}-good"] == "passed"
        for id_, text in raised.items():
            assert run.outcomes[f"{name}-{id_}"] == "error"
            assert f" raised {text} (" in run.case(f"{name}-{id_}")["message"]
    assert run.result.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("settings", [{}, {"concurrency": 3}], ids=["in turn", "in threads"])
def test_a_predictor_may_end_the_run(suite, write, run_and_parse, settings):
    write("predict.py", RAISES)
    predictor = {"python": "predict.py:predict", **settings}
    suite(*map(unpredicted, ("good", "exits", "later")), predictor=predictor)

    run = run_and_parse()

    assert run.result.ret == pytest.ExitCode.INTERRUPTED
    assert "_pytest.outcomes.Exit: enough" in run.text
    assert run.outcomes == {"good": "passed"}
