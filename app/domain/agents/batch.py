"""Runs many operations on agents in one request; each succeeds or fails by itself."""

import msgspec

from app.domain.agents import service
from app.domain.agents.schemas import (
    AgentView,
    CreateAgent,
    Operation,
    OperationError,
    OperationResult,
    UpdateAgent,
)
from app.kit import validation
from app.kit.error_mapping import HTTP_SERVER_ERROR, to_api_error
from app.kit.errors import ApiError, Invalid
from app.security.principal import Principal
from app.services import Services
from db.session import Tx

_SUCCESS_STATUS = {"create": 201, "update": 200, "delete": 204}


async def run(
    tx: Tx, services: Services, principal: Principal, operations: list[Operation]
) -> list[OperationResult]:
    return [
        await _run_in_savepoint(tx, services, principal, index, operation)
        for index, operation in enumerate(operations)
    ]


async def _run_in_savepoint(
    tx: Tx, services: Services, principal: Principal, index: int, operation: Operation
) -> OperationResult:
    """Runs one operation in a savepoint, which is rolled back when the operation fails."""
    session, callback_count = await tx.session(), len(tx.after_commit)
    try:
        async with session.begin_nested():
            view = await _run_operation(tx, services, principal, operation)
    except Exception as error:
        api_error = to_api_error(error)
        if api_error.status >= HTTP_SERVER_ERROR:
            raise
        del tx.after_commit[callback_count:]
        return _build_error_result(index, api_error)
    return OperationResult(index, _SUCCESS_STATUS[operation.action], data=view)


async def _run_operation(
    tx: Tx, services: Services, principal: Principal, operation: Operation
) -> AgentView | None:
    raw = msgspec.json.encode(operation.data)
    if operation.action == "create":
        if operation.data is None:
            raise Invalid.field("data", "is required to create an agent")
        return await service.create(tx, principal, validation.decode(raw, CreateAgent))
    if not operation.id:
        raise Invalid.field("id", f"is required to {operation.action} an agent")
    if operation.action == "delete":
        principal.require("agents:delete")
        await service.delete(tx, services, operation.id)
        return None
    if operation.data is None:
        raise Invalid.field("data", "is required to update an agent")
    return await service.update(tx, principal, operation.id, validation.decode(raw, UpdateAgent))


def _build_error_result(index: int, error: ApiError) -> OperationResult:
    body = OperationError(error.code, error.message, error.details)
    return OperationResult(index, error.status, error=body)
