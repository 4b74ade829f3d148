import pytest

from app.areas import AREAS
from app.services import Services
from db import retention
from db.session import ALL_TENANTS
from tests.platform.mail.factories import queue_mail
from tests.world import World


async def test_an_old_mail_is_kept_only_while_it_is_still_to_be_sent(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for state, is_kept in (("pending", True), ("leased", True), ("dead", False)):
        with subtests.test(state=state, is_kept=is_kept):
            tenant = await world.tenant()
            async with services.db.tx(tenant) as tx:
                mail_id = await queue_mail(tx, services, tenant)
                raw = await tx.raw()
                # Due tomorrow, so that no worker takes it.
                await raw.execute(
                    "UPDATE work SET state = $2, run_at = now() + interval '1 day',"
                    " lease_until = now() + interval '1 day' WHERE ref_id = $1",
                    mail_id,
                    state,
                )
                await raw.execute(
                    "UPDATE mail_messages SET created_at = now() - interval '31 days'"
                    " WHERE id = $1",
                    mail_id,
                )
            async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
                raw = await tx.raw()
                await retention.delete_expired(raw, AREAS.retention)
                row = await raw.fetchrow("SELECT id FROM mail_messages WHERE id = $1", mail_id)
            assert (row is not None) is is_kept
