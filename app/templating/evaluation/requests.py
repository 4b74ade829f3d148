"""The requests of `app.templating.expressions` and their answers, both JSON."""

from collections.abc import Callable
from typing import Any

import msgspec

from app.templating.evaluation import conditions, templates
from app.templating.evaluation.problems import LimitProblem, Problem
from app.templating.evaluation.values import encode_result, to_text


class Answer(msgspec.Struct, omit_defaults=True):
    """The result, or the code, message and path of a problem."""

    value: msgspec.Raw = msgspec.Raw(b"null")
    problem: tuple[str, str, str] | None = None


def respond(content: bytes) -> Answer:
    """Raises MemoryError when the expression needs more memory than there is."""
    try:
        request = msgspec.json.decode(content)
        result = encode_result(_OPERATIONS[request["operation"]](request))
    except Problem as problem:
        return Answer(problem=(problem.code, problem.message, problem.path))
    except RecursionError:
        return Answer(problem=(LimitProblem.code, "the expression or a value nests too deeply", ""))
    return Answer(value=msgspec.Raw(result))


def _render(request: dict[str, Any]) -> tuple[list[msgspec.Raw], int]:
    """Returns a result for each template, and how many bytes are left for further ones."""
    results, free_bytes = [], request["free_bytes"]
    for text, path in request["texts"]:
        try:
            result = encode_result(_render_text(text, request))
            free_bytes -= len(result)
            if free_bytes < 0:
                raise LimitProblem("the result is larger than 1 MiB")
        except Problem as problem:
            problem.path = path
            raise
        except RecursionError:
            raise LimitProblem("the template or a value nests too deeply", path) from None
        results.append(msgspec.Raw(result))
    return results, free_bytes


def _render_text(text: str, request: dict[str, Any]) -> Any:
    max_chars = request["max_chars"]
    result = templates.load(text).render(request["values"], max_chars)
    if request["as_texts"]:
        result = to_text(result)
    return result[:max_chars] if isinstance(result, str) else result


def _evaluate(request: dict[str, Any]) -> bool:
    values = request["values"]
    condition = conditions.load(request["text"])
    templates.check_names(condition.names, values)
    return condition.evaluate(values)


def _check(request: dict[str, Any]) -> None:
    if request["kind"] == "template":
        templates.load(request["text"]).check_names(request["names"])
        return
    condition = conditions.load(request["text"])
    templates.check_names(condition.names, request["names"])
    condition.check_functions()


_OPERATIONS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "render": _render,
    "evaluate": _evaluate,
    "check": _check,
}
