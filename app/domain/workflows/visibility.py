"""What of a definition is shown to whom."""

from typing import Any

import msgspec

from app.domain.workflows.definitions import Node
from app.kit.headers import MASK
from app.kit.json_diff import is_secret_key
from app.security.principal import Principal

_WRITE_PERMISSION = "workflows:write"


def select_nodes(principal: Principal, nodes: list[Node]) -> list[Node]:
    """Returns the nodes, with masks in the place of secrets for those who may not change them.
    Secrets belong into the vault; this is for those that authors write into configs, and hides what
    the difference between two versions hides.
    """
    if principal.may(_WRITE_PERMISSION):
        return nodes
    return [msgspec.structs.replace(node, config=_mask(node.config)) for node in nodes]


def _mask(value: Any) -> Any:
    match value:
        case list():
            return [_mask(item) for item in value]
        case dict():
            return {
                key: MASK if item is not None and is_secret_key(key) else _mask(item)
                for key, item in value.items()
            }
    return value
