"""Functions that a client runs itself: reads `tools` and `tool_choice` of OpenAI's wire formats."""

from typing import Any

from app.domain.agents.llm.api import Function, NamedFunction, ToolChoice
from app.kit.errors import Invalid

from .schemas import CompletionRequest, FunctionDefinition

_NO_PARAMETERS = {"type": "object", "properties": {}}
_CHOICES = ("auto", "none", "required")
_CHOICE_LIST = ", ".join(_CHOICES)


def read_functions(data: CompletionRequest) -> tuple[Function, ...]:
    definitions: list[tuple[str, FunctionDefinition]] = []
    for index, tool in enumerate(data.tools or []):
        if tool.type != "function":
            raise Invalid.field(f"tools.{index}.type", "must be function")
        if tool.function is None:
            raise Invalid.field(f"tools.{index}.function", "is required")
        definitions.append((f"tools.{index}.function", tool.function))
    definitions += [(f"functions.{n}", item) for n, item in enumerate(data.functions or [])]
    return build_functions(definitions)


def build_functions(definitions: list[tuple[str, FunctionDefinition]]) -> tuple[Function, ...]:
    """From the definitions and where they are in the request."""
    functions: dict[str, Function] = {}
    for path, item in definitions:
        if item.name in functions:
            raise Invalid.field(f"{path}.name", f"{item.name} is there twice")
        parameters = item.parameters or _NO_PARAMETERS
        description = item.description or ""
        functions[item.name] = Function(item.name, description, parameters, item.strict)
    return tuple(functions.values())


def read_choice(field: str, choice: str | dict[str, Any] | None) -> ToolChoice:
    """Reads both forms: `{"type": "function", "function": {"name": …}}`, and without the inner
    object.
    """
    if choice is None:
        return "auto"
    if isinstance(choice, str):
        if choice in _CHOICES:
            return choice  # type: ignore[return-value]  # one of them
        raise Invalid.field(field, f"must be one of {_CHOICE_LIST}, or name one function")
    inner = choice.get("function", choice)
    name = inner.get("name") if isinstance(inner, dict) else None
    if choice.get("type", "function") != "function" or not isinstance(name, str):
        raise Invalid.field(field, f"must be one of {_CHOICE_LIST}, or name one function")
    return NamedFunction(name)


def describe_choice(field: str, choice: str | dict[str, Any] | None) -> str | dict[str, Any]:
    """Returns the choice as a response shows it."""
    wanted = read_choice(field, choice)
    return (
        {"type": "function", "name": wanted.name} if isinstance(wanted, NamedFunction) else wanted
    )
