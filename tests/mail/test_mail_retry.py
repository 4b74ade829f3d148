"""Sending mail while the mail server is unavailable."""

import msgspec

from app.services import Services
from db.session import ALL_TENANTS
from tests.mail.factories import queue_mail
from tests.ports import free_port
from tests.world import World
from workers.mail import send_mail
from workers.runner import Runner


async def test_mail_is_retried_and_stays_sealed_while_the_mail_server_is_unreachable(
    world: World, services: Services
) -> None:
    tenant = await world.tenant()
    async with services.db.tx(tenant) as tx:
        mail_id = await queue_mail(tx, services, tenant)
    settings = msgspec.structs.replace(
        services.settings, smtp_url=f"smtp://user:hunter2@127.0.0.1:{free_port()}"
    )
    runner = Runner(msgspec.structs.replace(services, settings=settings), {"mail.send": send_mail})
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        raw = await tx.raw()
        work_id = await raw.fetchval("SELECT id FROM work WHERE ref_id = $1", mail_id)
    await runner.run(work_id)
    async with services.db.tx(ALL_TENANTS) as tx:
        raw = await tx.raw()
        row = await raw.fetchrow("SELECT state, last_error FROM work WHERE id = $1", work_id)
        body = await raw.fetchval("SELECT body FROM mail_messages WHERE id = $1", mail_id)
        await raw.execute("DELETE FROM work WHERE id = $1", work_id)
    assert row["state"] == "pending"
    assert row["last_error"].startswith("the mail cannot be sent")
    assert b"hunter2" not in body
