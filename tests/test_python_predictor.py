import asyncio
import importlib
import json
import pickle
import sys
from dataclasses import replace

import pytest
from installed_modules import is_installed
from samples import make_view, query, table

from pytest_queryeval.core.errors import PredictorError
from pytest_queryeval.core.model import Abstention, Prediction, PredictorSpec, QueryOrAnswer, Step
from pytest_queryeval.predictors import PREDICTORS

PREDICT = "def predict(case):\n    return "
NESTED = "def nested():\n    found = []\n    for _ in range(100_000):\n        found = [found]\n    return found\n"


def opened(folder, **settings):
    return PREDICTORS["python"].opener(PredictorSpec(kind="python", settings=settings, folder=folder))


def function(folder, code, target="predict.py:predict"):
    """The predictor of a function in a file with this code."""
    path = folder / target.rpartition(":")[0]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code)
    return opened(folder, target=target)


def answered(predictor):
    return predictor.predict(make_view(), 1).content.query


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


def test_a_function_is_called_with_the_case(tmp_path):
    predictor = function(tmp_path, PREDICT + "f'SELECT {case.question} {case.evidence}'")

    prediction = predictor.predict(make_view(question="how many", evidence="count"), 1)

    assert prediction.content == query("SELECT how many count")
    assert prediction.predictor == "python:predict.py:predict"
    assert prediction.seconds > 0


def test_a_function_of_a_module_is_called(tmp_path, monkeypatch):
    (tmp_path / "nl2sql_app").mkdir()
    (tmp_path / "nl2sql_app" / "ask.py").write_text(PREDICT + "'SELECT 1'")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    assert answered(opened(tmp_path / "elsewhere", target="nl2sql_app.ask:predict")) == "SELECT 1"

    monkeypatch.undo()


def test_a_prediction_that_a_function_returns_is_kept(tmp_path):
    code = """
        from pytest_queryeval.core.model import Prediction, QueryOrAnswer
        from pytest_queryeval.core.table import Table
        def predict(case):
            stated = QueryOrAnswer(answer=Table(columns=("n",), rows=((1,),)))
            return Prediction(stated, predictor="ours", seconds=2.5, metadata={"tokens": 7})
    """.replace("\n        ", "\n")

    prediction = function(tmp_path, code).predict(make_view(), 1)

    assert prediction.content.answer.rows == ((1,),)
    assert (prediction.predictor, prediction.seconds, prediction.metadata) == ("ours", 2.5, {"tokens": 7})


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
@pytest.mark.parametrize(
    ("by_name", "metadata", "steps", "predictor"),
    [
        ("", {}, None, "python:predict.py:predict"),
        (", metadata={'cost': 0.1}, steps=[Step(kind='tool')]", {"cost": 0.1}, [Step(kind="tool")], None),
        (", predictor='mine'", {}, None, "mine"),
    ],
)
def test_a_prediction_is_an_answer_and_what_is_named(
    tmp_path, stated, kind, content, by_name, metadata, steps, predictor
):
    code = f"from pytest_queryeval import *\n{PREDICT}Prediction({stated}{by_name})\n"

    prediction = function(tmp_path, code).predict(make_view(kind=kind), 1)

    assert (prediction.content, prediction.metadata, prediction.steps) == (content, metadata, steps)
    assert prediction.predictor == (predictor or "python:predict.py:predict")
    assert prediction.seconds > 0
    assert replace(prediction, content="x").content == replace(prediction, answer="x").content == query("x")
    assert pickle.loads(pickle.dumps(prediction)) == prediction


def test_only_the_answer_of_a_prediction_has_a_place(tmp_path):
    with pytest.raises(PredictorError, match=r"raised TypeError: .*positional"):
        function(tmp_path, f"from pytest_queryeval import Prediction\n{PREDICT}Prediction('x', 'mine')").predict(
            make_view(), 1
        )


def test_a_prediction_of_a_value_where_a_query_is_needed_names_the_part_that_has_it(tmp_path):
    code = f"from pytest_queryeval import Prediction\n{PREDICT}Prediction({{'sql': 'SELECT 1'}})"

    with pytest.raises(PredictorError, match=r"predict returned dict, not text: return its `\['sql'\]`, or"):
        function(tmp_path, code).predict(make_view(), 1)


@pytest.mark.parametrize(
    ("prediction", "fault"),
    [
        (Prediction(QueryOrAnswer(), predictor="ours"), "`answer.query` is NoneType, not text"),
        (Prediction(QueryOrAnswer(query=7), predictor="ours"), "`answer.query` is int, not text"),
        (
            Prediction(QueryOrAnswer(answer=[[1]]), predictor="ours"),
            "`answer.answer` is list, not an answer such as a Table",
        ),
        (
            Prediction(table((1,)), predictor="ours"),
            "`answer` is Table, not a text, a dict, a list, a number, an Abstention or a QueryOrAnswer",
        ),
        (
            Prediction(predictor="ours"),
            "`answer` is NoneType, not a text, a dict, a list, a number, an Abstention or a QueryOrAnswer",
        ),
        (Prediction(Abstention(None), predictor="ours"), "`answer.reason` is NoneType, not text"),
        (Prediction("SELECT 1", predictor=7), "`predictor` is int, not text"),
        (
            Prediction(QueryOrAnswer(answer=table((1,))), predictor="ours", metadata=[]),
            "`metadata` is list, not a mapping",
        ),
    ],
    ids=str,
)
def test_a_prediction_with_a_field_of_another_type_is_an_error_of_the_predictor(tmp_path, prediction, fault):
    predictor = function(tmp_path, "predict = lambda case: case.metadata['prediction']")

    with pytest.raises(PredictorError) as caught:
        predictor.predict(make_view(metadata={"prediction": prediction}), 1)

    assert str(caught.value) == f"predict.py:predict returned a Prediction whose {fault}"


@pytest.mark.feature("json")
@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        ("None", "sql", 'nothing (None): is a `return` missing? An empty answer is ""'),
        ("7", "sql", "int, not text: return the query, or a `Prediction` to add seconds and metadata"),
        ("['SELECT 1']", "sparql", "list, not text: return the query, or"),
        ("{'sql': 'SELECT 1'}", "sql", "dict, not text: return its `['sql']`, or a `Prediction`"),
        ("Answer()", "sql", "Answer, not text: return its `.query`, or a `Prediction`"),
        ("{1, 2}", "json", "set, neither text nor a dict, a list or a number: return one of them"),
        ("{'a': [1, {'b': {2}}]}", "json", "dict that is not JSON at $.a[1].b (set): "),
        ("{'a': 10 ** 5000}", "json", "dict that is not JSON at $.a (int): a number has too many digits"),
        ("nested()", "json", "list that is nested too deeply"),
    ],
)
def test_a_function_that_returns_what_no_case_is_answered_with_is_an_error_that_says_where(tmp_path, value, kind, said):
    answer = "class Answer:\n    def __init__(self):\n        self.query = 'SELECT 1'\n"
    with pytest.raises(PredictorError) as caught:
        function(tmp_path, NESTED + answer + PREDICT + value).predict(make_view(kind=kind), 1)

    assert str(caught.value).startswith(f"predict.py:predict returned {said}")


@pytest.mark.feature("json")
def test_a_value_whose_type_raises_is_an_error_of_the_predictor(tmp_path):
    code = "class Odd(dict):\n    def items(self):\n        raise OSError('gone')\n" + PREDICT + "Odd(a=1)"

    with pytest.raises(PredictorError, match=r"^predict\.py:predict returned Odd that is not JSON: gone$"):
        function(tmp_path, code).predict(make_view(kind="json"), 1)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise ValueError('no key')", "ValueError: no key"),
        ("raise SystemExit('bye')", "SystemExit: bye"),
        ("import sys; sys.exit()", "SystemExit: "),
        ("return case.no_such_key", "AttributeError: "),
    ],
)
def test_whatever_a_function_raises_is_an_error_of_the_predictor(tmp_path, code, said):
    predictor = function(tmp_path, f"def predict(case):\n    {code}")

    with pytest.raises(PredictorError) as caught:
        predictor.predict(make_view(), 1)

    assert str(caught.value).startswith(f"predict.py:predict raised {said}")


def test_an_error_tells_where_in_the_users_own_code_it_came_from(tmp_path):
    code = "import json\n\ndef deep(text):\n    return json.loads(text)\n\ndef predict(case):\n    return deep('{')\n"

    place = r"\(predict\.py:7 > predict\.py:4\)$"
    with pytest.raises(PredictorError, match=rf"^predict\.py:predict raised JSONDecodeError: .* {place}"):
        function(tmp_path, code).predict(make_view(), 1)


def test_a_function_that_is_spelt_otherwise_is_suggested(tmp_path):
    with pytest.raises(PredictorError, match=r"there is no function 'predikt' in predict\.py: did you mean 'predict'"):
        function(tmp_path, PREDICT + "'x'", target="predict.py:predikt")


def test_an_interrupt_by_the_user_passes_through(tmp_path):
    predictor = function(tmp_path, "def predict(case):\n    raise KeyboardInterrupt")

    with pytest.raises(KeyboardInterrupt):
        predictor.predict(make_view(), 1)


def test_an_interrupt_while_a_file_is_imported_passes_through(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        function(tmp_path, "raise KeyboardInterrupt")


def awaited(predictor, **changes):
    try:
        return asyncio.run(predictor.predict(make_view(**changes), 1))
    finally:
        predictor.close()


def test_an_async_function_is_awaited(tmp_path):
    (tmp_path / "beside_it.py").write_text("START = 'SELECT '")
    code = "async def predict(case):\n    from beside_it import START\n    return START + case.question"
    predictor = function(tmp_path, code)

    assert awaited(predictor, question="1").content == query("SELECT 1")
    assert predictor.concurrency == 8


def test_an_object_whose_call_is_async_is_awaited(tmp_path):
    code = "class Ask:\n    async def __call__(self, case):\n        return 'x'\npredict = Ask()"

    assert awaited(function(tmp_path, code)).content == query("x")


def test_what_an_async_function_raises_is_an_error_of_the_predictor(tmp_path):
    predictor = function(tmp_path, "async def predict(case):\n    raise KeyError('x')")

    with pytest.raises(PredictorError, match=r"^predict\.py:predict raised KeyError: 'x' \(predict\.py:2\)$"):
        awaited(predictor)


def test_a_function_that_returns_what_should_have_been_awaited_is_told_how(tmp_path):
    code = "async def ask():\n    return 'x'\ndef predict(case):\n    return ask()"

    with pytest.raises(PredictorError, match=r"returned coroutine: declare the function with `async def`$"):
        function(tmp_path, code).predict(make_view(), 1)


def test_the_way_out_for_an_async_function_works(tmp_path):
    code = f"import {asyncio.__name__}\nasync def ask():\n    return 'SELECT 1'\n" + PREDICT + "asyncio.run(ask())"

    assert answered(function(tmp_path, code)) == "SELECT 1"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def predict(:", "SyntaxError"),
        ("import no_such_module", "ModuleNotFoundError"),
        ("raise SystemExit(2)", "SystemExit: 2"),
    ],
)
def test_a_file_that_cannot_be_imported_is_named_and_forgotten(tmp_path, code, said):
    before = set(sys.modules)

    with pytest.raises(PredictorError, match=rf"^predict\.py:predict: cannot be imported: {said}"):
        function(tmp_path, code)

    assert set(sys.modules) == before


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("absent.py:predict", r"cannot be imported: FileNotFoundError: no file .*absent\.py"),
        (
            "no_such_module:predict",
            "No module named 'no_such_module': install it where pytest runs, or add the folder that holds it to",
        ),
        ("nul\0.py:predict", "cannot be imported: ValueError"),
        ("json:predict", "there is no function 'predict' in json"),
        ("json:__name__", "there is no function '__name__' in json"),
        ("predict.py", r"needs 'module:function' or 'file\.py:function', found 'predict\.py'"),
        (":predict", "needs 'module:function'"),
        ("predict.py:", "needs 'module:function'"),
    ],
)
def test_a_target_that_names_no_function_is_said(tmp_path, target, said):
    with pytest.raises(PredictorError, match=said):
        opened(tmp_path, target=target)


@pytest.mark.parametrize(("target", "file"), [("bot:answer", "bot.py"), ("bots.first:answer", "bots/first.py")])
def test_a_module_that_is_a_file_beside_the_suite_is_refused_with_the_file(tmp_path, target, file):
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text("def answer(case): ...")

    with pytest.raises(PredictorError, match=rf"No module named 'bots?': did you mean '{file}:answer'\?$"):
        opened(tmp_path, target=target)


def test_a_module_that_lacks_another_one_is_refused_without_a_file(tmp_path, monkeypatch):
    (tmp_path / "lacking_bot.py").write_text("import no_such_module")

    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(PredictorError, match=r"'no_such_module' \(lacking_bot\.py:1\): install it where"):
        opened(tmp_path, target="lacking_bot:answer")

    monkeypatch.undo()


@pytest.mark.parametrize(
    ("signature", "told"),
    [
        ("()", "() is called with one argument, the case: write `def predict(case):`"),
        (
            "(question, x)",
            "(question, x) is called with one argument, the case: write `def predict(case):`, and read `c",
        ),
        ("(*, case)", "(case) is called with one argument, the case: write `def predict(case):`"),
    ],
)
def test_a_function_that_does_not_take_the_case_is_refused(tmp_path, signature, told):
    with pytest.raises(PredictorError) as caught:
        function(tmp_path, f"def predict{signature}:\n    return 'x'")

    assert str(caught.value).startswith(f"predict.py:predict{told}")


@pytest.mark.parametrize("signature", ["(case)", "(case, model='m')", "(*args, **settings)", "(question, /)"])
def test_a_function_may_take_more_than_the_case_where_that_has_defaults(tmp_path, signature):
    assert answered(function(tmp_path, f"def predict{signature}:\n    return 'x'")) == "x"


def test_a_python_predictor_without_a_target_says_what_it_needs(tmp_path):
    with pytest.raises(PredictorError, match="the predictor 'python' needs 'module:function'"):
        opened(tmp_path, function="predict")


def test_files_of_one_name_in_two_folders_are_two_modules(tmp_path):
    first = function(tmp_path / "one", "ANSWER = 'one'\n" + PREDICT + "ANSWER")
    second = function(tmp_path / "two", "ANSWER = 'two'\n" + PREDICT + "ANSWER")

    assert (answered(first), answered(second), answered(first)) == ("one", "two", "one")
    modules = {predictor._function.__module__ for predictor in (first, second)}
    assert len(modules & set(sys.modules)) == 2


def test_a_class_of_the_file_can_be_found_by_its_module(tmp_path):
    code = "from dataclasses import dataclass\n@dataclass\nclass Query:\n    text: 'str'\n" + PREDICT
    code += "__import__('pickle').loads(__import__('pickle').dumps(Query('SELECT 1'))).text"

    assert answered(function(tmp_path, code)) == "SELECT 1"


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

    assert [answered(predictor) for predictor in (*predictors, *predictors)] == ["one", "two", "one", "two"]


def test_a_module_that_was_imported_from_elsewhere_is_the_same_after_a_prediction(tmp_path, monkeypatch):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "prompts.py").write_text(f"TEXT = {name!r}")
    monkeypatch.syspath_prepend(tmp_path / "one")
    prompts = importlib.import_module("prompts")

    assert answered(function(tmp_path / "two", "import prompts\n" + PREDICT + "prompts.TEXT")) == "two"
    assert sys.modules["prompts"] is prompts

    monkeypatch.undo()
    del sys.modules["prompts"]


@pytest.mark.parametrize("folders", [["one"], ["one", "two"]])
def test_a_module_beside_the_file_is_imported_once(tmp_path, folders):
    code = "def predict(case):\n    import model\n    return str(next(model.NUMBERS))"
    for name in folders:
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.py").write_text("from itertools import count\nNUMBERS = count(1)")
    predictors = [function(tmp_path / name, code) for name in folders]

    answers = [[answered(predictor) for predictor in predictors] for _ in range(3)]

    assert answers == [[number] * len(folders) for number in "123"]


def test_a_module_beside_the_file_does_not_replace_one_of_the_standard_library(tmp_path):
    (tmp_path / "json.py").write_text("")

    assert answered(function(tmp_path, "import json\n" + PREDICT + "json.dumps(None)")) == "null"
    assert sys.modules["json"] is json


def test_a_function_may_change_the_import_path(tmp_path):
    code = "import sys\nsys.path.pop(0)\n" + PREDICT + "'SELECT 1'"

    assert answered(function(tmp_path, code)) == "SELECT 1"
