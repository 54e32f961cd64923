"""Python functions as systems: how their answers are read, what their faults are called, and what they import.

What holds for all predictors is in test_predictor_contract.py.
"""

import asyncio
import importlib
import inspect
import json
import pickle
import sys
from dataclasses import replace

import pytest
from installed_modules import is_installed
from samples import make_view, query, table

from pytest_queryeval.core.errors import PredictorError, SettingError
from pytest_queryeval.core.model import Abstention, Prediction, PredictorSpec, QueryOrAnswer, Step
from pytest_queryeval.predictors import PREDICTORS

PREDICT = "def predict(case):\n    return "
ASYNC = "async def ask():\n    return 'SELECT 1'\n"
NESTED = "def nested():\n    found = []\n    for _ in range(100_000):\n        found = [found]\n    return found\n"
TYPES = (
    "class Answer:\n    def __init__(self):\n        self.query = 'SELECT 1'\n"
    "class Odd(dict):\n    def items(self):\n        raise OSError('gone')\n"
    "class Ask:\n    async def __call__(self, case):\n        return 'SELECT 1'\n"
)


def spec_of(folder, target):
    return PredictorSpec(kind="python", settings={"target": target}, folder=folder)


def function(folder, code, target="predict.py:predict"):
    """The predictor of a function in a file with this code."""
    path = folder / target.rpartition(":")[0]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code)
    return PREDICTORS["python"].opener(spec_of(folder, target))


def answered(predictor, **changes):
    """The prediction of a function, which is awaited if need be."""
    try:
        prediction = predictor.predict(make_view(**changes), 1)
        return asyncio.run(prediction) if inspect.isawaitable(prediction) else prediction
    finally:
        predictor.close()


def answer(predictor, **changes):
    return answered(predictor, **changes).content.query


def fault(folder, code, target="predict.py:predict", **changes):
    """What is wrong with a function, when it is opened or called."""
    with pytest.raises(PredictorError) as caught:
        answered(function(folder, code, target), **changes)
    return str(caught.value)


@pytest.fixture(autouse=True)
def imports(monkeypatch):
    """Forget the modules that the files of a test have imported."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before, path = set(sys.modules), list(sys.path)
    yield
    assert sys.path == path
    for name in set(sys.modules) - before:
        if not is_installed(name):
            del sys.modules[name]


@pytest.mark.feature("json")
@pytest.mark.parametrize(
    ("stated", "kind", "content"),
    [
        ('"SELECT 1"', "sql", query("SELECT 1")),
        ('answer="SELECT 1"', "sql", query("SELECT 1")),
        ('content="SELECT 1"', "sql", query("SELECT 1")),
        ('content=QueryOrAnswer(query="SELECT 1")', "sql", query("SELECT 1")),
        ('Abstention("no table")', "sql", Abstention("no table")),
        ('{"a": [1, "é"]}', "json", query('{"a": [1, "é"]}')),
        ("[1, 2.5]", "json", query("[1, 2.5]")),
        ("7", "json", query("7")),
    ],
)
def test_a_prediction_is_an_answer_and_what_is_named(tmp_path, stated, kind, content):
    named = ", predictor='mine', seconds=2.5, metadata={'cost': 0.1}, steps=[Step(kind='tool')]"
    code = "from pytest_queryeval import *\n" + PREDICT

    bare = answered(function(tmp_path / "bare", f"{code}Prediction({stated})"), kind=kind)
    prediction = answered(function(tmp_path / "named", f"{code}Prediction({stated}{named})"), kind=kind)

    assert (bare.content, bare.predictor, bare.metadata, bare.steps) == (content, "python:predict.py:predict", {}, None)
    assert bare.seconds > 0
    assert prediction.content == content
    assert (prediction.predictor, prediction.seconds, prediction.metadata) == ("mine", 2.5, {"cost": 0.1})
    assert prediction.steps == [Step(kind="tool")]
    assert replace(bare, content="x").content == replace(bare, answer="x").content == query("x")
    assert pickle.loads(pickle.dumps(prediction)) == prediction


def test_a_prediction_may_be_a_table(tmp_path):
    stated = Prediction(QueryOrAnswer(answer=table((1,))))
    predictor = function(tmp_path, PREDICT + "case.metadata['prediction']")

    assert answered(predictor, metadata={"prediction": stated}).content.answer.rows == ((1,),)


FORM = "a text, a dict, a list, a number, an Abstention or a QueryOrAnswer"


@pytest.mark.parametrize(
    ("prediction", "problem"),
    [
        (Prediction(QueryOrAnswer()), "`answer.query` is NoneType, not text"),
        (Prediction(QueryOrAnswer(query=7)), "`answer.query` is int, not text"),
        (Prediction(QueryOrAnswer(answer=[[1]])), "`answer.answer` is list, not an answer such as a Table"),
        (Prediction(table((1,))), f"`answer` is Table, not {FORM}"),
        (Prediction(), f"`answer` is NoneType, not {FORM}"),
        (Prediction(Abstention(None)), "`answer.reason` is NoneType, not text"),
        (Prediction("SELECT 1", predictor=7), "`predictor` is int, not text"),
        (Prediction("SELECT 1", metadata=[]), "`metadata` is list, not a mapping"),
        (Prediction("SELECT 1", steps=5), "`steps` is int, not a list of Step"),
        *(
            (Prediction("SELECT 1", seconds=seconds), "`seconds` is not a number from 0 to 1,000,000,000")
            for seconds in (-1, float("nan"), float("inf"), "abc", True, 10**400, 1e10)
        ),
    ],
    ids=str,
)
def test_a_prediction_with_a_field_of_another_type_is_an_error(tmp_path, prediction, problem):
    said = fault(tmp_path, PREDICT + "case.metadata['prediction']", metadata={"prediction": prediction})

    assert said == f"predict.py:predict returned a Prediction whose {problem}"


@pytest.mark.feature("json")
@pytest.mark.parametrize(
    ("value", "kind", "problem"),
    [
        ("7", "sql", "int, not text: return the query, or a `Prediction` to add seconds and metadata"),
        ("['SELECT 1']", "sparql", "list, not text: return the query, or"),
        ("Answer()", "sql", "Answer, not text: return its `.query`, or a `Prediction`"),
        ("__import__('pytest_queryeval').Prediction({'sql': 'x'})", "sql", "dict, not text: return its `['sql']`, or"),
        ("{1, 2}", "json", "set, neither text nor a dict, a list or a number: return one of them"),
        ("{'a': [1, {'b': {2}}]}", "json", "dict that is not JSON at $.a[1].b (set): "),
        ("{'a': 10 ** 5000}", "json", "dict that is not JSON at $.a (int): a number has too many digits"),
        ("Odd(a=1)", "json", "Odd that is not JSON: gone"),
        ("nested()", "json", "list that is nested too deeply"),
        ("ask()", "sql", "coroutine: declare the function with `async def`"),
    ],
)
def test_what_no_case_is_answered_with_is_an_error_that_says_where(tmp_path, value, kind, problem):
    said = fault(tmp_path, TYPES + NESTED + ASYNC + PREDICT + value, kind=kind)

    assert said.startswith(f"predict.py:predict returned {problem}")


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("raise ValueError('no key')", "ValueError: no key (predict.py:3)"),
        ("raise SystemExit('bye')", "SystemExit: bye (predict.py:3)"),
        ("import sys; sys.exit()", "SystemExit:  (predict.py:3)"),
        ("return case.no_such_key", "AttributeError: "),
        ("return __import__('pytest_queryeval').Prediction('x', 'mine')", "TypeError: "),
        ("return (lambda text: json.loads(text))('{')", "JSONDecodeError: "),
    ],
)
@pytest.mark.parametrize("declared", ["def", "async def"])
def test_whatever_a_function_raises_is_an_error_with_its_place(tmp_path, declared, code, problem):
    said = fault(tmp_path, f"import json\n{declared} predict(case):\n    {code}")

    assert said.startswith(f"predict.py:predict raised {problem}")
    assert said.endswith("predict.py:3)")


CLIENT_ERRORS = """class Response:
    status_code, headers = 503, {"Retry-After": "7"}
    def __bool__(self):  # as that of requests
        return False
class OddHeaders(Exception):
    status_code, headers = 429, {"Retry-After": ["1"]}
class ReadTimeout(TimeoutError):
    status_code = 0
class Refused(Exception):
    response = Response()
class Limited(Exception):
    status_code = 429
class Forbidden(Exception):
    status_code = 403
class APITimeoutError(Exception):
    pass
class Unread(Exception):
    @property
    def response(self):
        raise OSError("gone")
"""


@pytest.mark.parametrize(
    ("error", "temporary", "pause"),
    [
        ("Refused", True, 7.0),
        ("Limited", True, 0.0),
        ("OddHeaders", True, 0.0),
        ("ReadTimeout", True, 0.0),
        ("Forbidden", False, 0.0),
        ("APITimeoutError", True, 0.0),
        ("ConnectionResetError", True, 0.0),
        ("Unread", False, 0.0),
        ("KeyError", False, 0.0),
    ],
)
def test_a_busy_service_and_a_broken_connection_may_be_asked_again(error, temporary, pause, tmp_path):
    with pytest.raises(PredictorError) as caught:
        answered(function(tmp_path, f"{CLIENT_ERRORS}\ndef predict(case):\n    raise {error}('no')"))

    assert (caught.value.temporary, caught.value.pause) == (temporary, pause)


def test_the_error_of_a_task_group_is_that_of_its_first_task(tmp_path):
    code = f"{CLIENT_ERRORS}\ndef predict(case):\n    raise ExceptionGroup('of tasks', [Limited('no')])"
    with pytest.raises(PredictorError) as caught:
        answered(function(tmp_path, code))

    assert "raised ExceptionGroup: of tasks (1 sub-exception): Limited: no (predict.py:" in str(caught.value)
    assert caught.value.temporary


@pytest.mark.parametrize("code", ["raise KeyboardInterrupt", "def predict(case):\n    raise KeyboardInterrupt"])
def test_an_interrupt_by_the_user_passes_through(tmp_path, code):
    with pytest.raises(KeyboardInterrupt):
        answered(function(tmp_path, code))


@pytest.mark.parametrize(
    "code",
    [
        "predict = Ask()",
        "import asyncio\ndef predict(case):\n    return asyncio.run(ask())",
        "def predict(case, model='m'):\n    return 'SELECT 1'",
        "def predict(*args, **settings):\n    return 'SELECT 1'",
        "def predict(question, /):\n    return 'SELECT 1'",
        "def predict(case):\n    return __import__('pickle').loads(__import__('pickle').dumps(Answer())).query",
        "import sys\nsys.path.pop(0)\n" + PREDICT + "'SELECT 1'",
    ],
)
def test_a_function_may_be_whatever_can_be_called_with_a_case(tmp_path, code):
    assert answer(function(tmp_path, TYPES + ASYNC + code)) == "SELECT 1"


def test_a_function_that_does_not_take_the_case_is_refused(tmp_path):
    said = "is called with one argument, the case: write `def predict(case):`, and read `case.question`"

    assert fault(tmp_path, "def predict(question, x): ...") == f"predict.py:predict(question, x) {said}"


def test_a_function_of_a_module_is_called(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "nl2sql_app").mkdir()
    (tmp_path / "nl2sql_app" / "ask.py").write_text(PREDICT + "'SELECT 1'")

    assert answer(PREDICTORS["python"].opener(spec_of(tmp_path / "elsewhere", "nl2sql_app.ask:predict"))) == "SELECT 1"

    monkeypatch.undo()


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("def predict(:", "SyntaxError"),
        ("import no_such_module", "ModuleNotFoundError"),
        ("raise SystemExit(2)", "SystemExit: 2"),
    ],
)
def test_a_file_that_cannot_be_imported_is_named_and_forgotten(tmp_path, code, problem):
    before = set(sys.modules)

    assert fault(tmp_path, code).startswith(f"predict.py:predict: cannot be imported: {problem}")
    assert set(sys.modules) == before


INSTALL = "install it where pytest runs, or add its folder to"


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("absent.py:predict", "cannot be imported: FileNotFoundError: no file "),
        ("nul\0.py:predict", "cannot be imported: ValueError"),
        ("no_such_module:predict", f"No module named 'no_such_module': {INSTALL}"),
        ("lacking_bot:answer", f"'no_such_module' (lacking_bot.py:1): {INSTALL}"),
        ("bots.first:answer", "No module named 'bots': did you mean 'bots/first.py:answer'?"),
        ("json:predict", "there is no function 'predict' in json"),
        ("json:__name__", "there is no function '__name__' in json"),
    ],
)
def test_a_target_that_names_no_function_is_refused_with_what_is_there(tmp_path, monkeypatch, target, problem):
    for name in ("bot.py", "bots/first.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("def answer(case): ...")
    (tmp_path / "importable").mkdir()
    (tmp_path / "importable/lacking_bot.py").write_text("import no_such_module")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "importable"), *sys.path])

    with pytest.raises(PredictorError) as caught:
        PREDICTORS["python"].opener(spec_of(tmp_path, target))

    assert problem in str(caught.value)
    monkeypatch.undo()


def test_files_of_one_name_in_two_folders_are_two_modules(tmp_path):
    before = set(sys.modules)
    first = function(tmp_path / "one", "ANSWER = 'one'\n" + PREDICT + "ANSWER")
    second = function(tmp_path / "two", "ANSWER = 'two'\n" + PREDICT + "ANSWER")

    assert (answer(first), answer(second), answer(first)) == ("one", "two", "one")
    assert len(set(sys.modules) - before) == 2


@pytest.mark.parametrize(
    "code",
    [
        "import prompts\n" + PREDICT + "prompts.TEXT",
        "def predict(case):\n    import prompts\n    return prompts.TEXT",
        "import package.deep\n" + PREDICT + "package.deep.TEXT",
        "def predict(case):\n    from package.deep import TEXT\n    return TEXT",
    ],
    ids=["at the top", "in the function", "package at the top", "package in the function"],
)
def test_a_file_can_import_the_modules_beside_it_and_gets_its_own(tmp_path, code):
    predictors = []
    for name in ("one", "two"):
        (tmp_path / name / "package").mkdir(parents=True)
        (tmp_path / name / "package" / "__init__.py").touch()
        (tmp_path / name / "package" / "deep.py").write_text(f"TEXT = {name!r}")
        (tmp_path / name / "prompts.py").write_text(f"TEXT = {name!r}")
        predictors.append(function(tmp_path / name, code))

    assert [answer(predictor) for predictor in (*predictors, *predictors)] == ["one", "two", "one", "two"]


def test_an_async_function_can_import_the_modules_beside_it(tmp_path):
    (tmp_path / "beside_it.py").write_text("START = 'SELECT '")
    predictor = function(tmp_path, "async def predict(case):\n    from beside_it import START\n    return START + '1'")

    assert answer(predictor) == "SELECT 1"


def test_a_module_that_was_imported_from_elsewhere_is_the_same_after_a_prediction(tmp_path, monkeypatch):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "prompts.py").write_text(f"TEXT = {name!r}")
    (tmp_path / "two" / "json.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path / "one")
    prompts = importlib.import_module("prompts")
    code = "import json, prompts\n" + PREDICT + "json.dumps(prompts.TEXT)"

    assert answer(function(tmp_path / "two", code)) == '"two"'
    assert sys.modules["prompts"] is prompts
    assert sys.modules["json"] is json

    monkeypatch.undo()


@pytest.mark.parametrize("folders", [["one"], ["one", "two"]])
def test_a_module_beside_the_file_is_imported_once(tmp_path, folders):
    code = "def predict(case):\n    import model\n    return str(next(model.NUMBERS))"
    for name in folders:
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.py").write_text("from itertools import count\nNUMBERS = count(1)")
    predictors = [function(tmp_path / name, code) for name in folders]

    answers = [[answer(predictor) for predictor in predictors] for _ in range(3)]

    assert answers == [[number] * len(folders) for number in "123"]


@pytest.fixture
def problem(tmp_path):
    """What is said, without an import, of a target whose file, if any, has this text."""

    def said(target, code=None, file="predict.py"):
        if code is not None:
            (tmp_path / file).parent.mkdir(exist_ok=True)
            (tmp_path / file).write_bytes(code.encode() if isinstance(code, str) else code)
        try:
            PREDICTORS["python"].check_files(spec_of(tmp_path, target))
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
def test_a_name_that_a_module_binds_in_any_way_is_accepted_without_an_import(problem, recwarn, code):
    raises = "\nraise RuntimeError('imported')\n"

    assert problem("predict.py:predict", code + (raises.encode() if isinstance(code, bytes) else raises)) == ""
    assert list(recwarn) == []


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def predikt(case): ...", ": did you mean 'predikt'?"),
        ("", ""),
        ("class Model:\n    def predict(self, case): ...", ": choose from Model"),
        ("def make():\n    def predict(case): ...", ": choose from make"),
        ("model = print\nmodel.predict = print", ": choose from model"),
    ],
)
def test_a_name_that_a_module_does_not_bind_is_refused_with_what_it_has(problem, code, said):
    assert problem("predict.py:predict", code) == f"there is no function 'predict' in predict.py{said}"


def test_a_file_that_is_no_python_is_refused_with_the_line_and_modules_are_left_to_the_run(problem):
    assert problem("predict.py:predict", "x = 1\ndef predict(case)\n") == "predict.py:2: not Python: expected ':'"
    assert problem("no_such_app.sql:predict") == ""


@pytest.mark.parametrize(
    ("place", "hint"),
    [
        ("predict.py", ": did you mean 'predictor.py'?"),
        ("bots/predict.py", ": did you mean 'bots/predicts.py'?"),
        ("nowhere/predict.py", ": correct the path, which leads to /"),
        (f"{'x' * 300}.py", None),
        (f"{'x' * 300}/predict.py", None),
    ],
)
def test_a_file_that_is_not_there_is_refused_with_one_that_is(problem, place, hint):
    for file in ("predictor.py", "bots/predicts.py"):
        problem(f"{file}:f", "def f(case): ...", file)

    said = problem(f"{place}:f")
    assert said.startswith(f"there is no file {place}{hint}" if hint else "there is no file xxx")
