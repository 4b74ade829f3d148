"""Prepares an instance: role grants, the default tenant, the first super_admin.

Every function can run at every start, and in several processes at once.
"""

import secrets

import msgspec
from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from app.areas import AREAS
from app.crypto import key_check
from app.crypto.keyring import Keyring
from app.kit.ids import new_id
from app.security import passwords
from app.security.sessions import bump_grants
from db.locks import AdvisoryLock
from db.models import InstanceState, RoleGrant, Tenant, User
from db.session import ALL_TENANTS, Database, Tx

_SEEDED_PERMISSIONS = "seeded_permissions"
_DEFAULT_TENANT = "default_tenant"


class WeakPassword(ValueError):
    """The password of the first super_admin violates the password rule."""


class AdminAccount(msgspec.Struct, frozen=True):
    email: str
    password: str


async def prepare(db: Database, keyring: Keyring, default_plan: str) -> None:
    async with db.tx(ALL_TENANTS) as tx:
        await _lock(tx)
        await key_check.check(await tx.raw(), keyring)
        await _seed_grants(tx)
        await ensure_default_tenant(tx, default_plan)


async def _lock(tx: Tx) -> None:
    """Keeps other processes from preparing until the transaction ends."""
    await (await tx.raw()).execute("SELECT pg_advisory_xact_lock($1)", AdvisoryLock.PREPARE)


async def _seed_grants(tx: Tx) -> None:
    """Adds the default grants of new permissions. Changes by a super_admin are kept."""
    session = await tx.session()
    row = await session.get(InstanceState, _SEEDED_PERMISSIONS)
    seeded = set(msgspec.json.decode(row.value, type=list[str])) if row and row.value else set()
    new = AREAS.permission_keys - seeded
    if not new:
        return
    grants = [
        {"role": role, "permission": key}
        for role, keys in AREAS.default_grants.items()
        for key in sorted(keys & new)
    ]
    await session.execute(insert(RoleGrant).values(grants).on_conflict_do_nothing())
    value = msgspec.json.encode(sorted(seeded | new)).decode()
    await _set_state(tx, _SEEDED_PERMISSIONS, value=value)
    await bump_grants(tx)


async def _set_state(tx: Tx, key: str, *, value: str) -> None:
    session = await tx.session()
    await session.execute(
        insert(InstanceState)
        .values(key=key, value=value)
        .on_conflict_do_update(index_elements=["key"], set_={"value": value})
    )


async def ensure_default_tenant(tx: Tx, plan: str) -> str:
    """Returns the tenant that users without an invitation join; creates it the first time."""
    session = await tx.session()
    row = await session.get(InstanceState, _DEFAULT_TENANT)
    if row is not None and row.value is not None:
        return row.value
    tenant = Tenant(id=new_id("ten"), name="Default", plan=plan, limits={})
    session.add(tenant)
    await session.flush()
    await _set_state(tx, _DEFAULT_TENANT, value=tenant.id)
    return tenant.id


def check_admin_password(password: str) -> None:
    """Raises WeakPassword. An empty password is replaced by a random one."""
    problem = passwords.find_problem(password) if password else None
    if problem:
        raise WeakPassword(f"PARLEY_ADMIN_PASSWORD {problem}")


async def ensure_admin(db: Database, email: str, password: str, plan: str) -> AdminAccount | None:
    """Creates a super_admin if there is none, with a random password if `password` is empty.
    Returns the account that it created.
    """
    if await _has_admin(db):
        return None
    check_admin_password(password)
    admin = AdminAccount(email, password or _random_password())
    return admin if await create_admin(db, admin, plan, only_if_none=True) else None


async def _has_admin(db: Database) -> bool:
    async with db.tx(ALL_TENANTS, autocommit=True) as tx:
        return await _has_admin_in(tx)


async def _has_admin_in(tx: Tx) -> bool:
    statement = select(User.id).where(User.role == "super_admin").limit(1)
    return await (await tx.session()).scalar(statement) is not None


async def create_admin(
    db: Database, admin: AdminAccount, plan: str, *, only_if_none: bool = False
) -> str | None:
    hashed = await passwords.hash_password(admin.password)
    async with db.tx(ALL_TENANTS) as tx:
        await _lock(tx)
        if only_if_none and await _has_admin_in(tx):
            return None
        user = User(
            id=new_id("usr"),
            tenant_id=await ensure_default_tenant(tx, plan),
            email=admin.email,
            first_name="Super",
            last_name="Admin",
            password_hash=hashed,
            role="super_admin",
            email_verified=True,
        )
        (await tx.session()).add(user)
    return user.id


def _random_password() -> str:
    """Returns a password that meets the password rule."""
    return f"{secrets.token_urlsafe(12)}-Aa1"
