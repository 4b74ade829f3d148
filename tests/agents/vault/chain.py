"""Appends rows to audit chains and verifies them."""

from app.domain.agents.vault import audit
from app.domain.agents.vault.audit import Actor, ChainBreak
from app.services import Services
from tests.database import fetch_rows, run_sql

ACTOR = Actor("system", None)


async def delete_chains(services: Services) -> None:
    """Deletes all credentials and their chains."""
    await run_sql(services, "TRUNCATE credentials, credential_audit CASCADE")
    await run_sql(services, "TRUNCATE credential_audit_chains")


async def append_rows(services: Services, tenant_id: str, count: int) -> None:
    for number in range(count):
        async with services.db.tx(tenant_id) as tx:
            await audit.append_entry(
                tx, services.keyring, tenant_id, f"crd_{number}", "used", ACTOR
            )


async def verify_chains(services: Services) -> tuple[int, list[ChainBreak]]:
    return await audit.verify(services.db, services.keyring)


async def find_break(services: Services) -> ChainBreak:
    """Returns the only break."""
    (chain_break,) = (await verify_chains(services))[1]
    return chain_break


async def find_row_id(services: Services, tenant_id: str, seq: int) -> str:
    statement = "SELECT id FROM credential_audit WHERE tenant_id = $1 AND seq = $2"
    (row,) = await fetch_rows(services, statement, tenant_id, seq)
    return str(row["id"])
