"""Renders the config of a node: templates and conditions, over the input and earlier outputs."""

from typing import Any, Final

import msgspec

from app.domain.workflows.definitions import Node
from app.domain.workflows.nodes.protocol import Failed, NodeType
from app.kit.expressions import ExpressionProblem, Expressions, has_templates

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
        if node.type == "condition":
            expression = config["expression"]
            result = await expressions.evaluate(expression, values, group=tenant_id)
            return {"expression": result}
        if not has_templates(config):
            return config
        literal = {key: config[key] for key in config if key in node_type.literal}
        rest = {key: value for key, value in config.items() if key not in literal}
        return {**literal, **await expressions.render(rest, values, group=tenant_id)}
    except ExpressionProblem as problem:
        where = f"{problem.path}: " if problem.path else ""
        return Failed(problem.code, f"{where}{problem}", _NO_RETRY)


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
