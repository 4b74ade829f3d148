from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from .protocol import Done, NodeCall, NodeType, Outcome


class TransformConfig(msgspec.Struct, forbid_unknown_fields=True):
    output: Annotated[Any, Meta(description="Any JSON value with templates")]


class TransformNode(NodeType[TransformConfig]):
    name: ClassVar[str] = "transform"
    description: ClassVar[str] = "Builds a value from the input and from the outputs before it"
    config: ClassVar[type[msgspec.Struct]] = TransformConfig
    example: ClassVar[dict[str, Any]] = {
        "output": {"greeting": "Hello {{ input.name }}", "amount": "{{ input.amount }}"}
    }
    has_effect: ClassVar[bool] = False
    has_retry: ClassVar[bool] = False

    async def run(self, call: NodeCall, config: TransformConfig) -> Outcome:
        del call
        return Done(config.output)
