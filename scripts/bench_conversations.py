"""Measures the list of a tenant's conversations, by filter, and their export: 100,000 of them
against a thousand.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from bench_events import time_list

from tests.world import Client, World

_FEW = 1_000
_MANY = 100_000
_EXPORTS = 3
_PATH = "/api/v1/conversations"
# One of a hundred of each rare kind, the newest first. Ratings and failed answers are counted by
# triggers, here by the rows themselves.
_ADD_CONVERSATIONS = """
INSERT INTO conversations (tenant_id, id, agent_id, user_id, source, title, message_count,
                           last_message_at, ended_at, failed_answers, ratings_up, ratings_down,
                           visitor)
SELECT $1::text, $1::text || n, $2::text, CASE WHEN n % 2 = 0 THEN $3::text END,
       CASE WHEN n % 100 = 1 THEN 'workflow' WHEN n % 2 = 0 THEN 'console' ELSE 'embed' END,
       'What is the weather like in place ' || n || '?', 2, now() - n * interval '1 minute',
       CASE WHEN n > 50 THEN now() END, (n % 100 = 2)::int, (n % 100 = 3)::int, (n % 100 = 4)::int,
       CASE WHEN n % 2 = 1 THEN jsonb_build_object('id', 'customer-' || n % 1000) END
FROM generate_series(1, $4::int) n
"""
_ADD_MESSAGES = """
INSERT INTO conversation_entries (tenant_id, id, agent_id, conversation_id, type, role, content)
SELECT c.tenant_id, 'msg_' || c.id || m.role, c.agent_id, c.id, 'message', m.role,
       repeat('It is warm and dry. ', 20)
FROM conversations c, (VALUES ('user'), ('assistant')) AS m (role) WHERE c.tenant_id = $1
"""
# All but the newest tenth are read.
_READ = """
INSERT INTO conversation_readers (tenant_id, user_id, read_until)
VALUES ($1, $2, now() - $3 * interval '6 seconds')
"""
_FILTERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("all", {}),
    ("one page of 100", {"limit": 100}),
    ("a source", {"source": "workflow"}),
    ("a visitor", {"visitor": "customer-7"}),
    ("failed", {"failed": True}),
    ("rated down", {"rating": "down"}),
    ("active", {"status": "active"}),
    ("unread", {"unread": True}),
    ("read", {"unread": False}),
    ("a title", {"search": "place 977?"}),
    ("unread, failed, a source", {"unread": True, "failed": True, "source": "console"}),
)

Row = Callable[..., None]


async def bench(world: World, row: Row) -> None:
    few, many = [await _create_tenant(world, count) for count in (_FEW, _MANY)]
    cases = [*_FILTERS, ("after 90,000", {"cursor": await _read_cursor(many)})]
    for name, query in cases:
        params = query if name != "after 90,000" else {}
        small, large = await time_list(few, _PATH, params), await time_list(many, _PATH, query)
        row(f"conversations: {name}", f"{large:.1f} ms", f"{small:.1f} ms",
            f"{large / small:.1f}-fold", "≤ 100 ms", holds=large <= 100)  # fmt: skip
    await _bench_export(few, many, row)


async def _bench_export(few: Client, many: Client, row: Row) -> None:
    """Exports the newest thousand conversations of both tenants."""
    since = datetime.now(UTC) - timedelta(minutes=_FEW)
    query = {"from": since.isoformat(), "format": "jsonl"}
    path = f"{_PATH}/export"
    small, large = [await time_list(user, path, query, _EXPORTS) for user in (few, many)]
    row(f"conversations: export of {_FEW}", f"{large:.0f} ms", f"{small:.0f} ms",
        f"{large / small:.1f}-fold", "≤ 3-fold", holds=large <= 3 * small)  # fmt: skip


async def _create_tenant(world: World, count: int) -> Client:
    user = await world.user("tenant_admin", await world.tenant())
    body = {"name": "Talker", "primary_model": "local/smollm2", "system_prompt": "You help."}
    answer = await user.post("/api/v1/agents", body)
    answer.raise_for_status()
    async with world.services.db.tx(user.tenant_id) as tx:
        raw = await tx.raw()
        ids = (user.tenant_id, answer.json()["id"], user.user_id)
        await raw.execute(_ADD_CONVERSATIONS, *ids, count)
        await raw.execute(_ADD_MESSAGES, user.tenant_id)
        await raw.execute(_READ, user.tenant_id, user.user_id, count)
        await raw.execute("ANALYZE conversations, conversation_entries")
    return user


async def _read_cursor(user: Client) -> str:
    """Returns the cursor after nine of ten conversations."""
    until = datetime.now(UTC) - timedelta(minutes=_MANY * 9 // 10)
    query = {"to": until.isoformat(), "limit": 1}
    answer = await user.get(_PATH, params=query)
    answer.raise_for_status()
    cursor: str = answer.json()["next_cursor"]
    return cursor
