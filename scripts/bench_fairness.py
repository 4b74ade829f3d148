"""Measures what a polite tenant notices of a hostile one: its requests, and work that it starts."""

import asyncio
import math
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import aiohttp

from tests.database import fetch_rows
from tests.world import Client, World

_SECONDS = 6.0
_PAUSE = 0.05
_MAX_MS = 250
_MEGABYTE = 1024 * 1024
# Takes a parser long.
_TEMPLATE = "{% if a %}" + "{% elif a %}" * 1500 + "{% endif %}"

Row = Callable[..., None]


class Site(NamedTuple):
    """The web process that is measured, and a hostile tenant's administrator."""

    base: str
    user: Client

    async def send(self, method: str, path: str, **options: Any) -> int:
        """Sends a request of the hostile tenant and returns its status; 0 for a broken one."""
        headers = {"Authorization": f"Bearer {self.user.token}", **options.pop("headers", {})}
        return await self.visit(method, path, headers=headers, **options)

    async def visit(
        self, method: str, path: str, address: str = "127.0.0.2", **options: Any
    ) -> int:
        """Sends a request of a visitor at another address of this machine."""
        connector = aiohttp.TCPConnector(local_addr=(address, 0))
        timeout = aiohttp.ClientTimeout(total=_SECONDS)
        with suppress(aiohttp.ClientError, TimeoutError, OSError):
            async with (
                aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
                session.request(method, self.base + path, **options) as response,
            ):
                await response.read()
                return response.status
        return 0

    async def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = await self.user.post(path, body)
        answer.raise_for_status()
        data: dict[str, Any] = answer.json()["data"]
        return data

    async def publish_form(self, fields: list[dict[str, Any]]) -> dict[str, Any]:
        form = await self.create("/api/v1/forms", {"name": "Hostile", "fields": fields})
        (await self.user.post(f"/api/v1/forms/{form['id']}/publish")).raise_for_status()
        return form


# The hostile tenants: each yields what is sent again and again, by as many clients


async def workflows_with_keys(site: Site) -> Callable[[int], Awaitable[int]]:
    nodes = [
        {"id": f"n{number}", "type": "transform", "config": {"output": _TEMPLATE}}
        for number in range(24)
    ]
    body = {"name": "Hostile", "nodes": nodes, "edges": []}

    async def send(number: int) -> int:
        headers = {"Idempotency-Key": f"hostile {number} {time.monotonic()}"}
        return await site.send("POST", "/api/v1/workflows", json=body, headers=headers)

    return send


async def messages_to_many_labels(site: Site) -> Callable[[int], Awaitable[int]]:
    words = [f"w{number:x}" for number in range(118 * 398)]
    fields = [
        {
            "id": f"f{index}",
            "type": "text",
            "label": " ".join(words[index * 398 : index * 398 + 398])[:2000],
        }
        for index in range(100)
    ]
    return await _message_sender(site, fields, "a " * 1999)


async def messages_to_slow_patterns(site: Site) -> Callable[[int], Awaitable[int]]:
    pattern = {"pattern": "[ab]*a[ab]{60}"}
    fields = [
        {"id": f"f{index}", "type": "text", "label": f"Field {index}", "validation": pattern}
        for index in range(6)
    ]
    return await _message_sender(site, fields, "ab" * 1000)


async def _message_sender(
    site: Site, fields: list[dict[str, Any]], text: str
) -> Callable[[int], Awaitable[int]]:
    form = await site.publish_form(fields)
    path = f"/api/v1/public/forms/{form['slug']}/conversations"

    async def send(_number: int) -> int:
        answer = await site.user.http.post(path, json={})
        if answer.status_code != 201:
            return answer.status_code
        conversation = answer.json()["data"]["id"]
        return await site.visit("POST", f"{path}/{conversation}/messages", json={"message": text})

    return send


async def submissions_of_many_selects(site: Site) -> Callable[[int], Awaitable[int]]:
    table_id = await _create_table(site, 1000)
    source = {"table_id": table_id, "value_column": "Name", "label_column": "Text"}
    fields = [
        {"id": f"f{index}", "type": "select", "label": f"Field {index}", "data_source": source}
        for index in range(200)
    ]
    form = await site.publish_form(fields)
    body = {"data": {field["id"]: "value 1" for field in fields}}
    path = f"/api/v1/public/forms/{form['slug']}/submit"

    async def send(_number: int) -> int:
        return await site.visit("POST", path, json=body)

    return send


async def searches(site: Site) -> Callable[[int], Awaitable[int]]:
    table_id = await _create_table(site, 200_000)
    path = f"/api/v1/data-tables/{table_id}/rows?search=nothing%20like%20this"

    async def send(_number: int) -> int:
        return await site.send("GET", path)

    return send


async def unfinished_recordings(site: Site) -> Callable[[int], Awaitable[int]]:
    body = {"name": "Hostile", "primary_model": "local/smollm2", "system_prompt": "Listen."}
    answer = await site.user.post("/api/v1/agents", body)
    answer.raise_for_status()
    path = f"/api/v1/agents/{answer.json()['id']}/chat/audio"

    async def trickle() -> AsyncIterator[bytes]:
        yield (
            b'--x\r\nContent-Disposition: form-data; name="audio"; filename="a.wav"\r\n'
            b"Content-Type: audio/wav\r\n\r\n"
        )
        for _ in range(24):
            yield bytes(_MEGABYTE)
        await asyncio.sleep(_SECONDS)
        yield b"\r\n--x--\r\n"

    async def send(number: int) -> int:
        headers = {
            "Content-Type": "multipart/form-data; boundary=x",
            "Idempotency-Key": f"hostile {number}",
        }
        return await site.send("POST", path, data=trickle(), headers=headers)

    return send


async def exports_of_many_versions(site: Site) -> Callable[[int], Awaitable[int]]:
    form = await site.publish_form(_wide_fields(0))
    path = f"/api/v1/forms/{form['id']}"
    for version in range(1, 40):
        (await site.user.put(path, {"fields": _wide_fields(version)})).raise_for_status()

    async def send(_number: int) -> int:
        return await site.send("GET", f"{path}/submissions.csv")

    return send


def _wide_fields(version: int) -> list[dict[str, Any]]:
    return [
        {"id": f"f{index}_{version}", "type": "text", "label": "long " * 180 + str(index)}
        for index in range(200)
    ]


async def events_with_many_templates(site: Site) -> Callable[[int], Awaitable[int]]:
    body = {
        "event_type": "system.test",
        "action_type": "notification",
        "action_config": {
            "role": "tenant_admin",
            "title": "Hostile",
            "message": "{{ event.data.message | upper }}" * 150,
        },
    }
    answer = await site.user.post("/api/v1/event-subscriptions", body)
    answer.raise_for_status()
    event = {"event_type": "system.test", "data": {"message": "m" * 31_000}}

    async def send(_number: int) -> int:
        return await site.send("POST", "/api/v1/events/test", json=event)

    return send


async def visits_of_one_address(site: Site) -> Callable[[int], Awaitable[int]]:
    form = await site.publish_form([{"id": "name", "type": "text", "label": "Name"}])

    async def send(_number: int) -> int:
        return await site.visit("GET", f"/api/v1/public/forms/{form['slug']}")

    return send


async def _create_table(site: Site, rows: int) -> str:
    columns = [{"name": "Name", "type": "text"}, {"name": "Text", "type": "text"}]
    table = await site.create("/api/v1/data-tables", {"name": "Hostile", "columns": columns})
    values = [{"Name": f"value {n}", "Text": "long text " * 15 + str(n)} for n in range(500)]
    for _ in range(0, rows, len(values)):
        answer = await site.user.post(f"/api/v1/data-tables/{table['id']}/rows", {"rows": values})
        answer.raise_for_status()
    return str(table["id"])


# What a polite tenant notices


class Notice(NamedTuple):
    p95_ms: float
    failures: int


async def _measure(send: Callable[[], Awaitable[int]], until: float) -> Notice:
    """Sends a request every twentieth of a second, whether or not the last one has ended."""
    durations: list[float] = []
    statuses: list[int] = []

    async def request() -> None:
        started = time.perf_counter()
        statuses.append(await send())
        durations.append((time.perf_counter() - started) * 1000)

    tasks = []
    while time.monotonic() < until:
        tasks.append(asyncio.create_task(request()))
        await asyncio.sleep(_PAUSE)
    await asyncio.gather(*tasks)
    p95 = statistics.quantiles(durations, n=20)[-1] if len(durations) > 1 else math.inf
    return Notice(p95, sum(status >= 500 or status == 0 for status in statuses))


async def _attack(clients: int, send: Callable[[int], Awaitable[int]], until: float) -> None:
    async def client(number: int) -> None:
        while time.monotonic() < until:
            status = await send(number)
            if status in {0, 429, 503}:
                await asyncio.sleep(0.05)

    await asyncio.gather(*(client(number) for number in range(clients)))


# What the scenario before has left to Postgres: statements, and upkeep of its many rows.
_BUSY = """
SELECT count(*) FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND (state = 'active' OR backend_type = 'autovacuum worker')
"""


async def _settle(world: World) -> None:
    """Waits until the database is idle three times in a row, at most half a minute."""
    idle, until = 0, time.monotonic() + 5 * _SECONDS
    while idle < 3 and time.monotonic() < until:
        (row,) = await fetch_rows(world.services, _BUSY)
        idle = 0 if row["count"] else idle + 1
        await asyncio.sleep(0.5)


Scenario = Callable[[Site], Awaitable[Callable[[int], Awaitable[int]]]]
_SCENARIOS: list[tuple[str, Scenario, int]] = [
    ("beside slow workflow templates", workflows_with_keys, 24),
    ("beside labels of 47,000 words", messages_to_many_labels, 2),
    ("beside slow patterns of a form", messages_to_slow_patterns, 2),
    ("beside 200 selects on a table", submissions_of_many_selects, 4),
    ("beside unfinished recordings", unfinished_recordings, 20),
    ("beside exports of many versions", exports_of_many_versions, 12),
    ("beside searches in 200,000 rows", searches, 90),
    ("beside events with 150 templates", events_with_many_templates, 2),
    ("beside visits of one address", visits_of_one_address, 8),
]


async def bench(world: World, ports: dict[str, int], row: Row) -> None:
    """One row for each way to be hostile: what another tenant's list of agents takes meanwhile."""
    base = f"http://127.0.0.1:{ports['parley']}"
    polite = Site(base, await world.user("tenant_admin"))
    get_agents = partial(polite.send, "GET", "/api/v1/agents")
    for name, prepare, clients in _SCENARIOS:
        hostile = Site(base, await world.user("tenant_admin"))
        send = await prepare(hostile)
        await _settle(world)
        until = time.monotonic() + _SECONDS
        _, notice = await asyncio.gather(_attack(clients, send, until), _measure(get_agents, until))
        holds = notice.p95_ms <= _MAX_MS and not notice.failures
        row(name, f"{notice.p95_ms:.0f} ms", f"{notice.failures} of 5xx", "p95",
            f"≤ {_MAX_MS} ms", holds=holds)  # fmt: skip
