"""Checks and renders templates of `app.templating.templates`: many at a time, within one budget."""

from typing import Any

from app.templating import templates
from app.templating.evaluation.problems import LimitProblem, Problem
from app.templating.evaluation.values import encode_result
from app.templating.template_filters import MAX_COST, Run
from app.templating.templates import TemplateProblem

MARKS = ("{{", "{%", "{#")
# Of all templates of a value: about a quarter of a second.
_BUDGET = 5 * MAX_COST
_MAX_RESULT = 1024 * 1024


def check(request: dict[str, Any]) -> list[tuple[int, str]]:
    """Returns the index of each text that is invalid, and what is wrong with it."""
    problems = []
    for index, text in enumerate(request["texts"]):
        try:
            templates.check(text, request["names"])
        except TemplateProblem as problem:
            problems.append((index, str(problem)))
    return problems


def render(request: dict[str, Any]) -> Any:
    """Returns a JSON value whose texts are rendered."""
    renderer = _Renderer(
        request["values"], request["max_chars"], keeps_types=request["keeps_types"]
    )
    return renderer.render(request["value"], "")


class _Renderer:
    def __init__(self, values: dict[str, Any], max_chars: int, *, keeps_types: bool) -> None:
        self._values = values
        self._run = Run(values, _BUDGET)
        self._max_chars = max_chars
        self._render_text = templates.evaluate if keeps_types else templates.render
        self._free_bytes = _MAX_RESULT

    def render(self, value: Any, path: str) -> Any:
        match value:
            case str() if any(mark in value for mark in MARKS):
                return self._render(value, path)
            case dict():
                return {key: self.render(item, join_path(path, key)) for key, item in value.items()}
            case list():
                return [
                    self.render(item, join_path(path, index)) for index, item in enumerate(value)
                ]
        return value

    def _render(self, text: str, path: str) -> Any:
        try:
            result = self._render_text(text, self._values, max_chars=self._max_chars, run=self._run)
        except TemplateProblem as problem:
            raise Problem(str(problem), path) from None
        if self._run.is_exceeded:
            raise LimitProblem("the templates take too many operations", path)
        # Large values are often named more than once: ends before the result takes much memory.
        self._free_bytes -= len(encode_result(result))
        if self._free_bytes < 0:
            raise LimitProblem("the result is larger than 1 MiB", path)
        return result


def join_path(path: str, key: object) -> str:
    return (f"{path}.{key}" if path else str(key))[:200]
