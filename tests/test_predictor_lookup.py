"""Whether a predictor's function is there, told by its text: nothing is imported, and no right target is refused."""

import pytest

from pytest_queryeval.core.errors import SettingError
from pytest_queryeval.predictors.python import check_function

RAISES = "raise RuntimeError('imported')\n"


@pytest.fixture
def problem(tmp_path):
    """What is said of a target whose file, if any, has this text."""

    def said(target, code=None, file="predict.py"):
        if code is not None:
            (tmp_path / file).parent.mkdir(exist_ok=True)
            (tmp_path / file).write_bytes(code.encode() if isinstance(code, str) else code)
        try:
            check_function(target, tmp_path)
        except SettingError as error:
            return str(error)
        return ""

    return said


@pytest.mark.parametrize(
    "code",
    [
        "def predict(case): ...",
        "async def predict(case): ...",
        "class predict: ...",
        "predict = print",
        "predict: object = print",
        "other = (predict, *rest) = print, 1",
        "from app import predict",
        "from app import answer as predict",
        "import predict",
        "import app.nl2sql as predict",
        "try:\n    from app import predict\nexcept ImportError:\n    predict = None",
        "if True:\n    def predict(case): ...\nelse:\n    pass",
        "with open('x') as predict: ...",
        "for predict in [print]: ...",
        "(predict := print)",
        "[predict := name for name in (print,)]",
        "match print:\n    case predict: ...",
        "def setup():\n    global predict\n    predict = print",
        "class A:\n    def setup(self):\n        global predict\n        def predict(case): ...",
        # What no statement spells out
        "from app import *",
        "from app.all import  *",
        "def __getattr__(name): ...",
        "from app import __getattr__",
        "globals()['predict'] = print",
        "exec('def predict(case): ...')",
        "import os; from os.path import *",
        "try: from os.path import *\nexcept ImportError: pass",
        "import sys\nsetattr(sys.modules[__name__], 'pre' + 'dict', print)",
        "import sys\nsys.modules[__name__] = object()",
        # What is not a mistake either
        '"\\d"\ndef predict(case): ...',
        b"# coding: latin-1\n# \xe9\ndef predict(case): ...",
        b"\xef\xbb\xbfdef predict(case): ...\r\n",
    ],
)
def test_a_name_that_a_module_binds_in_any_way_is_accepted(problem, recwarn, code):
    end = b"\n" + RAISES.encode() if isinstance(code, bytes) else f"\n{RAISES}"

    assert problem("predict.py:predict", code + end) == ""
    assert list(recwarn) == []


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def predikt(case): ...", "there is no function 'predict' in predict.py: did you mean 'predikt'?"),
        ("", "there is no function 'predict' in predict.py"),
        (
            "class Model:\n    def predict(self, case): ...",
            "there is no function 'predict' in predict.py: choose from Model",
        ),
        ("def make():\n    def predict(case): ...", "there is no function 'predict' in predict.py: choose from make"),
        ("model = print\nmodel.predict = print", "there is no function 'predict' in predict.py: choose from model"),
        ("x = 1\ndef predict(case)\n", "predict.py:2: not Python: expected ':'"),
    ],
)
def test_a_name_that_a_module_does_not_bind_is_refused_with_what_it_has(problem, code, said):
    assert problem("predict.py:predict", code) == said


def test_a_file_that_is_not_there_is_refused_with_one_that_is(problem):
    assert problem("predict.py:f", "def f(case): ...", "predictor.py") == (
        "there is no file predict.py: did you mean 'predictor.py'?"
    )
    assert problem("bots/predict.py:f", "", "bots/predicts.py") == (
        "there is no file bots/predict.py: did you mean 'bots/predicts.py'?"
    )
    assert problem("nowhere/predict.py:f") == "there is no file nowhere/predict.py"
    assert problem(f"{'x' * 300}.py:f").startswith("there is no file xxx")
    assert problem(f"{'x' * 300}/predict.py:f").startswith("there is no file xxx")


def test_modules_are_left_to_the_run(problem):
    assert problem("no_such_app.sql:predict") == ""
