"""A client with webhooks whose deliveries a courier sends."""

from collections.abc import Awaitable, Callable
from typing import Any

from app.domain.messaging.deliveries.queries import DELIVER
from app.domain.platform.events import service as events
from app.domain.platform.events.events import SystemTest
from app.services import Services
from db.session import ALL_TENANTS
from tests.assertions import wait_until
from tests.database import run_sql
from tests.messaging.webhooks import factories
from tests.world import Client
from workers.main import WorkerProcess

EVENT = SystemTest.type


class Sender:
    def __init__(self, client: Client, services: Services, process: WorkerProcess) -> None:
        self.client = client
        self.services = services
        self.process = process
        self.secrets: dict[str, str] = {}

    async def create_webhook(self, url: str, **fields: Any) -> str:
        """Returns the id; the secret is in `secrets`."""
        body = {"url": url, "events": [EVENT], **fields}
        webhook = await factories.create_webhook(self.client, **body)
        webhook_id: str = webhook["id"]
        self.secrets[webhook_id] = webhook["secret"]
        return webhook_id

    async def update_webhook(self, webhook_id: str, **fields: Any) -> dict[str, Any]:
        return await factories.update_webhook(self.client, webhook_id, **fields)

    async def read_webhook(self, webhook_id: str) -> dict[str, Any]:
        return await factories.read_webhook(self.client, webhook_id)

    async def emit_events(self, count: int = 1) -> list[str]:
        """Returns their ids."""
        async with self.services.db.tx(self.client.tenant_id) as tx:
            return [
                await events.emit(tx, SystemTest(f"number {n}"), tenant_id=self.client.tenant_id)
                for n in range(count)
            ]

    async def send_event(self, url: str, **fields: Any) -> dict[str, Any]:
        """Creates a webhook and emits an event; returns the delivery after its first attempt."""
        webhook_id = await self.create_webhook(url, **fields)
        await self.emit_events()
        return await self.wait_for_attempt(webhook_id)

    async def list_deliveries(self, webhook_id: str, **params: Any) -> list[dict[str, Any]]:
        return await factories.list_deliveries(self.client, webhook_id, **params)

    async def read_delivery(self, webhook_id: str, delivery_id: str) -> dict[str, Any]:
        return await factories.read_delivery(self.client, webhook_id, delivery_id)

    async def redeliver(self, webhook_id: str, delivery_id: str) -> dict[str, Any]:
        return await factories.redeliver(self.client, webhook_id, delivery_id)

    async def list_events(self, event_type: str) -> list[dict[str, Any]]:
        return await factories.list_events(self.client, event_type)

    async def wait_for_attempt(self, webhook_id: str, number: int = 1) -> dict[str, Any]:
        """Returns the webhook's only delivery once it has so many recorded attempts."""

        async def is_recorded() -> bool:
            return await self.count_deliveries(webhook_id, f"attempt >= {number}") > 0

        await wait_until(is_recorded)
        (delivery,) = await self.list_deliveries(webhook_id)
        return await self.read_delivery(webhook_id, delivery["id"])

    async def wait_until_finished(self, webhook_id: str, count: int = 1) -> None:
        """Waits until so many deliveries of the webhook are not pending."""

        async def is_finished() -> bool:
            return await self.count_deliveries(webhook_id, "status <> 'pending'") >= count

        await wait_until(is_finished)

    async def count_deliveries(self, webhook_id: str, condition: str = "true") -> int:
        sql = f"SELECT count(*) FROM deliveries WHERE webhook_id = $1 AND {condition}"
        count: int = await self.fetch_value(sql, webhook_id)
        return count

    async def read_work(self, webhook_id: str) -> dict[str, Any]:
        """Returns the ledger's newest row for this webhook."""
        sql = "SELECT * FROM work WHERE lane = $1 ORDER BY created_at DESC, id DESC LIMIT 1"
        async with self.services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            return dict(await (await tx.raw()).fetchrow(sql, webhook_id))

    async def fetch_value(self, sql: str, *args: object) -> Any:
        async with self.services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            return await (await tx.raw()).fetchval(sql, *args)

    async def run_sql(self, sql: str, *args: object) -> None:
        await run_sql(self.services, sql, *args)

    async def advance_schedule(self, webhook_id: str, seconds: float) -> None:
        """Makes the webhook's pending deliveries due that many seconds earlier."""
        await self.run_sql(
            "UPDATE work SET run_at = run_at - $2 * interval '1 second' "
            "WHERE lane = $1 AND state = 'pending'",
            webhook_id,
            seconds,
        )
        self.wake_courier()

    async def cancel_pending_work(self) -> None:
        """Cancels deliveries to endpoints that are closed, so that they delay no later test."""
        await self.run_sql(
            "UPDATE work SET state = 'cancelled', finished_at = now() "
            "WHERE tenant_id = $1 AND state = 'pending'",
            self.client.tenant_id,
        )

    def wake_courier(self) -> None:
        """Makes the courier scan for work now instead of within a second."""
        if DELIVER.name in self.process.couriers:
            self.process.couriers[DELIVER.name].wake()

    async def count_mails(self, recipient: str | None = None) -> int:
        """Counts the mails to a recipient, by default the user who creates the webhooks."""
        sql = "SELECT count(*) FROM mail_messages WHERE recipient = $1"
        count: int = await self.fetch_value(sql, recipient or self.client.email)
        return count


CreateSender = Callable[[], Awaitable[Sender]]
