"""Many operations on workflows in one request."""

from functools import partial
from typing import Final

from app.domain import batch
from app.domain.batch import Action, Functions, Operation, OperationResult
from app.domain.workflows import service
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
    functions = Functions(
        noun="a workflow",
        permissions=_PERMISSIONS,
        new=CreateWorkflow,
        change=UpdateWorkflow,
        create=partial(service.create, tx, services, principal),
        update=partial(service.update, tx, services, principal),
        delete=partial(service.delete, tx),
    )
    return await batch.run(tx, principal, functions, operations)
