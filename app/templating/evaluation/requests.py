"""The requests of `app.templating.expressions` and their answers, both JSON."""

from collections.abc import Callable
from typing import Any

import msgspec

from app.templating.evaluation import conditions, simple_templates, templates
from app.templating.evaluation.problems import LimitProblem, Problem
from app.templating.evaluation.simple_templates import MARKS, join_path
from app.templating.evaluation.values import encode_result

_MAX_RESULT = 1024 * 1024


class Answer(msgspec.Struct, omit_defaults=True):
    """The result, or the code, message and path of a problem."""

    value: msgspec.Raw = msgspec.Raw(b"null")
    problem: tuple[str, str, str] | None = None


def respond(content: bytes) -> Answer:
    """Raises MemoryError when the expression needs more memory than there is."""
    try:
        request = msgspec.json.decode(content)
        result = encode_result(_OPERATIONS[request["operation"]](request))
        if len(result) > _MAX_RESULT:
            raise LimitProblem("the result is larger than 1 MiB")
    except Problem as problem:
        return Answer(problem=(problem.code, problem.message, problem.path))
    except RecursionError:
        return Answer(problem=(LimitProblem.code, "the expression or a value nests too deeply", ""))
    return Answer(value=msgspec.Raw(result))


def _render(request: dict[str, Any]) -> Any:
    return _render_value(request["value"], request["values"], "")


def _render_value(value: Any, values: dict[str, Any], path: str) -> Any:
    match value:
        case str() if any(mark in value for mark in MARKS):
            return _render_text(value, values, path)
        case dict():
            return {
                key: _render_value(item, values, join_path(path, key))
                for key, item in value.items()
            }
        case list():
            return [
                _render_value(item, values, join_path(path, index))
                for index, item in enumerate(value)
            ]
    return value


def _render_text(text: str, values: dict[str, Any], path: str) -> Any:
    try:
        return templates.load(text).render(values)
    except Problem as problem:
        problem.path = path
        raise
    except RecursionError:
        raise LimitProblem("the template or a value nests too deeply", path) from None


def _evaluate(request: dict[str, Any]) -> bool:
    values = request["values"]
    condition = conditions.load(request["text"])
    templates.check_names(condition.names, values)
    return condition.evaluate(values)


def _check(request: dict[str, Any]) -> None:
    if request["kind"] == "template":
        templates.check_names(templates.load(request["text"]).names, request["names"])
        return
    condition = conditions.load(request["text"])
    templates.check_names(condition.names, request["names"])
    condition.check_functions()


_OPERATIONS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "render": _render,
    "evaluate": _evaluate,
    "check": _check,
    "render_simple": simple_templates.render,
    "check_simple": simple_templates.check,
}
