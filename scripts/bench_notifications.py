"""Measures sends through a channel against bare posts, and the center with a million rows."""

import asyncio
import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

import aiohttp
from bench_events import time_list

from db.session import ALL_TENANTS
from tests.world import Client, World

_ROUNDS = 3
_USERS = 2_000
_FEW = 1_000
_MANY = 1_000_000
# As many as a worker sends through one channel.
_CONCURRENT = 32
_BODY = (
    b'{"personalizations":[{"to":[{"email":"user1@example.com"}]}],"from":{"email":"a@b.example"},'
    b'"subject":"Import finished","content":[{"type":"text/plain","value":"It has 12 rows."}]}'
)

Row = Callable[..., None]

_ADD_USERS = """
WITH added AS (
    INSERT INTO users
        (tenant_id, id, email, email_verified, role, password_hash, first_name, last_name)
    SELECT $1::text, 'usr_' || $1::text || n, 'user' || n || '.' || $1::text || '@example.com',
           true, 'viewer', 'none', 'Test', 'User'
    FROM generate_series(1, $2::int) n RETURNING id
)
INSERT INTO notification_preferences (tenant_id, user_id, preferences)
SELECT $1, id, '{"message": {"email": true}}' FROM added
"""
_DELIVERED = """
SELECT count(*) FROM notification_deliveries WHERE channel_id = $1 AND status = 'delivered'
"""
# The first thousand have a message: a page has no others, and a million more take a minute.
_ADD_MESSAGES = """
INSERT INTO notification_messages (tenant_id, id, type, title, message, data, recipients, occasion,
                                   source, correlation_id)
SELECT $1::text, 'ntm_' || $1::text || n, 'message', 'Import finished', 'It has 12 rows.',
       '{"rows": 12}', '{}', 'ntm_' || $1::text || n, 'bench', 'cor_bench'
FROM generate_series(0, 999) n
"""
_ADD_NOTIFICATIONS = """
INSERT INTO notifications (tenant_id, id, user_id, message_id, type, created_at)
SELECT $1::text, 'ntf_' || $1::text || lpad(n::text, 8, '0'), $2, 'ntm_' || $1::text || n,
       'message', now() - n * interval '1 second'
FROM generate_series(0, $3::int - 1) n
"""


async def bench(world: World, ports: dict[str, int], row: Row) -> None:
    await _send(world, f"http://127.0.0.1:{ports['receiver']}", row)
    await _grow(world, row)


# Sends


async def _send(world: World, receiver: str, row: Row) -> None:
    user = await world.user("tenant_admin")
    channel_id = await _create_channel(user, receiver)
    async with world.services.db.tx(user.tenant_id) as tx:
        await (await tx.raw()).execute(_ADD_USERS, user.tenant_id, _USERS)
    ours, bare = [], []
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        for number in range(_ROUNDS + 1):
            sends = await _send_rate(world, user, channel_id, number + 1)
            posts = await _post_rate(http, receiver)
            if number:
                ours.append(sends)
                bare.append(posts)
        # The receiver keeps the time of each arrival until it is read.
        async with http.get(f"{receiver}/times") as response:
            await response.read()
    rate, bare_rate = statistics.median(ours), statistics.median(bare)
    share = rate / bare_rate
    row(f"one message to {_USERS} users by mail", f"{rate:.0f}/s", f"{bare_rate:.0f}/s",
        f"{share:.0%}", "≥ 8 %", holds=share >= 0.08)  # fmt: skip


async def _create_channel(user: Client, receiver: str) -> str:
    body = {
        "name": "Mail",
        "type": "email",
        "provider": "sendgrid",
        "config": {"api_key": "key", "from": "a@b.example", "api_base": receiver},
        "rate_limit_per_minute": 100_000,
    }
    answer = await user.post("/api/v1/notification-channels", body)
    answer.raise_for_status()
    channel_id: str = answer.json()["id"]
    return channel_id


async def _send_rate(world: World, user: Client, channel_id: str, number: int) -> float:
    """Returns mails per second, from the request to the last outcome."""
    started = time.perf_counter()
    body = {"type": "message", "title": "Import finished", "message": "It has 12 rows."}
    answer = await user.post("/api/v1/notifications", {**body, "role": "viewer"})
    answer.raise_for_status()
    while await _count(world, channel_id) < number * _USERS:  # noqa: ASYNC110  # a worker writes
        await asyncio.sleep(0.05)
    return _USERS / (time.perf_counter() - started)


async def _count(world: World, channel_id: str) -> int:
    async with world.services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        count: int = await (await tx.raw()).fetchval(_DELIVERED, channel_id)
    return count


async def _post_rate(http: aiohttp.ClientSession, receiver: str) -> float:
    numbers = itertools.count()

    async def post() -> None:
        headers = {"Content-Type": "application/json", "Authorization": "Bearer key"}
        while next(numbers) < _USERS:
            url = f"{receiver}/v3/mail/send"
            async with http.post(url, data=_BODY, headers=headers) as response:
                await response.read()

    started = time.perf_counter()
    await asyncio.gather(*(post() for _ in range(_CONCURRENT)))
    return _USERS / (time.perf_counter() - started)


# A million rows of one user


async def _grow(world: World, row: Row) -> None:
    few = await _time_center(await _insert_rows(world, _FEW))
    many = await _time_center(await _insert_rows(world, _MANY))
    for name, before in few.items():
        after = many[name]
        row(name, f"{after:.2f} ms", f"{before:.2f} ms", f"{after / before:.1f} times", "≤ 3 times",
            holds=after <= 3 * before)  # fmt: skip


async def _insert_rows(world: World, count: int) -> Client:
    user = await world.user("tenant_admin")
    async with world.services.db.tx(user.tenant_id, autocommit=True) as tx:
        raw = await tx.raw()
        await raw.execute(_ADD_MESSAGES, user.tenant_id)
        # Without checks of foreign keys.
        await raw.execute("SET session_replication_role = replica")
        await raw.execute(_ADD_NOTIFICATIONS, user.tenant_id, user.user_id, count, timeout=600)
        await raw.execute("SET session_replication_role = DEFAULT")
        await raw.execute("VACUUM ANALYZE notifications, notification_messages", timeout=600)
    return user


async def _time_center(user: Client) -> dict[str, float]:
    center = "/api/v1/notifications"
    requests: dict[str, tuple[str, dict[str, Any]]] = {
        "notifications, first page": (center, {}),
        "notifications, 40th page": (center, {"page": 40}),
        "notifications, unread": (center, {"read": False}),
        "notifications, one type": (center, {"type": "message"}),
        "notifications, count of unread": (f"{center}/unread/count", {}),
    }
    return {name: await time_list(user, path, query) for name, (path, query) in requests.items()}
