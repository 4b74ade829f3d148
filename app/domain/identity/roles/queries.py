"""SQL of role grants. They are instance-wide, so no statement names a tenant."""

from db.session import Tx

_LIST = "SELECT permission FROM role_grants WHERE role = $1"
_ADD = "INSERT INTO role_grants (role, permission) SELECT $1, unnest($2::text[])"
_REMOVE = "DELETE FROM role_grants WHERE role = $1 AND permission = ANY($2)"


async def list_granted(tx: Tx, role: str) -> set[str]:
    return {row["permission"] for row in await (await tx.raw()).fetch(_LIST, role)}


async def change_grants(tx: Tx, role: str, added: list[str], removed: list[str]) -> None:
    raw = await tx.raw()
    await raw.execute(_ADD, role, added)
    await raw.execute(_REMOVE, role, removed)
