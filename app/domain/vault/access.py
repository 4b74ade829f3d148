"""What other areas ask of the vault without opening anything."""

from sqlalchemy import delete as sql_delete
from sqlalchemy import select

from app.domain.vault.schemas import Integration
from db.models import Credential, CredentialAccess
from db.session import Tx


async def forget_integration(tx: Tx, tenant_id: str, type_: Integration, ids: list[str]) -> None:
    """What is deleted needs no rules any more; nothing that comes later gets its rights."""
    await (await tx.session()).execute(
        sql_delete(CredentialAccess).where(
            CredentialAccess.tenant_id == tenant_id,
            CredentialAccess.integration_type == type_,
            CredentialAccess.integration_id.in_(ids),
        )
    )


async def type_of(tx: Tx, tenant_id: str, credential_id: str) -> str | None:
    """Which kind of credential an id names in this tenant, if any."""
    found: str | None = await (await tx.session()).scalar(
        select(Credential.type).where(
            Credential.tenant_id == tenant_id, Credential.id == credential_id
        )
    )
    return found
