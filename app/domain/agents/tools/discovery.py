"""Lists the tools of an MCP server."""

import asyncio

from app.kit.errors import Conflict, ProviderError
from app.net.redaction import Redactor
from app.services import Services
from db.fast import tenant_of
from db.session import Scope

from . import authentication, queries
from .configs import CustomConfig
from .errors import ToolFailed, ToolNotFound
from .executors import custom
from .run_plan import build_plan, timeout_seconds
from .schemas import Discovered

_MAX_SECONDS = 20.0
_MAX_MESSAGE_CHARS = 1000


async def discover(services: Services, scope: Scope, tool_id: str) -> list[Discovered]:
    async with services.db.tx(scope, autocommit=True) as tx:
        row = await queries.load_tool(tx, tenant_of(tx), tool_id, None)
    if row is None:
        raise ToolNotFound(f"There is no tool {tool_id[:64]}")
    plan = build_plan(row, None, services.egress.guard)
    if not isinstance(plan.config, CustomConfig):
        raise Conflict("Only a tool of type custom has an MCP server")
    secrets: list[str] = []
    seconds = min(timeout_seconds(plan.config), _MAX_SECONDS)
    try:
        async with services.outbound_limit.hold(row["tenant_id"]), asyncio.timeout(seconds):
            auth = await authentication.resolve_auth(services, row["tenant_id"], plan)
            secrets += auth.secrets
            tools = await custom.list_tools(services.egress, plan.config, auth, seconds)
    except TimeoutError as error:
        raise ProviderError(f"The server did not answer within {seconds:g} s") from error
    except ToolFailed as error:
        reason = Redactor(secrets).text(error.message, _MAX_MESSAGE_CHARS)
        details = {"code": error.code}
        raise ProviderError(
            f"The server did not list its tools: {reason}", details=details
        ) from error
    redacted = Redactor(secrets).value(tools)
    return [
        Discovered(tool["name"], tool["description"], tool["input_schema"]) for tool in redacted
    ]
