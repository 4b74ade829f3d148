"""SQL of provider keys."""

from sqlalchemy import func, select, update

from db import fast
from db.fast import Row, tenant_of
from db.models import ProviderKey
from db.session import Tx
from db.views import View

from .schemas import ProviderKeyView

_VIEW = View(ProviderKeyView)
_LIST = f"""
SELECT {_VIEW.columns} FROM provider_keys WHERE ($1::text IS NULL OR tenant_id = $1)
ORDER BY provider, created_at, id
"""
_TARGET = "SELECT id, tenant_id, provider, api_key, base_url FROM provider_keys"
_FIND_TARGET = f"{_TARGET} WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2"
# A key with a base_url belongs to a provider of models with the same name.
_FIND_SEARCH_KEY = f"""
{_TARGET} WHERE tenant_id = $1 AND provider = $2 AND base_url IS NULL
ORDER BY is_default DESC, created_at DESC, id DESC LIMIT 1
"""
_DEFAULT_TARGETS = f"{_TARGET} WHERE tenant_id = $1 AND is_default ORDER BY provider"
_DEFAULT_TARGET = f"{_TARGET} WHERE tenant_id = $1 AND provider = $2 AND is_default"

_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('provider_keys:' || $1, 0))"


async def lock_defaults(tx: Tx, tenant_id: str) -> None:
    """Serializes the tenant's requests that change which key is the default."""
    await fast.execute(tx, tenant_id, _LOCK)


async def count(tx: Tx, tenant_id: str) -> int:
    statement = (
        select(func.count()).select_from(ProviderKey).where(ProviderKey.tenant_id == tenant_id)
    )
    return await (await tx.session()).scalar(statement) or 0


async def has_default(tx: Tx, tenant_id: str, provider: str) -> bool:
    statement = (
        select(ProviderKey.id)
        .where(
            ProviderKey.tenant_id == tenant_id,
            ProviderKey.provider == provider,
            ProviderKey.is_default,
        )
        .with_for_update()
    )
    return await (await tx.session()).scalar(statement) is not None


async def has_address(tx: Tx, tenant_id: str, provider: str) -> bool:
    """Whether the provider's default key comes with an address of the tenant's own."""
    row = await find_default_target(tx, tenant_id, provider)
    return row is not None and row["base_url"] is not None


async def clear_default(tx: Tx, tenant_id: str, provider: str) -> None:
    statement = (
        update(ProviderKey)
        .where(ProviderKey.tenant_id == tenant_id, ProviderKey.provider == provider)
        .values(is_default=False)
    )
    await (await tx.session()).execute(statement)


async def list_all(tx: Tx) -> list[ProviderKeyView]:
    return await _VIEW.list(tx, tenant_of(tx), _LIST)


async def find(tx: Tx, key_id: str, *, for_update: bool = False) -> ProviderKey | None:
    session = await tx.session()
    if not for_update:
        return await session.get(ProviderKey, key_id)
    return await session.get(ProviderKey, key_id, with_for_update=True, populate_existing=True)


async def lock_newest(tx: Tx, tenant_id: str, provider: str) -> ProviderKey | None:
    """Returns the provider's newest key. Locks its rows, because the deletion of a tenant does not
    take the lock of `lock_defaults`.
    """
    statement = (
        select(ProviderKey)
        .where(ProviderKey.tenant_id == tenant_id, ProviderKey.provider == provider)
        .order_by(ProviderKey.created_at.desc(), ProviderKey.id.desc())
        .with_for_update()
    )
    return (await (await tx.session()).scalars(statement)).first()


async def find_target(tx: Tx, key_id: str) -> Row | None:
    return await fast.row(tx, tenant_of(tx), _FIND_TARGET, key_id)


async def find_default_target(tx: Tx, tenant_id: str, provider: str) -> Row | None:
    return await fast.row(tx, tenant_id, _DEFAULT_TARGET, provider)


async def find_search_key(tx: Tx, tenant_id: str, provider: str) -> Row | None:
    return await fast.row(tx, tenant_id, _FIND_SEARCH_KEY, provider)


async def list_default_targets(tx: Tx, tenant_id: str) -> list[Row]:
    return await fast.rows(tx, tenant_id, _DEFAULT_TARGETS)
