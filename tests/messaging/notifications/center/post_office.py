"""A tenant with users and channels, and what they receive."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from app.domain.messaging.notifications import api as notifications
from app.domain.messaging.notifications.message_queries import SEND
from app.domain.messaging.notifications.messages import NewMessage
from app.domain.messaging.notifications.types import Recipients
from app.domain.platform.mail import service as mail
from app.kit import clock
from app.kit.ids import new_id
from app.services import Services
from tests.assertions import wait_until
from tests.database import Row, fetch_rows, run_sql
from tests.messaging.notifications.center import api
from tests.messaging.notifications.provider_server import ProviderServer
from tests.platform.events.responses import post_json
from tests.world import Client, World
from workers.main import WorkerProcess

CHANNEL_TYPES = {"sendgrid": "email", "resend": "email", "slack_webhook": "team_chat"}
# Of the queues that the worker serves.
_COUNT_DUE = """
SELECT count(*) AS due FROM work
WHERE tenant_id = $1 AND split_part(kind, '.', 1) IN ('notifications', 'events', 'mail', 'webhooks')
  AND state IN ('pending', 'leased') AND run_at <= now() + interval '1 second'
"""
_RUN_AGAIN = """
UPDATE work SET state = 'pending', finished_at = NULL, dispatched_at = NULL, attempt = 0
WHERE tenant_id = $1 AND kind = $2 AND state = 'done' RETURNING id
"""
_ADD = """
WITH message AS (
    INSERT INTO notification_messages (tenant_id, id, type, title, message, data, recipients,
                                       occasion, source, correlation_id)
    VALUES ($1, $2, $3, $4, 'Text.', '{"a": 1}', '{}', $2, $2, 'corr')
)
INSERT INTO notifications (tenant_id, id, user_id, message_id, type, read, created_at)
VALUES ($1, $5, $6, $2, $3, $7, now() - $8 * interval '1 second')
"""


async def add_notification(
    services: Services,
    client: Client,
    title: str = "Title",
    type_name: str = "message",
    *,
    read: bool = False,
    seconds_ago: float = 0.0,
) -> str:
    """Adds a row to a user's center as a worker does, without an announcement; returns its id."""
    notification_id = new_id("ntf")
    ids = (client.tenant_id, new_id("ntm"))
    values = (type_name, title, notification_id, client.user_id, read, seconds_ago)
    await fetch_rows(services, _ADD, *ids, *values)
    return notification_id


class PostOffice:
    def __init__(
        self,
        world: World,
        services: Services,
        process: WorkerProcess,
        providers: ProviderServer,
        admin: Client,
    ) -> None:
        self.world = world
        self.services = services
        self.process = process
        self.providers = providers
        self.admin = admin
        self.tenant_id = admin.tenant_id

    async def reopen(self) -> "PostOffice":
        """Returns one of a new tenant; the stub forgets what it has received."""
        self.providers.reset()
        admin = await self.world.user("tenant_admin")
        return PostOffice(self.world, self.services, self.process, self.providers, admin)

    async def user(self, role: str = "viewer", **preferences: Any) -> Client:
        """Creates a user of the tenant, with these preferences for messages."""
        user = await self.world.user(role, self.tenant_id)
        if preferences:
            await api.set_preferences(user, message=preferences)
        return user

    async def create_channel(self, provider: str, **fields: Any) -> str:
        """Returns the id of a channel that leads to the stub."""
        config = self.providers.config(provider, **fields.pop("config", {}))
        channel_type = CHANNEL_TYPES[provider]
        body = {"name": provider, "type": channel_type, "provider": provider, "config": config}
        channel_id: str = (await post_json(self.admin, api.CHANNELS, body | fields))["id"]
        return channel_id

    async def accept(self, *users: Client, title: str = "Title", **fields: Any) -> str:
        """Accepts a message to users without a request; returns its id."""
        recipients = fields.pop("recipients", None) or Recipients([user.user_id for user in users])
        values = {"type": "message", "message": "Text.", **fields}
        new = NewMessage(title=title, recipients=recipients, **values)
        async with self.services.db.tx(self.tenant_id) as tx:
            return await notifications.accept(tx, self.tenant_id, new) or ""

    async def notify(self, *users: Client, title: str = "Title", **fields: Any) -> str:
        """Also waits until the message is dispatched, and sent where nothing holds it back."""
        message_id = await self.accept(*users, title=title, **fields)
        await self.wait_until_idle()
        return message_id

    @asynccontextmanager
    async def at(self, moment: datetime) -> AsyncIterator[None]:
        """Freezes the clock of this process, which is also the worker's, until nothing is due."""
        with clock.frozen(moment):
            yield
            await self.wait_until_idle()

    async def wait_until_idle(self) -> None:
        """Waits until no work of the tenant is due."""

        async def is_idle() -> bool:
            (row,) = await fetch_rows(self.services, _COUNT_DUE, self.tenant_id)
            return bool(row["due"] == 0)

        await wait_until(is_idle)

    async def load_held(self) -> list[Row]:
        """Returns the pending work of the tenant."""
        sql = "SELECT id, kind, run_at FROM work WHERE tenant_id = $1 AND state = 'pending'"
        return await fetch_rows(self.services, sql, self.tenant_id)

    async def release(self) -> None:
        """Makes all pending work of the tenant due, and waits for it."""
        sql = "UPDATE work SET run_at = now() WHERE tenant_id = $1 AND state = 'pending'"
        await run_sql(self.services, sql, self.tenant_id)
        if SEND.name in self.process.couriers:
            self.process.couriers[SEND.name].wake()
        await self.process.sweeper.poll()
        await self.wait_until_idle()

    async def run_again(self, kind: str) -> int:
        """Runs finished work of a kind once more, as after a crash; returns how much it was."""
        again = await run_sql(self.services, _RUN_AGAIN, self.tenant_id, kind)
        await self.release()
        return len(again)

    def posts(self) -> list[str]:
        """Returns the texts that the team chat accepted."""
        return [call.json["text"] for call in self.providers.accepted if "/services/" in call.path]

    def channel_mails(self) -> list[dict[str, Any]]:
        """Returns the mails that sendgrid accepted."""
        return [call.json for call in self.providers.accepted if call.path == "/v3/mail/send"]

    async def own_mails(self, user: Client) -> list[EmailMessage]:
        """Returns what the instance itself has sent to a user, from its folder, in order."""
        sql = "SELECT id FROM mail_messages WHERE recipient = $1 ORDER BY created_at, id"
        folder = mail.mailbox(self.services.settings)
        paths = [
            folder / f"{row['id']}.eml" for row in await fetch_rows(self.services, sql, user.email)
        ]
        return [
            message_from_bytes(path.read_bytes(), policy=policy.default)
            for path in paths
            if path.exists()
        ]


def text_of(message: EmailMessage) -> str:
    body = message.get_body(("plain",))
    assert body is not None
    text: str = body.get_content()
    return text


def html_of(message: EmailMessage) -> str:
    body = message.get_body(("html",))
    assert body is not None
    text: str = body.get_content()
    return text
