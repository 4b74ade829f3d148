"""The end of runs that other areas asked for."""

from typing import Any

import msgspec

from app.domain.agents.tools import queries
from app.domain.area import Areas, FinishedCall
from app.services import Services
from db.session import Tx


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
