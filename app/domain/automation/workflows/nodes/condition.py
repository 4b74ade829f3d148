from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from .protocol import Done, NodeCall, NodeType, Outcome


class ConditionConfig(msgspec.Struct, forbid_unknown_fields=True):
    expression: Annotated[
        str,
        Meta(min_length=1, description="CEL that yields true or false, like `input.amount > 100`"),
    ]


class EvaluatedCondition(msgspec.Struct):
    """The result in the place of the expression."""

    expression: bool


class ConditionNode(NodeType[EvaluatedCondition]):
    name: ClassVar[str] = "condition"
    description: ClassVar[str] = "Takes the edges whose `when` is the result of a CEL expression"
    config: ClassVar[type[msgspec.Struct]] = ConditionConfig
    rendered: ClassVar[type[msgspec.Struct] | None] = EvaluatedCondition
    example: ClassVar[dict[str, Any]] = {"expression": "input.amount > 100"}
    conditions: ClassVar[frozenset[str]] = frozenset({"expression"})
    has_branches: ClassVar[bool] = True
    has_effect: ClassVar[bool] = False
    has_retry: ClassVar[bool] = False

    async def run(self, call: NodeCall, config: EvaluatedCondition) -> Outcome:
        del call
        return Done({"result": config.expression}, branch=config.expression)
