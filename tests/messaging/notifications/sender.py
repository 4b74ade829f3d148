"""A client with notification channels that a worker sends messages through."""

from typing import Any

from aiohttp import web

from app.domain.messaging.notifications import api as service
from app.domain.messaging.notifications.message_queries import SEND
from app.domain.messaging.notifications.messages import NewMessage
from app.domain.messaging.notifications.types import Recipients
from app.services import Services
from tests.assertions import until, wait_until
from tests.database import Row, fetch_rows, run_sql
from tests.messaging.notifications.factories import create_channel, list_log
from tests.messaging.notifications.provider_server import ProviderCall, ProviderServer
from tests.world import Client
from workers.main import WorkerProcess

# What the log shows of an attempt: its number, status and error code.
Outline = tuple[int, str, str | None]

_MOVE = """
UPDATE work SET run_at = now() - interval '1 second' WHERE lane = $1 AND state = 'pending'
"""
_CANCEL = """
UPDATE work SET state = 'cancelled', finished_at = now(), lease_token = NULL, lease_until = NULL
WHERE tenant_id = $1 AND state = 'pending'
"""
# A retry and the row of its attempt are written in the same transaction.
_DELAYS = """
SELECT l.number, extract(epoch FROM w.run_at - l.created_at)::float8 AS seconds
FROM notification_log l JOIN notification_deliveries d ON d.id = l.delivery_id
JOIN work w ON w.id = d.work_id
WHERE l.channel_id = $1 AND l.number = $2 AND (w.state = 'pending' OR l.status <> 'pending')
"""


class ChannelSender:
    def __init__(
        self,
        client: Client,
        services: Services,
        process: WorkerProcess,
        providers: ProviderServer,
    ) -> None:
        self.client = client
        self.services = services
        self.process = process
        self.providers = providers

    async def create(self, provider: str = "sendgrid", **fields: Any) -> str:
        """Creates a channel that leads to the stub; returns its id. Other keys than fields of a
        channel become keys of its config.
        """
        names = {"name", "active", "rate_limit_per_minute"} & fields.keys()
        config = {key: value for key, value in fields.items() if key not in names}
        if provider in {"sendgrid", "mailgun", "resend"}:
            config.setdefault("to", ["bob@example.com"])
        channel = await create_channel(
            self.client,
            provider,
            config=self.providers.config(provider, **config),
            **{name: fields[name] for name in names},
        )
        channel_id: str = channel["id"]
        return channel_id

    async def create_hook(self, name: str, **fields: Any) -> str:
        """Creates a webhook channel; its requests have the name in their path."""
        return await self.create("webhook", url=f"{self.providers.url}/hook?{name}", **fields)

    async def send(self, channel_id: str, **fields: Any) -> str | None:
        """Accepts a message to a channel. Returns its id, or None when it exists."""
        values: dict[str, Any] = {"type": "message", "title": "Import failed", "message": "Row 7"}
        new = NewMessage(**values | fields, recipients=Recipients(channel_id=channel_id))
        async with self.services.db.tx(self.client.tenant_id) as tx:
            return await service.accept(tx, self.client.tenant_id, new)

    async def outline(self, channel_id: str) -> list[Outline]:
        """Returns what the log says about each attempt, the first one first."""
        entries = await list_log(self.client, channel_id)
        outline = [(row["attempt"], row["status"], row["error_code"]) for row in entries]
        return sorted(outline, key=str)

    async def wait_for(self, channel_id: str, *statuses: str) -> list[Outline]:
        """Returns the outline of the log once it has attempts with these statuses."""

        async def find() -> list[Outline] | None:
            outline = await self.outline(channel_id)
            return outline if [item[1] for item in outline] == list(statuses) else None

        outline = await wait_until(find, 10)
        assert outline is not None
        return outline

    async def wait_for_finished(self, channel_id: str, count: int = 1) -> None:
        """Waits until so many deliveries of a channel are delivered or failed."""

        async def is_finished() -> bool:
            return await self.count_deliveries(channel_id, "status <> 'pending'") >= count

        await wait_until(is_finished, 10)

    async def wait_for_limit(self, channel_id: str) -> None:
        """Waits until a send was postponed because the channel reached its limit."""

        async def is_limited() -> bool:
            rows = await self.list_work(channel_id)
            return any(row["last_error"] == "rate_limited" for row in rows)

        await wait_until(is_limited, 10)
        # The lane pauses when the postponed job has ended.
        await until(lambda: self.process.runner.running_count == 0)

    async def wait_until_idle(self) -> None:
        """Waits until no work of the tenant is due."""

        async def is_idle() -> bool:
            sql = "SELECT 1 FROM work WHERE tenant_id = $1 AND state IN ('pending', 'leased')"
            return not await self.fetch(sql, self.client.tenant_id)

        await wait_until(is_idle, 10)

    async def wait_for_retry(self, channel_id: str, number: int) -> float:
        """Waits for the schedule of an attempt; returns the seconds before it and makes it due."""

        async def find() -> list[Row]:
            return await self.fetch(_DELAYS, channel_id, number)

        (row,) = await wait_until(find, 10)
        await self.make_due(channel_id)
        seconds: float = row["seconds"]
        return seconds

    async def make_due(self, channel_id: str) -> None:
        """Makes the pending sends of a channel due now."""
        await run_sql(self.services, _MOVE, channel_id)
        self.process.couriers[SEND.name].wake()

    async def end_rate_window(self, channel_id: str) -> None:
        """Lets a channel that reached its limit send again, as after a minute."""
        # The lane pauses when the postponed job has ended.
        await until(lambda: self.process.runner.running_count == 0)
        await self.services.redis.delete(f"parley:channel_rate:{channel_id}")
        self.process.couriers[SEND.name].pause(channel_id, 0)
        await self.make_due(channel_id)

    async def count_deliveries(self, channel_id: str, condition: str = "true") -> int:
        sql = (
            f"SELECT count(*) AS n FROM notification_deliveries WHERE channel_id = $1 "
            f"AND {condition}"
        )
        (row,) = await self.fetch(sql, channel_id)
        count: int = row["n"]
        return count

    async def list_recipients(self, channel_id: str) -> list[str]:
        sql = (
            "SELECT recipient FROM notification_deliveries WHERE channel_id = $1 ORDER BY recipient"
        )
        return [row["recipient"] for row in await self.fetch(sql, channel_id)]

    async def list_work(self, channel_id: str) -> list[Row]:
        sql = "SELECT * FROM work WHERE lane = $1 ORDER BY created_at, id"
        return await self.fetch(sql, channel_id)

    async def fetch(self, sql: str, *args: object) -> list[Row]:
        return await fetch_rows(self.services, sql, *args)

    async def cancel_pending_work(self) -> None:
        """Cancels sends that would disturb later tests."""
        await run_sql(self.services, _CANCEL, self.client.tenant_id)

    def script(self, *statuses: int, path: str = "", **headers: str) -> None:
        """Answers requests to a path with these statuses, then with the last of them; requests to
        other paths succeed.
        """
        left = list(statuses)
        success = {"id": "1", "ok": True, "messages": [{"status": "0"}]}

        def respond(call: ProviderCall) -> web.Response:
            if path not in call.path:
                return web.json_response(success)
            status = left.pop(0) if len(left) > 1 else left[0]
            return web.json_response(success, status=status, headers=headers)

        self.providers.respond = respond

    def list_calls(self, path: str) -> list[ProviderCall]:
        return [call for call in self.providers.calls if path in call.path]
