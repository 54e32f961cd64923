"""What a metric is: a pure function of gold and predicted, and what it needs to be called."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

Scorer: TypeAlias = Callable[..., float | None]
Rewrite: TypeAlias = Callable[[str], str]
Function = TypeVar("Function", bound=Scorer)
TABLE_KINDS = frozenset({"sql", "sparql"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A scorer with the facts that the evaluation needs to call it.

    `reads` says what the function is given as gold and predicted: their answers, or their whole executions. With
    `rewrite` both queries are first rewritten (gold's function, then predicted's) and run again where that changes
    their text.
    `options` are the names of the function's keyword-only arguments, which a suite sets under `options`.
    """

    function: Scorer
    kinds: frozenset[str] | None = None
    reads: Literal["answers", "executions"] = "answers"
    rewrite: tuple[Rewrite, Rewrite] | None = None
    options: frozenset[str] = frozenset()
    takes_policy: bool = False

    def applies_to(self, kind: str) -> bool:
        """Whether cases of this kind can be scored; a metric that names no kinds suits all."""
        return self.kinds is None or kind in self.kinds


def metric(
    *,
    kinds: frozenset[str] | None = TABLE_KINDS,
    reads: Literal["answers", "executions"] = "answers",
    rewrite: tuple[Rewrite, Rewrite] | None = None,
) -> Callable[[Function], Function]:
    """Tell what a metric function needs; the function itself stays as it is, to be called and tested plainly."""

    def describe(function: Function) -> Function:
        function.metric = describe_metric(function, kinds=kinds, reads=reads, rewrite=rewrite)  # type: ignore[attr-defined]
        return function

    return describe


def describe_metric(function: Scorer, **facts: Any) -> Metric:
    """The `Metric` of a function: as its decorator said, or else as its signature tells."""
    if not facts and isinstance(described := getattr(function, "metric", None), Metric):
        return described
    parameters = inspect.signature(function).parameters.values()
    names = {parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY}
    return Metric(function=function, options=frozenset(names - {"policy"}), takes_policy="policy" in names, **facts)
