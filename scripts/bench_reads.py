"""Measures reads of the API against a handler that answers the same JSON from one query."""

import os
import statistics
from collections.abc import Callable
from typing import Any

import asyncpg
import msgspec
import psutil
from litestar import Litestar, Request, get
from load import CLIENTS, SECONDS, per_second

from tests.world import Client, World

_ROUNDS = 3
_PAGE = 20
_ROWS = 30

Row = Callable[..., None]

_TOTAL = "count(*) OVER () AS total"
_AGENT = """
SELECT id, name, description, primary_model, system_prompt, temperature, max_tokens, status,
       version, created_at, updated_at
FROM agents WHERE tenant_id = $1 AND id = $2
"""
_SUMMARIES = f"""
SELECT id, name, description, primary_model, status, temperature, created_at, updated_at, {_TOTAL}
FROM agents WHERE tenant_id = $1 AND parent_id IS NULL
ORDER BY created_at DESC, id DESC LIMIT {_PAGE}
"""
_TOOLS = f"""
SELECT id, name, slug, description, category, tool_type, auth_type, is_enabled, usage_count,
       last_used_at, created_at, {_TOTAL}
FROM tools WHERE tenant_id = $1 ORDER BY created_at DESC, id DESC LIMIT {_PAGE}
"""
_CONVERSATIONS = f"""
SELECT id, agent_id, user_id, source, title,
       CASE WHEN ended_at IS NULL THEN 'active' ELSE 'ended' END AS status, message_count,
       created_at, last_message_at, ended_at, {_TOTAL}
FROM conversations WHERE tenant_id = $1 AND agent_id = $2
ORDER BY last_message_at DESC, id DESC LIMIT {_PAGE}
"""
_CREDENTIALS = f"""
SELECT id, name, type, description, is_valid, last_tested_at, last_used_at, created_at, updated_at,
       {_TOTAL}
FROM credentials WHERE tenant_id = $1 ORDER BY created_at DESC, id DESC LIMIT {_PAGE}
"""
_WEBHOOKS = f"""
SELECT id, url, events, active, description, '{{}}' AS headers, failing_since, disabled_reason,
       previous_until AS previous_secret_expires_at, created_at, updated_at, {_TOTAL}
FROM webhooks WHERE tenant_id = $1 AND subscription_id IS NULL
ORDER BY created_at DESC, id DESC LIMIT {_PAGE}
"""
_EVENTS = f"""
SELECT id, type, correlation_id, parent_id, data::text AS data, created_at, {_TOTAL}
FROM event_log WHERE tenant_id = $1 ORDER BY created_at DESC, id DESC LIMIT {_PAGE}
"""
_NOTIFICATIONS = f"""
SELECT n.id, n.type, m.title, m.message, n.read, m.data::text AS data, n.created_at, {_TOTAL},
       count(*) FILTER (WHERE NOT n.read) OVER () AS unread
FROM notifications n JOIN notification_messages m ON m.id = n.message_id
WHERE n.tenant_id = $1 AND n.user_id = $2 ORDER BY n.created_at DESC, n.id DESC LIMIT {_PAGE}
"""


class Read(msgspec.Struct, frozen=True):
    """A GET of the API, and the query that answers the same. `needs_agent`: `$2` is the agent;
    `needs_user`: it is the user.
    """

    name: str
    path: str
    sql: str
    max_milliseconds: float = 2.0
    needs_agent: bool = False
    needs_user: bool = False


_READS = (
    Read("GET of an agent", "/api/v1/agents/{agent_id}", _AGENT, 1.2, needs_agent=True),
    Read("list of agents", "/api/v1/agents", _SUMMARIES),
    Read("list of tools", "/v1/tools", _TOOLS),
    Read(
        "list of conversations",
        "/api/v1/agents/{agent_id}/conversations",
        _CONVERSATIONS,
        needs_agent=True,
    ),
    Read("list of credentials", "/v1/credentials", _CREDENTIALS),
    Read("list of webhooks", "/api/v1/webhooks", _WEBHOOKS),
    Read("event log", "/api/v1/event-log", _EVENTS),
    Read("list of notifications", "/api/v1/notifications", _NOTIFICATIONS, needs_user=True),
)


@get("/bench/empty", signed_in=True)
async def empty() -> dict[str, str]:
    return {"status": "ok"}


# The bare counterpart


@get("/one/{number:int}/{tenant_id:str}/{agent_id:str}")
async def bare_one(request: Request, number: int, tenant_id: str, agent_id: str) -> dict[str, Any]:  # type: ignore[type-arg]
    async with request.app.state.pool.acquire() as connection:
        row = dict(await connection.fetchrow(_READS[number].sql, tenant_id, agent_id))
    return {**row, "tools": [], "knowledge_base": {}, "sub_agents": []}


@get("/list/{number:int}/{tenant_id:str}/{owner_id:str}")
async def bare_list(request: Request, number: int, tenant_id: str, owner_id: str) -> dict[str, Any]:  # type: ignore[type-arg]
    read = _READS[number]
    args = (tenant_id, owner_id) if read.needs_agent or read.needs_user else (tenant_id,)
    async with request.app.state.pool.acquire() as connection:
        rows = [dict(row) for row in await connection.fetch(read.sql, *args)]
    counts = {name: rows[0][name] for name in ("total", "unread") if name in rows[0]}
    for row in rows:
        for name in counts:
            del row[name]
        if "data" in row:
            row["data"] = msgspec.json.decode(row["data"])
    return {"data": rows, "pagination": {"page": 1, "per_page": _PAGE, **counts}}


def bare_app() -> Litestar:
    async def start(app: Litestar) -> None:
        url = os.environ["PARLEY_DATABASE_URL"]
        app.state.pool = await asyncpg.create_pool(url, min_size=10, max_size=20)

    return Litestar([bare_one, bare_list], on_startup=[start], openapi_config=None)


# The rows of the table


async def _insert_rows(user: Client) -> str:
    """Creates what the lists show; returns the id of the agent with the conversations."""
    agent_id = ""
    for number in range(_ROWS):
        agent = {
            "name": f"Agent {number}",
            "primary_model": "local/smollm2",
            "system_prompt": "You are measured.",
        }
        tool = {
            "name": f"Tool {number}",
            "description": "Adds numbers",
            "category": "automation",
            "tool_type": "function",
            "auth_type": "none",
            "config": {"runtime": "python", "code": "def main(**values):\n    return 1"},
        }
        credential = {"name": f"Key {number}", "type": "bearer_token", "secrets": {"token": "x"}}
        webhook = {"url": "http://127.0.0.1:9/", "events": ["agent.deleted"], "active": False}
        for path, body in (
            ("/api/v1/agents", agent),
            ("/v1/tools", tool),
            ("/v1/credentials", credential),
            ("/api/v1/webhooks", webhook),
        ):
            response = await user.post(path, body)
            response.raise_for_status()
            if path == "/api/v1/agents":
                agent_id = response.json()["id"]
    return agent_id


_ADD_CONVERSATIONS = """
INSERT INTO conversations (tenant_id, id, agent_id, user_id, source, title, message_count)
SELECT $1::text, 'cnv_' || gen_random_uuid(), $2, $3, 'console', 'What is the weather like?', 2
FROM generate_series(1, $4::int)
"""
_ADD_NOTIFICATIONS = """
WITH added AS (
    INSERT INTO notification_messages (tenant_id, id, type, title, message, data, recipients,
                                       occasion, source, correlation_id)
    SELECT $1::text, 'ntm_' || n, 'message', 'Import finished', 'It has 12 rows.', '{"rows": 12}',
           '{}', 'ntm_' || n, 'bench', 'cor_bench'
    FROM generate_series(1, $3::int) n RETURNING id, type
)
INSERT INTO notifications (tenant_id, id, user_id, message_id, type)
SELECT $1::text, 'ntf' || substr(id, 4), $2, id, type FROM added
"""


async def _rate_and_cost(
    port: int, path: str, token: str, process: psutil.Process
) -> tuple[float, float]:
    """Returns requests per second, and the milliseconds of CPU that each of them takes."""
    auth = f"Authorization: Bearer {token}\r\n" if token else ""
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{auth}\r\n".encode()
    before = process.cpu_times()
    rate = await per_second(port, [[request]] * CLIENTS)
    after = process.cpu_times()
    cpu = after.user + after.system - before.user - before.system
    # The client warms up before it counts, and the server ends the last requests after it.
    return rate, 1000 * cpu / (rate * (SECONDS + 0.5))


async def bench(world: World, ports: dict[str, int], web_pid: int, row: Row) -> None:
    user = await world.user("tenant_admin")
    agent_id = await _insert_rows(user)
    async with world.services.db.tx(user.tenant_id) as tx:
        raw = await tx.raw()
        await raw.execute(_ADD_CONVERSATIONS, user.tenant_id, agent_id, user.user_id, _ROWS)
        await raw.execute(_ADD_NOTIFICATIONS, user.tenant_id, user.user_id, _ROWS)
    process = psutil.Process(web_pid)
    for number, read in enumerate(_READS):
        path = read.path.format(agent_id=agent_id)
        kind = "list" if number else "one"
        owner_id = user.user_id if read.needs_user else agent_id
        bare_path = f"/{kind}/{number}/{user.tenant_id}/{owner_id}"
        ours, costs, bare = [], [], []
        for _ in range(_ROUNDS):
            rate, cost = await _rate_and_cost(ports["parley"], path, user.token or "", process)
            ours.append(rate)
            costs.append(cost)
            bare.append((await _rate_and_cost(ports["bare_reads"], bare_path, "", process))[0])
        share, cost = statistics.median(ours) / statistics.median(bare), statistics.median(costs)
        row(read.name, f"{statistics.median(ours):.0f}/s", f"{statistics.median(bare):.0f}/s",
            f"{share:.0%}", "≥ 40 %", holds=share >= 0.4)  # fmt: skip
        row(f"{read.name}, CPU", f"{cost:.2f} ms", "", "", f"≤ {read.max_milliseconds} ms",
            holds=cost <= read.max_milliseconds)  # fmt: skip
