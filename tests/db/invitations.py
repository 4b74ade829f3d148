"""Two tenants with an invitation each, and access to the rows."""

from datetime import timedelta
from typing import Any, NamedTuple, cast

from sqlalchemy.pool import QueuePool

from app.kit import clock
from app.kit.ids import new_id
from app.services import Services
from db.models import Invitation
from db.session import ALL_TENANTS, Database
from tests.world import Client

COUNT_SQL = "SELECT count(*) FROM invitations WHERE ($1::text IS NULL OR tenant_id = $1)"


class TwoTenants(NamedTuple):
    """Two tenants with a user and an invitation each; both are invited by the first user."""

    own: Client
    other: Client
    own_row_id: str
    other_row_id: str


def build_invitation(tenant_id: str | None, invited_by: str | None = None) -> Invitation:
    return Invitation(
        id=new_id("inv"),
        tenant_id=tenant_id,
        email=f"{new_id('mail')}@example.com",
        role="viewer",
        token_hash=new_id("hash"),
        invited_by=invited_by,
        expires_at=clock.now() + timedelta(days=7),
    )


def get_pool(db: Database) -> QueuePool:
    return cast("QueuePool", db.engine.sync_engine.pool)


async def row_exists(services: Services, row_id: str) -> bool:
    async with services.db.tx(ALL_TENANTS) as tx:
        return await (await tx.session()).get(Invitation, row_id) is not None


async def read_email(services: Services, row_id: str) -> str:
    async with services.db.tx(ALL_TENANTS) as tx:
        row = await (await tx.session()).get(Invitation, row_id)
    assert row is not None
    return row.email


def build_values(tenant_id: str) -> dict[str, Any]:
    return {
        "id": new_id("inv"),
        "tenant_id": tenant_id,
        "email": "a@example.com",
        "role": "viewer",
        "token_hash": new_id("hash"),
        "expires_at": clock.now(),
    }
