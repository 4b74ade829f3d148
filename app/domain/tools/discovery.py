"""Asking an MCP server what it offers."""

import asyncio

from app.domain.tools import identity, queries, running
from app.domain.tools.configs import CustomConfig, host_of
from app.domain.tools.errors import ToolNotFound
from app.domain.tools.executors import custom
from app.domain.tools.executors.protocol import ToolFailed
from app.domain.tools.plans import plan_of, seconds_of
from app.domain.tools.schemas import Discovered
from app.kit.errors import Conflict, ProviderError
from app.kit.redaction import Redactor
from app.services import Services
from db.fast import tenant_of
from db.session import Scope

_LONGEST_SECONDS = 20.0


async def discover(services: Services, scope: Scope, tool_id: str) -> list[Discovered]:
    async with services.db.tx(scope, autocommit=True) as tx:
        row = await queries.to_run(tx, tenant_of(tx), tool_id, None)
    if row is None:
        raise ToolNotFound(f"There is no tool {tool_id[:64]}")
    plan = plan_of(row, None, services.egress.guard)
    if not isinstance(plan.config, CustomConfig):
        raise Conflict("Only a tool of type custom has a server to ask")
    hidden: list[str] = []
    seconds = min(seconds_of(plan.config), _LONGEST_SECONDS)
    try:
        async with services.outbound_limit.hold(row["tenant_id"]), asyncio.timeout(seconds):
            auth = await identity.auth_of(
                services,
                row["tenant_id"],
                plan.auth_type,
                running.opened(services, plan),
                plan.user,
                host_of(plan.config, services.egress.guard),
            )
            hidden += auth.hidden
            found = await custom.discover(services.egress, plan.config, auth, seconds)
    except TimeoutError as error:
        raise ProviderError(f"The server did not answer within {seconds:g} s") from error
    except ToolFailed as error:
        said = Redactor(hidden).text(error.message)[:1000]
        details = {"code": error.code}
        raise ProviderError(f"The server cannot be asked: {said}", details=details) from error
    shown = Redactor(hidden).value(found)
    return [Discovered(one["name"], one["description"], one["input_schema"]) for one in shown]
