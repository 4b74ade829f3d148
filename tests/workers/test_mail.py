"""Mail as work: what happens when the mail server does not play along."""

import msgspec

from app.kit import mail
from app.parts import Parts
from db.session import ALL_TENANTS
from tests.ports import free_port
from tests.world import World
from workers.mail import send_mail
from workers.runner import Runner


async def test_an_absent_mail_server_is_tried_again_and_the_text_stays_sealed(
    world: World, parts: Parts
) -> None:
    tenant = await world.tenant()
    async with parts.db.tx(tenant) as tx:
        mail_id = await mail.queue(
            tx,
            parts.keyring,
            parts.doorbell,
            tenant_id=tenant,
            recipient="ada@example.com",
            subject="Hello",
            text="token=hunter2",
        )
    settings = msgspec.structs.replace(
        parts.settings, smtp_url=f"smtp://user:hunter2@127.0.0.1:{free_port()}"
    )
    runner = Runner(msgspec.structs.replace(parts, settings=settings), {"mail.send": send_mail})
    async with parts.db.tx(ALL_TENANTS, read_only=True) as tx:
        raw = await tx.raw()
        work_id = await raw.fetchval("SELECT id FROM work WHERE ref_id = $1", mail_id)
    await runner.run(work_id)
    async with parts.db.tx(ALL_TENANTS) as tx:
        raw = await tx.raw()
        row = await raw.fetchrow("SELECT state, last_error FROM work WHERE id = $1", work_id)
        body = await raw.fetchval("SELECT body FROM mail_messages WHERE id = $1", mail_id)
        await raw.execute("DELETE FROM work WHERE id = $1", work_id)
    assert row["state"] == "pending"
    assert row["last_error"].startswith("the mail cannot be handed over")
    assert b"hunter2" not in body
