"""Steps of a system in runs of pytest: what the terminal shows of them, and gates."""

import json

from singers import unpredicted


def written(pytester, *, size):
    steps = [{"kind": "query", "name": "run_sql", "input": "SELECT 1", "output": "x" * size} for _ in range(200)]
    lines = (json.dumps({"id": id_, "predicted": "SELECT 2", "steps": steps}) for id_ in ("a", "b"))
    pytester.path.joinpath("answers.jsonl").write_text("\n".join(lines))


def test_the_terminal_is_the_same_whatever_the_size_of_steps(suite, run, pytester):
    suite(unpredicted("a"), unpredicted("b"), predictor="answers.jsonl")
    written(pytester, size=1)
    small = run("-v").outlines
    written(pytester, size=5_000)
    large = run("-v").outlines

    def untimed(lines):
        return [line for line in lines if " in " not in line]

    assert untimed(large) == untimed(small)
    assert not any("xx" in line for line in large)
    assert any(line.startswith("queries") and "400" in line for line in large)


def test_gates_limit_steps(suite, run_and_parse, write, pytester):
    suite(unpredicted("a"), unpredicted("b"), predictor="answers.jsonl")
    written(pytester, size=1)
    write(
        "queryeval.yaml",
        "on_miss: xfail\ngates:\n  - {metric: queries, max: 200}\n  - {metric: steps, sum: {max: 399}}\n"
        "  - {metric: failed_queries, sum: {max: 0}}\n",
    )
    gates = run_and_parse().report["gates"]

    assert [(gate["metric"], gate["value"], gate["ok"]) for gate in gates] == [
        ("queries", 200.0, True),
        ("steps", 400.0, False),
        ("failed_queries", 0.0, True),
    ]
