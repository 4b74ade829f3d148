"""Renders the config of a node: templates and conditions, over the input and earlier outputs."""

from functools import cache
from typing import Any, Final

import msgspec

from app.templating.expressions import ExpressionProblem, Expressions, has_templates, to_text

from .definitions import Node
from .nodes.protocol import Failed, NodeType

# What templates and conditions can name.
NAMES: Final = ("input", "nodes", "execution")
_NO_RETRY = False


async def render(
    expressions: Expressions,
    node_type: NodeType[Any],
    node: Node,
    values: dict[str, Any],
    tenant_id: str,
) -> dict[str, Any] | Failed:
    """Returns the config with the values in the place of its templates."""
    config = node.config
    try:
        results = {
            key: await expressions.evaluate(config[key], values, group=tenant_id)
            for key in node_type.conditions
            if key in config
        }
        others = {key: value for key, value in config.items() if key not in results}
        if not has_templates(others):
            return {**others, **results}
        literal = {key: others[key] for key in others if key in node_type.literal}
        rest = {key: value for key, value in others.items() if key not in literal}
        rendered = await expressions.render(rest, values, group=tenant_id)
        return {**literal, **results, **_convert_texts(node_type, rendered)}
    except ExpressionProblem as problem:
        where = f"{problem.path}: " if problem.path else ""
        return Failed(problem.code, f"{where}{problem}", _NO_RETRY)


def _convert_texts(node_type: NodeType[Any], rendered: dict[str, Any]) -> dict[str, Any]:
    """A template that is one expression keeps the type of its value; a field that takes a text gets
    the text that any other template would have.
    """
    names = _list_text_fields(node_type.config)
    return {
        key: to_text(value) if key in names and value is not None else value
        for key, value in rendered.items()
    }


@cache
def _list_text_fields(config: type[msgspec.Struct]) -> frozenset[str]:
    return frozenset(
        field.name
        for field in msgspec.structs.fields(config)
        if _is_text(msgspec.inspect.type_info(field.type))
    )


def _is_text(info: msgspec.inspect.Type) -> bool:
    match info:
        case msgspec.inspect.StrType():
            return True
        case msgspec.inspect.Metadata(type=inner):
            return _is_text(inner)
        case msgspec.inspect.UnionType(types=types):
            none = msgspec.inspect.NoneType
            return all(isinstance(item, none) or _is_text(item) for item in types)
    return False


def convert(node_type: NodeType[Any], rendered: dict[str, Any]) -> Any:
    """Returns the config as the struct of its type, or Failed when a value has the wrong type."""
    try:
        config = msgspec.convert(rendered, node_type.rendered or node_type.config)
    except msgspec.ValidationError as error:
        return Failed("invalid_config", str(error)[:500], _NO_RETRY)
    problems = list(node_type.find_problems(rendered))
    if problems:
        field, message = problems[0]
        return Failed("invalid_config", f"{field}: {message}" if field else message, _NO_RETRY)
    return config
