import pytest
from suites import enter, problems, write

from pytest_queryeval.suites import load_suite

LIMITS = {"type": "limits", "folder": "", "where": {}, "min": None, "max": None, "cases": None}
NO_REGRESSION = LIMITS | {
    "type": "no_regression",
    "no_regression": {"alpha": 0.05, "max_drop": 0.0},
    "better": "higher",
}
CASES = "cases:\n  - {id: a, gold: x, predicted: y}\n"


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    return enter(tmp_path, monkeypatch)


def folder(text, name="."):
    return write(text, f"{name}/queryeval.yaml")


UNMISSABLE, MET = "this gate cannot be missed:", "this gate is always met:"


def gate_problem(line):
    folder(f"gates:\n  - {line}\n")
    (problem,) = problems(f"kind: sql\nsource: a.db\n{CASES}")
    return problem.partition(": ")[2]


def test_a_suite_names_the_folders_whose_gates_apply(working_folder):
    folder("kind: sql\nsource: a.db\ngates:\n  - {metric: execution_accuracy, min: 0.85}\n")
    folder(
        "gates:\n  - {metric: pass_rate, where: {tag: 012, difficulty: hard, not: {kind: sparql}}, min: 0.6, max: 1}\n",
        "a/b",
    )

    suite = load_suite(write(CASES, "a/b/s.queryeval.yaml"), root=working_folder)

    assert [folder.path for folder in suite.folders] == [working_folder, working_folder / "a/b"]
    (top,), (low,) = (folder.gates for folder in suite.folders)
    assert top.folder == working_folder
    assert top.required == LIMITS | {"metric": "execution_accuracy", "min": 0.85}
    assert low.folder == working_folder / "a/b"
    where = {"tag": "012", "difficulty": "hard", "not": {"kind": "sparql"}}
    assert low.required == LIMITS | {"metric": "pass_rate", "where": where, "min": 0.6, "max": 1.0}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "{metric: execution_acuracy, min: 1}",
            "unknown metric 'execution_acuracy': did you mean 'execution_accuracy'?",
        ),
        ("{metric: pass_rat, min: 1}", "unknown metric 'pass_rat': did you mean 'pass_rate'?"),
        ("{metric: pas_hat_k, min: 1}", "unknown metric 'pas_hat_k': did you mean 'pass_hat_k'?"),
        ("{metric: arity_f1}", "'arity_f1' needs min or max, such as {min: 0.8}"),
        ("{min: 1}", "a gate needs a metric: write {metric: NAME, min: NUMBER}"),
        ("{metric: arity_f1, min: high}", "min: expected a number, found 'high'"),
        ("{metric: arity_f1, min: 1, max: 0}", "min 1 of 'arity_f1' is above its max 0"),
        ("{metric: arity_f1, minimum: 1}", "unknown key 'minimum': did you mean 'min'?"),
        ("{metric: arity_f1, min: 1, where: {level: hard}}", None),
        ("{metric: arity_f1, min: 1, where: hard}", "where: expected a mapping, found 'hard': write {KEY: VALUE}"),
        ("{no_regression: true}", "no_regression: expected a mapping, found 'true': write {metric: NAME}"),
        ("{no_regression: {}}", "'no_regression' needs a metric: write {metric: NAME}"),
        (
            "{metric: arity_f1, min: 1, where: {not: {tga: x}}}",
            "unknown key 'tga': did you mean 'tag'?",
        ),
        (
            "{metric: arity_f1, min: 1, where: {not: x}}",
            "not: expected a mapping, found 'x': write {KEY: VALUE}",
        ),
        ("{no_regression: {metric: arity_f2}}", "unknown metric 'arity_f2': did you mean 'arity_f1'?"),
        ("{no_regression: {metric: arity_f1, alpha: 0}}", "alpha: expected a number from 0.001 to 0.5, found '0'"),
        ("{no_regression: {metric: arity_f1, max_drop: -1}}", "max_drop: expected a number from 0 on, found '-1'"),
        ("{no_regression: {metric: arity_f1, maxdrop: 1}}", "unknown key 'maxdrop': did you mean 'max_drop'?"),
        (
            "{no_regression: {metric: pass_at_k}}",
            "'pass_at_k' is not compared with a baseline: name the metric of the trials",
        ),
        ("{max_regressions: -1}", "max_regressions: expected a whole number from 0 on, found '-1'"),
        (
            "{metric: arity_f1, max_regressions: 3}",
            "'max_regressions' does not go with 'metric': write a gate for each",
        ),
        (
            "{no_regression: {metric: arity_f1}, max_regressions: 3}",
            "'no_regression' does not go with 'max_regressions': write a gate for each",
        ),
        (
            "{metric: arity_f1, sum: {max: 5}}",
            (
                "'arity_f1' has no sum: name metadata[NAME], prediction_seconds, execution_seconds, steps, queries or "
                "failed_queries"
            ),
        ),
        ("{metric: 'metadata[cost]', sum: 5}", "sum: expected a mapping, found '5': write {max: NUMBER}"),
        ("{metric: 'metadata[cost]', sum: {most: 5}}", "unknown key 'most': choose from max, min"),
        ("{metric: 'metadata[cost]', sum: {}}", "'metadata[cost]' needs min or max, such as {min: 0.8}"),
        (
            "{metric: 'metadata[cost]', sum: {max: 5}, max: 1}",
            "min and max are limits of the mean, 'sum' has its own: write a gate for each",
        ),
        ("{sum: {max: 5}}", "a gate needs a metric: write {metric: NAME, min: NUMBER}"),
        (
            "{metric: 'metadata[cost]', sum: {max: 5}, max_regressions: 3}",
            "'max_regressions' does not go with 'metric': write a gate for each",
        ),
        ("{metric: arity_f1, min: 0}", f"{MET} 'arity_f1' is from 0 to 1: write a min above 0"),
        ("{metric: arity_f1, max: 1}", f"{MET} 'arity_f1' is from 0 to 1: write a max below 1"),
        ("{metric: pass_rate, min: 0, max: 1}", f"{MET} 'pass_rate' is from 0 to 1: write a min above 0"),
        ("{metric: r_ves, max: 1.118033988749895}", f"{MET} 'r_ves' is from 0 to 1.11803: write a max below 1.11803"),
        ("{metric: steps, min: 0}", f"{MET} 'steps' is from 0 on: write a min above 0"),
        ("{metric: 'metadata[cost]', sum: {min: 0}}", f"{MET} 'metadata[cost]' is from 0 on: write a min above 0"),
        (
            "{no_regression: {metric: arity_f1, max_drop: 1}}",
            f"{UNMISSABLE} no drop of 'arity_f1' is above 1: lower max_drop",
        ),
        ("just text", "item of gates: expected a mapping, found 'just text': write {metric: NAME, min: NUMBER}"),
    ],
)
def test_wrong_gates_are_reported(line, message):
    assert gate_problem(line) == (
        message or "unknown key 'level': choose from difficulty, feature, file, kind, not, review, source, tag"
    )


def test_gates_that_compare_with_a_baseline_are_read_with_what_is_usual(working_folder):
    folder(
        "kind: sql\nsource: a.db\ngates:\n  - {no_regression: {metric: arity_f1}, where: {tag: x}}\n"
        "  - no_regression: {metric: pass_rate, alpha: 0.01, max_drop: 0.02}\n  - max_regressions: 3\n"
    )

    ((usual, stated, regressions),) = (folder.gates for folder in load_suite(write(CASES), root=working_folder).folders)

    assert usual.required == NO_REGRESSION | {"metric": "arity_f1", "where": {"tag": "x"}}
    rule = {"alpha": 0.01, "max_drop": 0.02}
    assert stated.required == NO_REGRESSION | {"metric": "pass_rate", "no_regression": rule}
    assert regressions.required == LIMITS | {
        "type": "max_regressions",
        "metric": "regressions",
        "max_regressions": 3,
    }


def test_a_gate_may_limit_the_sum_of_what_calls_tell(working_folder):
    folder("kind: sql\nsource: a.db\ngates:\n  - {metric: 'metadata[cost]', sum: {min: 1, max: 5}, where: {tag: x}}\n")

    (((gate,),),) = [[folder.gates for folder in load_suite(write(CASES), root=working_folder).folders]]

    limits = {"min": 1.0, "max": 5.0}
    assert gate.required == LIMITS | limits | {"type": "sum", "metric": "metadata[cost]", "where": {"tag": "x"}}
