"""Plain SQL beside the session."""

from app.services import Services
from db import fast
from db.session import ALL_TENANTS
from tests.db.invitations import COUNT_SQL, TwoTenants, read_email


async def test_plain_sql_gets_the_tenant_as_first_parameter(
    services: Services, tenants: TwoTenants
) -> None:
    async with services.db.tx(tenants.own.tenant_id) as tx:
        assert await fast.value(tx, fast.tenant_of(tx), COUNT_SQL) == 1


async def test_plain_sql_returns_the_number_of_changed_rows(
    services: Services, tenants: TwoTenants
) -> None:
    sql = "UPDATE invitations SET role = $2 WHERE tenant_id = $1"
    async with services.db.tx(tenants.own.tenant_id) as tx:
        assert await fast.execute(tx, tenants.own.tenant_id, sql, "agent_user") == 1


async def test_plain_sql_returns_one_row_or_none(services: Services, tenants: TwoTenants) -> None:
    sql = "SELECT id FROM invitations WHERE tenant_id = $1 AND id = $2"
    async with services.db.tx(tenants.own.tenant_id, autocommit=True) as tx:
        own = await fast.row(tx, tenants.own.tenant_id, sql, tenants.own_row_id)
        other = await fast.row(tx, tenants.own.tenant_id, sql, tenants.other_row_id)
    assert own is not None
    assert (own["id"], other) == (tenants.own_row_id, None)


async def test_plain_sql_returns_rows_as_a_list(services: Services, tenants: TwoTenants) -> None:
    sql = "SELECT id FROM invitations WHERE tenant_id = $1"
    async with services.db.tx(tenants.own.tenant_id, autocommit=True) as tx:
        rows = await fast.rows(tx, tenants.own.tenant_id, sql)
    assert [row["id"] for row in rows] == [tenants.own_row_id]


async def test_many_runs_a_statement_once_per_set_of_values(
    services: Services, tenants: TwoTenants
) -> None:
    sql = "UPDATE invitations SET email = $2 WHERE id = $1"
    async with services.db.tx(ALL_TENANTS) as tx:
        await fast.many(
            tx, sql, [(tenants.own_row_id, "a@x.example"), (tenants.other_row_id, "b@x.example")]
        )
    emails = [await read_email(services, row) for row in (tenants.own_row_id, tenants.other_row_id)]
    assert emails == ["a@x.example", "b@x.example"]
