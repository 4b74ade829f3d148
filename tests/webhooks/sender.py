"""Somebody with webhooks: adds endpoints, has things happen, and looks at what became of them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from app.domain.events import service as events
from app.domain.events.events import SystemTest
from app.services import Services
from db.session import ALL_TENANTS
from tests.world import Client
from workers.main import WorkerProcess

PATH = "/api/v1/webhooks"
EVENT = SystemTest.type


class Sender:
    def __init__(self, client: Client, services: Services, process: WorkerProcess) -> None:
        self.client = client
        self.services = services
        self.process = process
        self.secrets: dict[str, str] = {}

    async def webhook(self, url: str, **more: Any) -> str:
        answer = await self.client.post(PATH, {"url": url, "events": [EVENT], **more})
        assert answer.status_code == 201, answer.text
        webhook_id: str = answer.json()["id"]
        self.secrets[webhook_id] = answer.json()["secret"]
        return webhook_id

    async def change(self, webhook_id: str, **values: Any) -> dict[str, Any]:
        answer = await self.client.put(f"{PATH}/{webhook_id}", values)
        assert answer.status_code == 200, answer.text
        changed: dict[str, Any] = answer.json()
        return changed

    async def shown(self, webhook_id: str) -> dict[str, Any]:
        answer = await self.client.get(f"{PATH}/{webhook_id}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def happen(self, count: int = 1) -> list[str]:
        async with self.services.db.tx(self.client.tenant_id) as tx:
            return [
                await events.emit(tx, SystemTest(f"number {n}"), tenant_id=self.client.tenant_id)
                for n in range(count)
            ]

    async def sent(self, url: str, **more: Any) -> dict[str, Any]:
        """A new endpoint, one event, and the record of its first attempt."""
        webhook_id = await self.webhook(url, **more)
        await self.happen()
        return await self.attempted(webhook_id)

    async def listed(self, webhook_id: str, **params: Any) -> list[dict[str, Any]]:
        answer = await self.client.get(f"{PATH}/{webhook_id}/executions", params=params)
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["data"]
        return found

    async def full(self, webhook_id: str, delivery_id: str) -> dict[str, Any]:
        answer = await self.client.get(f"{PATH}/{webhook_id}/executions/{delivery_id}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def attempted(self, webhook_id: str, number: int = 1) -> dict[str, Any]:
        """The one delivery of this endpoint, once so many attempts are on record."""

        async def enough() -> bool:
            found = await self.listed(webhook_id)
            return bool(found) and found[0]["attempt"] >= number

        await eventually(enough)
        (found,) = await self.listed(webhook_id)
        return await self.full(webhook_id, found["id"])

    async def settled(self, webhook_id: str, count: int = 1, seconds: float = 30) -> None:
        """So many deliveries, none of them pending."""

        async def done() -> bool:
            return await self.count(webhook_id, "status <> 'pending'") >= count

        await eventually(done, seconds)

    async def count(self, webhook_id: str, condition: str = "true") -> int:
        sql = f"SELECT count(*) FROM deliveries WHERE webhook_id = $1 AND {condition}"
        found: int = await self.value(sql, webhook_id)
        return found

    async def work(self, webhook_id: str) -> dict[str, Any]:
        """The ledger's newest row for this endpoint."""
        sql = "SELECT * FROM work WHERE lane = $1 ORDER BY created_at DESC, id DESC LIMIT 1"
        async with self.services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            return dict(await (await tx.raw()).fetchrow(sql, webhook_id))

    async def value(self, sql: str, *args: object) -> Any:
        async with self.services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            return await (await tx.raw()).fetchval(sql, *args)

    async def execute(self, sql: str, *args: object) -> None:
        async with self.services.db.tx(ALL_TENANTS) as tx:
            await (await tx.raw()).execute(sql, *args)

    async def let_pass(self, webhook_id: str, seconds: float) -> None:
        """As if so much time had gone by for what waits to be sent to this endpoint."""
        await self.execute(
            "UPDATE work SET run_at = run_at - $2 * interval '1 second' "
            "WHERE lane = $1 AND state = 'pending'",
            webhook_id,
            seconds,
        )
        self.look()

    def look(self) -> None:
        """The courier looks now and not within a second."""
        if self.process.courier is not None:
            self.process.courier.wake()

    async def redeliver(self, webhook_id: str, delivery_id: str) -> dict[str, Any]:
        path = f"{PATH}/{webhook_id}/executions/{delivery_id}/redeliver"
        answer = await self.client.post(path)
        assert answer.status_code == 202, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def told(self, event_type: str) -> list[dict[str, Any]]:
        """What the tenant's log says of this type, the oldest first."""
        params = {"event_type": event_type, "per_page": 100}
        answer = await self.client.get("/api/v1/event-log", params=params)
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["data"]
        return found[::-1]

    async def letters(self) -> int:
        """How many were written to the one who adds the endpoints here."""
        sql = "SELECT count(*) FROM mail_messages WHERE recipient = $1"
        found: int = await self.value(sql, self.client.email)
        return found


async def eventually(condition: Callable[[], Awaitable[object]], seconds: float = 30) -> None:
    """For what stands in the database once a worker wrote it there."""
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
