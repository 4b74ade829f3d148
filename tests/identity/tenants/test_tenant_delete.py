"""DELETE /api/v1/tenants/:id."""

from app import bootstrap
from app.services import Services
from db.models import InstanceState, Tenant, User
from db.session import ALL_TENANTS
from tests.identity.tenants.factories import PATH, create_tenant
from tests.world import Client


async def test_an_empty_tenant_is_deleted(super_admin: Client) -> None:
    tenant = await create_tenant(super_admin)
    answer = await super_admin.delete(f"{PATH}/{tenant['id']}")
    assert (answer.status_code, answer.content) == (204, b"")


async def test_a_deleted_tenant_is_not_found(super_admin: Client) -> None:
    tenant = await create_tenant(super_admin)
    await super_admin.delete(f"{PATH}/{tenant['id']}")
    assert (await super_admin.get(f"{PATH}/{tenant['id']}")).status_code == 404


async def test_a_tenant_with_users_is_not_deleted(super_admin: Client, developer: Client) -> None:
    answer = await super_admin.delete(f"{PATH}/{developer.tenant_id}")
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "tenant_not_empty"


async def test_a_tenant_whose_users_are_all_inactive_is_not_deleted(
    super_admin: Client, developer: Client, services: Services
) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        (await (await tx.session()).get_one(User, developer.user_id)).status = "inactive"
    answer = await super_admin.delete(f"{PATH}/{developer.tenant_id}")
    assert answer.status_code == 409


async def test_a_tenant_with_users_is_not_deleted_by_super_admin_acting_in_another(
    super_admin: Client, developer: Client, services: Services
) -> None:
    """X-Tenant-ID must not hide users that prevent the deletion."""
    headers = {"x-tenant-id": super_admin.tenant_id}
    answer = await super_admin.delete(f"{PATH}/{developer.tenant_id}", headers=headers)
    assert answer.status_code == 409
    async with services.db.tx(ALL_TENANTS) as tx:
        assert await (await tx.session()).get(User, developer.user_id) is not None


async def test_a_default_tenant_exists_after_a_request_to_delete_it(
    super_admin: Client, services: Services
) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        default = await bootstrap.ensure_default_tenant(tx, "free")
    try:
        await super_admin.delete(f"{PATH}/{default}")
        async with services.db.tx(ALL_TENANTS) as tx:
            tenant_id = await bootstrap.ensure_default_tenant(tx, "free")
            assert await (await tx.session()).get(Tenant, tenant_id) is not None
    finally:
        await _restore_default(services, default)


async def _restore_default(services: Services, tenant_id: str) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        session = await tx.session()
        if await session.get(Tenant, tenant_id) is None:
            session.add(Tenant(id=tenant_id, name="Default", plan="enterprise", limits={}))
        (await session.get_one(InstanceState, "default_tenant")).value = tenant_id
