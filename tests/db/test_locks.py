from app.services import Services
from db.locks import AdvisoryLock
from db.session import ALL_TENANTS
from tests.world import World


async def test_users_can_be_administered_while_a_worker_cleans_up(
    world: World, services: Services
) -> None:
    admin = await world.user("tenant_admin")
    member = await world.user("agent_user", admin.tenant_id)
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute("SELECT pg_advisory_xact_lock($1)", AdvisoryLock.CLEAN_UP)
        answer = await admin.post(f"/users/{member.user_id}/deactivate")
    assert answer.status_code == 200, answer.text
