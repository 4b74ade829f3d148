"""Many operations on workflows in one request."""

from functools import partial
from typing import Final

import msgspec
from msgspec import UNSET

from app.domain import batch
from app.domain.batch import Action, Functions, Operation, OperationResult
from app.kit import validation
from app.kit.errors import Invalid
from app.security.principal import Principal
from app.services import Services
from db.session import Tx

from . import service
from .checks import CheckedDefinitions, CheckedExpressions
from .definitions import Definition
from .schemas import CreateWorkflow, UpdateWorkflow, WorkflowView

_PERMISSIONS: Final[dict[Action, str]] = {
    "create": "workflows:write",
    "update": "workflows:write",
    "delete": "workflows:delete",
}


async def run(
    tx: Tx, services: Services, principal: Principal, operations: list[Operation]
) -> list[OperationResult[WorkflowView]]:
    """Expressions and definitions are checked before the first operation, which opens the
    transaction.
    """
    expressions, definitions = CheckedExpressions(), CheckedDefinitions()
    for operation in operations:
        data = _decode(operation)
        if data is None:
            continue
        if data.nodes is not UNSET:
            await expressions.check(services, principal.home, data.nodes)
        await _check_definition(services, principal, operation, data, definitions)

    async def create(data: CreateWorkflow) -> WorkflowView:
        expressions.require(data.nodes)
        return await service.create_checked(tx, principal, data, definitions)

    async def update(workflow_id: str, data: UpdateWorkflow) -> WorkflowView:
        if data.nodes is not UNSET:
            expressions.require(data.nodes)
        return await service.update_checked(tx, principal, workflow_id, data, definitions)

    functions = Functions(
        noun="a workflow",
        permissions=_PERMISSIONS,
        view=WorkflowView,
        new=CreateWorkflow,
        change=UpdateWorkflow,
        create=create,
        lock=partial(service.lock, tx),
        update=update,
        delete=partial(service.delete, tx),
    )
    return await batch.run(tx, principal, functions, operations)


def _decode(operation: Operation) -> CreateWorkflow | UpdateWorkflow | None:
    """Returns None for data that is missing, or that the operation itself refuses."""
    if operation.action == "delete" or operation.data is None:
        return None
    kind = CreateWorkflow if operation.action == "create" else UpdateWorkflow
    try:
        data: CreateWorkflow | UpdateWorkflow = validation.decode(
            msgspec.json.encode(operation.data), kind, is_open=True
        )
    except Invalid:
        return None
    return data


async def _check_definition(
    services: Services,
    principal: Principal,
    operation: Operation,
    data: CreateWorkflow | UpdateWorkflow,
    definitions: CheckedDefinitions,
) -> None:
    if isinstance(data, CreateWorkflow):
        await definitions.check(services, principal, Definition(data.nodes, data.edges))
    elif operation.id is not None:
        await service.check_update(services, principal, operation.id, data, definitions)
