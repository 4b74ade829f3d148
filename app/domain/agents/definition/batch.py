"""Many operations on agents in one request."""

from functools import partial
from typing import Final

from app.domain import batch
from app.domain.batch import Action, Functions, Operation, OperationResult
from app.security.principal import Principal
from app.services import Services
from db.session import Tx

from . import service
from .schemas import AgentView, CreateAgent, UpdateAgent

_PERMISSIONS: Final[dict[Action, str]] = {
    "create": "agents:write",
    "update": "agents:write",
    "delete": "agents:delete",
}


async def run(
    tx: Tx, services: Services, principal: Principal, operations: list[Operation]
) -> list[OperationResult[AgentView]]:
    functions = Functions(
        noun="an agent",
        permissions=_PERMISSIONS,
        view=AgentView,
        new=CreateAgent,
        change=UpdateAgent,
        create=partial(service.create, tx, principal),
        lock=partial(service.lock, tx),
        update=partial(service.update, tx, principal),
        delete=partial(service.delete, tx, services),
    )
    return await batch.run(tx, principal, functions, operations)
