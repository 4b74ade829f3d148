"""The interface of this area for other areas."""

from typing import Any

import msgspec

from app.domain.area import Areas, FinishedCall
from app.domain.tools import queries
from app.domain.tools.agent_tools import AgentTools
from app.domain.tools.executions import accept_run, cancel_run
from app.domain.tools.offers import WEB_SEARCH, CallOutcome, CallStatus, ToolOffer
from app.services import Services
from db.session import Tx

__all__ = [
    "WEB_SEARCH",
    "AgentTools",
    "CallOutcome",
    "CallStatus",
    "ToolOffer",
    "accept_run",
    "cancel_run",
    "clear_calls",
    "delay_deletion",
    "find_existing_ids",
    "report_end",
]


delay_deletion = queries.delay_deletion
find_existing_ids = queries.find_existing_ids


async def report_end(
    tx: Tx,
    services: Services,
    tenant_id: str,
    call_id: str | None,
    output: str | None,
    error: tuple[str | None, str | None],
) -> None:
    """Tells the area that accepted a run for itself; chat waits for the runs of its own calls."""
    if call_id is None:
        return
    code, message = error
    value: Any = msgspec.json.decode(output) if output is not None and code is None else None
    failure = None if code is None else (code, message or "")
    await services.get(Areas).on_call_finished(
        FinishedCall(tx, services, tenant_id, call_id, value, failure)
    )


async def clear_calls(tx: Tx, tenant_id: str, call_ids: list[str]) -> None:
    """Deletes the content of the calls' executions, and keeps the executions for statistics.
    `outer.inner` is a call by a sub-agent, and its execution has the inner id.
    """
    inner_ids = [call_id.rpartition(".")[2] for call_id in call_ids]
    await queries.clear_executions_of_calls(tx, tenant_id, inner_ids)
