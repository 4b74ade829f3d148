"""Rows, mails and events that the tests of accounts read and write in the database."""

import re
from datetime import datetime, timedelta
from typing import Any

import msgspec
from sqlalchemy import select

from app.domain.platform.mail import service as mail
from app.services import Services
from db.models import MailMessage, User
from db.session import ALL_TENANTS
from tests.world import Client


def add_seconds(moment: datetime, seconds: float) -> datetime:
    return moment + timedelta(seconds=seconds)


async def fetch_rows(services: Services, sql: str, *args: object) -> list[tuple[Any, ...]]:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        return [tuple(row) for row in await (await tx.raw()).fetch(sql, *args)]


async def fetch_value(services: Services, sql: str, *args: object) -> Any:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        return await (await tx.raw()).fetchval(sql, *args)


async def execute(services: Services, sql: str, *args: object) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(sql, *args)


# Users and sessions


async def find_user(services: Services, user_id: str) -> User | None:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        user: User | None = await (await tx.session()).get(User, user_id)
    return user


async def find_user_by_email(services: Services, email: str) -> User | None:
    statement = select(User).where(User.email == email)
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        user: User | None = await (await tx.session()).scalar(statement)
    return user


async def read_role_and_status(services: Services, user: Client) -> tuple[str, str] | None:
    row = await find_user(services, user.user_id)
    return (row.role, row.status) if row is not None else None


async def set_user(services: Services, user: Client, **values: object) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        row = await (await tx.session()).get_one(User, user.user_id)
        for name, value in values.items():
            setattr(row, name, value)


async def read_sessions(services: Services, user: Client) -> list[tuple[Any, ...]]:
    sql = "SELECT id, refresh_jti, expires_at, ended_at, spent FROM sessions WHERE user_id = $1"
    return await fetch_rows(services, sql + " ORDER BY id", user.user_id)


# Mails


async def read_mails(services: Services, email: str) -> list[tuple[str, str]]:
    """Returns subject and text of the mails to this address, the oldest first."""
    statement = select(MailMessage).where(MailMessage.recipient == email).order_by(MailMessage.id)
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        rows = list(await (await tx.session()).scalars(statement))
    return [(row.subject, mail.open_content(services.keyring, row).text) for row in rows]


async def read_mail_texts(services: Services, email: str) -> list[str]:
    return [text for _, text in await read_mails(services, email)]


async def read_mailed_tokens(
    services: Services, email: str, page: str = "reset-password"
) -> list[str]:
    """Returns the tokens in the mailed links to a page, the oldest first."""
    texts = "\n".join(await read_mail_texts(services, email))
    return re.findall(rf"/{page}\?token=([\w-]+)", texts)


# Events


async def read_events(services: Services, kind: str, email_or_id: str) -> list[dict[str, Any]]:
    """Returns the data of a user's events in any tenant."""
    sql = (
        "SELECT data::text FROM event_log WHERE type = $1 "
        "AND $2 IN (data ->> 'email', data ->> 'user_id') ORDER BY id"
    )
    return await _read_data(services, sql, f"system.user.{kind}", email_or_id)


async def read_tenant_events(services: Services, user: Client, kind: str) -> list[dict[str, Any]]:
    """Returns the data of the events in the user's tenant."""
    sql = "SELECT data::text FROM event_log WHERE type = $1 AND tenant_id = $2 ORDER BY id"
    return await _read_data(services, sql, f"system.user.{kind}", user.tenant_id)


async def read_user_events(services: Services, user: Client, kind: str) -> list[dict[str, Any]]:
    """Returns the data of the events about the user in their tenant."""
    events = await read_tenant_events(services, user, kind)
    return [data for data in events if data.get("user_id") == user.user_id]


async def _read_data(services: Services, sql: str, *args: object) -> list[dict[str, Any]]:
    return [msgspec.json.decode(text) for (text,) in await fetch_rows(services, sql, *args)]


def contains_secret(row: tuple[object, ...], secret: str) -> bool:
    """True when a value of the row contains the secret, as text or in hexadecimal."""
    as_bytes = b"\n".join(
        value if isinstance(value, bytes) else str(value).encode() for value in row
    )
    return secret.encode() in as_bytes or secret.encode().hex().encode() in as_bytes
