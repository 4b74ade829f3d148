from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from app.domain.workflows.nodes.protocol import Done, NodeCall, NodeType, Outcome


class ConditionConfig(msgspec.Struct, forbid_unknown_fields=True):
    # After evaluation, the result.
    expression: Annotated[
        str | bool, Meta(description="CEL that yields true or false, like `input.amount > 100`")
    ]


class ConditionNode(NodeType[ConditionConfig]):
    name: ClassVar[str] = "condition"
    description: ClassVar[str] = "Takes the edges whose `when` is the result of a CEL expression"
    config: ClassVar[type[msgspec.Struct]] = ConditionConfig
    example: ClassVar[dict[str, Any]] = {"expression": "input.amount > 100"}
    literal: ClassVar[frozenset[str]] = frozenset({"expression"})
    has_branches: ClassVar[bool] = True
    has_effect: ClassVar[bool] = False

    async def run(self, call: NodeCall, config: ConditionConfig) -> Outcome:
        del call
        result = config.expression is True
        return Done({"result": result}, branch=result)
