"""The types of nodes, as the API lists them."""

from functools import cache

import msgspec

from app.domain.automation.workflows.nodes.registry import NODE_TYPES
from app.domain.automation.workflows.schemas import NodeTypeView
from app.kit.views import Data


@cache
def list_all() -> Data[list[NodeTypeView]]:
    return Data(
        [
            NodeTypeView(
                node_type.name,
                node_type.description,
                _build_schema(node_type.config),
                sorted(node_type.literal | node_type.conditions),
                node_type.has_branches,
                node_type.has_timeout,
                node_type.has_retry,
                node_type.example,
            )
            for node_type in NODE_TYPES.values()
        ]
    )


def _build_schema(config: type[msgspec.Struct]) -> dict[str, object]:
    """Returns the schema of the struct itself, without a reference to it."""
    (schema,), components = msgspec.json.schema_components([config])
    own_schema: dict[str, object] = components.get(config.__name__, schema)
    return own_schema
