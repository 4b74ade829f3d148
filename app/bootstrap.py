"""What an instance needs before its first request: grants, a default tenant, a first super_admin.

All of it can run again at every start, and by several processes at once.
"""

import secrets

import msgspec
from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from app.areas import AREAS
from app.kit.crypto import CannotOpen, KeyProblem, Keyring, SealContext
from app.kit.ids import new_id
from app.security import passwords
from app.security.sessions import bump_grants
from db.models import InstanceState, RoleGrant, Tenant, User
from db.session import ALL_TENANTS, Database, Tx

_LOCK = 7_210_031
_SEEDED = "seeded_permissions"
_DEFAULT_TENANT = "default_tenant"
_KEY_CHECK = "key_check"
_CHECK_TEXT = b"parley"


class WeakPassword(ValueError):
    """The password of the first super_admin breaks the rule for passwords."""


class AdminAccount(msgspec.Struct, frozen=True):
    email: str
    password: str


async def prepare(db: Database, keyring: Keyring, default_plan: str) -> None:
    async with db.tx(ALL_TENANTS) as tx:
        await _lock(tx)
        await check_keys(tx, keyring)
        await _seed_grants(tx)
        await default_tenant(tx, default_plan)


async def _lock(tx: Tx) -> None:
    """Until the end of this transaction, no other process prepares."""
    await (await tx.raw()).execute("SELECT pg_advisory_xact_lock($1)", _LOCK)


async def check_keys(tx: Tx, keyring: Keyring) -> None:
    """The keys must open what this database holds: refuse to start rather than lose secrets.

    The check itself moves to the active key, so that an older one can be dropped after a rotation.
    """
    session = await tx.session()
    context = SealContext.of(InstanceState.value, "", _KEY_CHECK)
    row = await session.get(InstanceState, _KEY_CHECK)
    if row is None or row.value is None:
        sealed = keyring.seal(_CHECK_TEXT, context).hex()
        session.add(InstanceState(key=_KEY_CHECK, value=sealed))
        return
    try:
        keyring.open(bytes.fromhex(row.value), context)
    except CannotOpen as error:
        raise KeyProblem(f"the root keys do not fit this database: {error}") from None
    row.value = keyring.rewrap(bytes.fromhex(row.value), context).hex()


async def _seed_grants(tx: Tx) -> None:
    """Default grants for permissions that are new; what super_admin changed stays changed."""
    session = await tx.session()
    row = await session.get(InstanceState, _SEEDED)
    known = set(msgspec.json.decode(row.value, type=list[str])) if row and row.value else set()
    new = AREAS.permission_keys - known
    if not new:
        return
    grants = [
        {"role": role, "permission": key}
        for role, keys in AREAS.default_grants.items()
        for key in sorted(keys & new)
    ]
    await session.execute(insert(RoleGrant).values(grants).on_conflict_do_nothing())
    await _set_state(tx, _SEEDED, value=msgspec.json.encode(sorted(known | new)).decode())
    await bump_grants(tx)


async def _set_state(tx: Tx, key: str, *, value: str) -> None:
    session = await tx.session()
    await session.execute(
        insert(InstanceState)
        .values(key=key, value=value)
        .on_conflict_do_update(index_elements=["key"], set_={"value": value})
    )


async def default_tenant(tx: Tx, plan: str) -> str:
    """The tenant that people without an invitation join."""
    session = await tx.session()
    row = await session.get(InstanceState, _DEFAULT_TENANT)
    if row is not None and row.value is not None:
        return row.value
    tenant = Tenant(id=new_id("ten"), name="Default", plan=plan, limits={})
    session.add(tenant)
    await session.flush()
    await _set_state(tx, _DEFAULT_TENANT, value=tenant.id)
    return tenant.id


async def first_admin(db: Database, email: str, password: str, plan: str) -> AdminAccount | None:
    """Creates a super_admin where there is none, with a random password unless one is given."""
    if await _has_admin(db):
        return None
    problem = passwords.find_problem(password) if password else None
    if problem:
        raise WeakPassword(f"PARLEY_ADMIN_PASSWORD {problem}")
    admin = AdminAccount(email, password or _random_password())
    return admin if await create_admin(db, admin, plan, only_if_none=True) else None


async def _has_admin(db: Database) -> bool:
    async with db.tx(ALL_TENANTS, autocommit=True) as tx:
        return await _any_admin(tx)


async def _any_admin(tx: Tx) -> bool:
    statement = select(User.id).where(User.role == "super_admin").limit(1)
    return await (await tx.session()).scalar(statement) is not None


async def create_admin(
    db: Database, admin: AdminAccount, plan: str, *, only_if_none: bool = False
) -> str | None:
    hashed = await passwords.hash_password(admin.password)
    async with db.tx(ALL_TENANTS) as tx:
        await _lock(tx)
        if only_if_none and await _any_admin(tx):
            return None
        user = User(
            id=new_id("usr"),
            tenant_id=await default_tenant(tx, plan),
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
    """Long, easy to copy, and within the password rule."""
    return f"{secrets.token_urlsafe(12)}-Aa1"
