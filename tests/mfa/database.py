"""Rows, events and mails that MFA stores."""

import json
from typing import Any

from app.domain.mail import service as mail
from app.services import Services
from db.models import MailMessage
from db.session import ALL_TENANTS
from tests.world import Client


async def fetch_rows(services: Services, sql: str, *args: object) -> list[tuple[Any, ...]]:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        return [tuple(row) for row in await (await tx.raw()).fetch(sql, *args)]


async def count_mfa_rows(services: Services, client: Client) -> int:
    """Returns the number of devices and recovery codes stored for the user."""
    sql = """
    SELECT (SELECT count(*) FROM mfa_devices WHERE user_id = $1)
         + (SELECT count(*) FROM recovery_codes WHERE user_id = $1)
    """
    count: int = (await fetch_rows(services, sql, client.user_id))[0][0]
    return count


async def list_events(services: Services, client: Client, name: str) -> list[dict[str, Any]]:
    sql = "SELECT data::text FROM event_log WHERE tenant_id = $1 AND type = $2 ORDER BY id"
    rows = await fetch_rows(services, sql, client.tenant_id, f"system.user.{name}")
    return [json.loads(row[0]) for row in rows]


async def list_mails(services: Services, client: Client) -> list[str]:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        session, raw = await tx.session(), await tx.raw()
        ids = await raw.fetch(
            "SELECT id FROM mail_messages WHERE recipient = $1 ORDER BY id", client.email
        )
        rows = [await session.get_one(MailMessage, row["id"]) for row in ids]
    return [
        services.keyring.open(row.body or b"", mail.seal_context(row.tenant_id, row.id)).decode()
        for row in rows
    ]
