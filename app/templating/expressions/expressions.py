"""Renders templates and evaluates conditions, in processes that a `ProcessPool` limits."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from app.kit.texts import storable
from app.templating.expressions.budget import Budget
from app.templating.expressions.pool import ProcessPool
from app.templating.expressions.problems import Code, ExpressionProblem, Overrun
from app.templating.expressions.sources import (
    Source,
    list_sources,
    replace_templates,
    split_sources,
)

_MAX_INPUT = 4 * 1024 * 1024
_MAX_RESULT = 1024 * 1024


class _Answer(msgspec.Struct):
    value: Any = None
    problem: tuple[Code, str, str] | None = None


_decoder = msgspec.json.Decoder(_Answer)


class Expressions:
    """One per process; starts nothing until it is used. `group` is the tenant: at most one
    evaluation of a group runs at a time, within `seconds` and `memory_mib`.
    """

    def __init__(self, *, processes: int = 2, seconds: float = 1.0, memory_mib: int = 256) -> None:
        self._pool = ProcessPool(processes=processes, seconds=seconds, memory_mib=memory_mib)

    async def check(
        self,
        sources: Sequence[Source],
        names: Collection[str],
        *,
        group: str = "",
        budget: Budget | None = None,
    ) -> list[tuple[str, str]]:
        """Returns the path of each invalid source and what is wrong with it; ends at the first one
        that takes too long or too much memory to check, or that the budget is used up for.
        """
        budget = budget or Budget()
        problems = []
        for source in sources:
            try:
                await self._check(source, names, group, budget)
            except Overrun as problem:
                problems.append((source.path, problem.message))
                break
            except ExpressionProblem as problem:
                problems.append((source.path, problem.message))
        return problems

    async def render(
        self,
        value: Any,
        values: Mapping[str, Any],
        *,
        group: str,
        max_chars: int | None = None,
        as_texts: bool = False,
        budget: Budget | None = None,
    ) -> Any:
        """Returns a JSON value whose texts are rendered; keys stay as they are. A text that is
        exactly one {{ expression }} keeps the type of its value, unless it is rendered `as_texts`.
        Texts are cut at `max_chars`. Raises ExpressionProblem.
        """
        sources = list_sources(value, "")
        if not sources:
            return value
        options = {"values": _encode(values), "max_chars": max_chars, "as_texts": as_texts}
        budget, results, free_bytes = budget or Budget(), [], _MAX_RESULT
        for part in split_sources(sources):
            texts = _encode([[source.text, source.path] for source in part])
            rendered, free_bytes = await self._ask(
                group, budget, operation="render", texts=texts, free_bytes=free_bytes, **options
            )
            results += rendered
        try:
            return replace_templates(value, iter(results))
        except RecursionError:
            raise ExpressionProblem("a value nests too deeply", code="expression_limit") from None

    async def evaluate(self, condition: str, values: Mapping[str, Any], *, group: str) -> bool:
        """Returns the value of a condition in CEL. Raises ExpressionProblem, also for a value other
        than true and false.
        """
        result = await self._ask(
            group, operation="evaluate", text=_encode(condition), values=_encode(values)
        )
        return bool(result)

    async def _check(
        self, source: Source, names: Collection[str], group: str, budget: Budget
    ) -> None:
        await self._ask(
            group,
            budget,
            operation="check",
            kind=source.kind,
            text=_encode(source.text),
            names=sorted(names),
        )

    async def _ask(self, group: str, budget: Budget | None = None, **request: Any) -> Any:
        content = await self._pool.ask(group, msgspec.json.encode(request), budget)
        try:
            answer = _decoder.decode(content)
        except RecursionError:
            raise ExpressionProblem(
                "the result nests too deeply", code="expression_limit"
            ) from None
        if answer.problem:
            code, message, path = answer.problem
            raise ExpressionProblem(message, code=code, path=path)
        return answer.value

    async def close(self) -> None:
        await self._pool.close()


def _encode(value: Any) -> msgspec.Raw:
    """Raises ExpressionProblem for a value that is too large, or no JSON."""
    try:
        content = _encode_texts(value)
    except RecursionError:
        raise ExpressionProblem("a value nests too deeply", code="expression_limit") from None
    except (TypeError, ValueError, OverflowError):
        raise ExpressionProblem("a value cannot be written as JSON") from None
    if len(content) > _MAX_INPUT:
        raise ExpressionProblem("the values are larger than 4 MiB", code="expression_limit")
    return msgspec.Raw(content)


def _encode_texts(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_replace_surrogates(value))


def _replace_surrogates(value: Any) -> Any:
    match value:
        case str():
            return storable(value)
        case list():
            return [_replace_surrogates(item) for item in value]
        case dict():
            return {
                _replace_surrogates(key): _replace_surrogates(item) for key, item in value.items()
            }
    return value
