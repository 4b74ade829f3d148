"""Many operations on workflows in one request."""

from functools import partial
from typing import Final

import msgspec
from msgspec import UNSET

from app.domain import batch
from app.domain.batch import Action, Functions, Operation, OperationResult
from app.domain.workflows import checks, service
from app.domain.workflows.definitions import Node, Nodes
from app.domain.workflows.schemas import CreateWorkflow, UpdateWorkflow, WorkflowView
from app.security.principal import Principal
from app.services import Services
from db.session import Tx

_PERMISSIONS: Final[dict[Action, str]] = {
    "create": "workflows:write",
    "update": "workflows:write",
    "delete": "workflows:delete",
}


async def run(
    tx: Tx, services: Services, principal: Principal, operations: list[Operation]
) -> list[OperationResult[WorkflowView]]:
    """Expressions are checked before the first operation, which opens the transaction."""
    expressions = checks.CheckedExpressions()
    for operation in operations:
        nodes = _find_nodes(operation)
        if nodes is not None:
            await expressions.check(services, principal.home, nodes)

    async def create(data: CreateWorkflow) -> WorkflowView:
        expressions.require(data.nodes)
        return await service.create_checked(tx, principal, data)

    async def update(workflow_id: str, data: UpdateWorkflow) -> WorkflowView:
        if data.nodes is not UNSET:
            expressions.require(data.nodes)
        return await service.update_checked(tx, principal, workflow_id, data)

    functions = Functions(
        noun="a workflow",
        permissions=_PERMISSIONS,
        new=CreateWorkflow,
        change=UpdateWorkflow,
        create=create,
        update=update,
        delete=partial(service.delete, tx),
    )
    return await batch.run(tx, principal, functions, operations)


def _find_nodes(operation: Operation) -> list[Node] | None:
    """Returns None for nodes that are missing, or that the operation itself refuses."""
    if operation.action == "delete" or operation.data is None or "nodes" not in operation.data:
        return None
    try:
        # As the operation itself decodes them.
        return msgspec.json.decode(msgspec.json.encode(operation.data["nodes"]), type=Nodes)
    except msgspec.ValidationError:
        return None
