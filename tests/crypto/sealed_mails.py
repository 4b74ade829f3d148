"""Mails with sealed bodies, for tests of rotation."""

from app.crypto.keyring import Keyring, kid_of
from app.domain.platform.mail import service as mail
from app.kit.ids import new_id
from db.models import MailMessage
from db.session import ALL_TENANTS, Database, Tx


async def create_mails(
    db: Database, tenant_id: str, keyring: Keyring, count: int
) -> dict[str, bytes]:
    """Creates mails with sealed bodies; returns their texts by id."""
    async with db.tx(tenant_id) as tx:
        return await add_mails(tx, tenant_id, keyring, count)


async def add_mails(tx: Tx, tenant_id: str, keyring: Keyring, count: int) -> dict[str, bytes]:
    """Like `create_mails`, in a transaction of the caller."""
    texts = {new_id("mal"): f"text {number}".encode() for number in range(count)}
    session = await tx.session()
    session.add_all(
        MailMessage(
            id=mail_id,
            tenant_id=tenant_id,
            recipient="a@example.com",
            subject="Hello",
            body=keyring.seal(text, mail.seal_context(tenant_id, mail_id)),
        )
        for mail_id, text in texts.items()
    )
    await session.flush()
    return texts


async def read_bodies(db: Database) -> dict[str, bytes]:
    async with db.tx(ALL_TENANTS, autocommit=True) as tx:
        rows = await (await tx.raw()).fetch("SELECT id, body FROM mail_messages")
    return {row["id"]: row["body"] for row in rows}


async def read_kids(db: Database) -> set[str]:
    return {kid_of(body) for body in (await read_bodies(db)).values()}
