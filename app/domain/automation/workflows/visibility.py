"""What of a definition is shown to whom."""

import msgspec

from app.domain.automation.workflows.definitions import Node
from app.security.principal import Principal

_WRITE_PERMISSION = "workflows:write"


def select_nodes(principal: Principal, nodes: list[Node]) -> list[Node]:
    """Returns the nodes, without their configs for callers who may not change them: configs have
    prompts, and some have secrets that belong into the vault.
    """
    if principal.may(_WRITE_PERMISSION):
        return nodes
    return [msgspec.structs.replace(node, config={}) for node in nodes]
