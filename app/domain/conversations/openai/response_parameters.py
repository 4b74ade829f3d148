"""The parameters of a response: those that the model gets, and those that cannot be honoured."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

from app.domain.agents.llm.api import ModelOptions
from app.kit.errors import Invalid, Problem

from .response_schemas import ReasoningOptions, ResponseRequest, ResponseTool, TextOptions
from .schemas import FunctionDefinition

_UNSUPPORTED = ("max_tool_calls", "prompt", "context_management")
_LOGPROBS = "message.output_text.logprobs"


def check(data: ResponseRequest, *, is_visitor: bool) -> None:
    """Raises Invalid for what would change the answer, but is not supported. Values that ask for
    the usual answer are accepted: some clients always send them.
    """
    conflicts = _refuse_to_visitors(data) if is_visitor else _list_conflicts(data)
    Invalid.check(chain(_list_unsupported(data), conflicts))


def _list_unsupported(data: ResponseRequest) -> Iterator[Problem]:
    for name in _UNSUPPORTED:
        if getattr(data, name):
            yield name, "is not supported; leave it out"
    if data.top_logprobs:
        yield "top_logprobs", "is not supported; leave it out"
    if _LOGPROBS in (data.include or ()):
        yield "include", f"{_LOGPROBS} is not supported; leave it out"
    if data.service_tier not in {None, "auto", "default"}:
        yield "service_tier", "must be auto or default"
    if data.truncation not in {None, "auto"}:
        yield "truncation", "must be auto: the oldest messages are left out if they do not fit"
    reasoning = data.reasoning or ReasoningOptions()
    if reasoning.summary is not None or reasoning.generate_summary is not None:
        yield "reasoning.summary", "is not supported; leave it out"


def _refuse_to_visitors(data: ResponseRequest) -> Iterator[Problem]:
    for name in ("conversation", "background"):
        if getattr(data, name):
            yield name, "is for callers who are signed in"
    if data.store is False:
        yield "store", "false is for callers who are signed in"


def _list_conflicts(data: ResponseRequest) -> Iterator[Problem]:
    if data.previous_response_id is not None and data.conversation is not None:
        yield "conversation", "cannot be combined with previous_response_id"
    if data.background and data.stream:
        yield "stream", "cannot be combined with background; get the response until it ends"
    if data.background and data.store is False:
        yield "store", "must be true with background"


def read_options(data: ResponseRequest) -> ModelOptions:
    return ModelOptions(
        top_p=data.top_p,
        reasoning_effort=data.reasoning.effort if data.reasoning else None,
        verbosity=data.text.verbosity if data.text else None,
        user=data.user,
        metadata=data.metadata or None,
        parallel_tool_calls=data.parallel_tool_calls if data.tools else None,
    )


def read_format(text: TextOptions | None) -> dict[str, Any] | None:
    """Returns the format of the answer as chat completions name it."""
    wanted = text.format if text is not None else None
    if wanted is None or wanted.get("type") == "text":
        return None
    if wanted.get("type") == "json_object":
        return {"type": "json_object"}
    if wanted.get("type") != "json_schema":
        raise Invalid.field("text.format.type", "must be text, json_object or json_schema")
    schema = {name: value for name, value in wanted.items() if name != "type"}
    return {"type": "json_schema", "json_schema": schema}


def describe_text(text: TextOptions | None) -> dict[str, Any]:
    """Returns the form of the answer as a response shows it: what `read_format` has read."""
    wanted = read_format(text) or {"type": "text"}
    described: dict[str, Any] = {
        "format": {"type": wanted["type"], **wanted.get("json_schema", {})}
    }
    if text is not None and text.verbosity is not None:
        described["verbosity"] = text.verbosity
    return described


def read_definitions(tools: list[ResponseTool]) -> list[tuple[str, FunctionDefinition]]:
    definitions = []
    for index, tool in enumerate(tools):
        path = f"tools.{index}"
        if tool.type != "function":
            raise Invalid.field(f"{path}.type", "must be function")
        if tool.name is None:
            raise Invalid.field(f"{path}.name", "is required")
        definition = FunctionDefinition(tool.name, tool.description, tool.parameters, tool.strict)
        definitions.append((path, definition))
    return definitions
