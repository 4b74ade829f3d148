"""Approvals for tests, requested as another area does."""

from typing import Any

from app.domain.automation.approvals import service
from app.domain.automation.approvals.service import NewApproval
from app.kit.ids import new_id
from app.services import Services
from db.session import Tx
from tests.database import fetch_rows
from tests.world import Client

PATH = "/api/v1/approvals"
# The prefix of callers whose ends the tests listen for.
CALLER_PREFIX = "tst"


def build_approval(**fields: Any) -> NewApproval:
    """Asks the role agent_user unless `user_ids` is set."""
    defaults: dict[str, Any] = {
        "caller_id": new_id(CALLER_PREFIX),
        "workflow_execution_id": "wfx_1",
        "node_id": "review",
        "title": "Refund order 4711",
        "message": "The customer wants 49.90 back.",
        "user_ids": None,
        "role": None if "user_ids" in fields else "agent_user",
        "timeout_seconds": None,
    }
    return NewApproval(**defaults | fields)


async def request(services: Services, tenant_id: str, **fields: Any) -> str:
    async with services.db.tx(tenant_id) as tx:
        return await service.request(tx, tenant_id, build_approval(**fields))


async def cancel(tx: Tx, services: Services, tenant_id: str, *caller_ids: str) -> None:
    await service.cancel(tx, services, tenant_id, list(caller_ids))


async def read_approval(caller: Client, approval_id: str) -> dict[str, Any]:
    answer = await caller.get(f"{PATH}/{approval_id}")
    assert answer.status_code == 200, answer.text
    data: dict[str, Any] = answer.json()["data"]
    return data


async def list_ids(caller: Client, **params: Any) -> list[str]:
    answer = await caller.get(PATH, params=params)
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["data"]]


async def read_timer(services: Services, approval_id: str) -> dict[str, Any]:
    """Returns the work that ends the approval when its time is up."""
    sql = "SELECT id, kind, state, run_at FROM work WHERE ref_id = $1"
    (row,) = await fetch_rows(services, sql, approval_id)
    return row
