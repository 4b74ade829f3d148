"""The tenants' keys of model providers: sealed, shown by their last characters only."""

import time

from sqlalchemy import Select, func, select, update

from app.domain.events import service as events
from app.domain.models import prices
from app.domain.models.events import ProviderKeyCreated, ProviderKeyDeleted
from app.domain.models.gateway import Models
from app.domain.models.protocol import Ask, Message, ModelFailed, Target
from app.domain.models.providers import LOCAL, PROVIDERS
from app.domain.models.schemas import CreateProviderKey, KeyTest, ProviderKeyView
from app.http.errors import Conflict, Invalid, NotFound
from app.kit import clock
from app.kit.crypto import Keyring, Place
from app.kit.egress import Guard
from app.kit.ids import new_id
from db.models import ProviderKey
from db.session import Tx

_HINT_CHARS = 4
_MOST = 50
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('provider_keys:' || $1, 0))"
_LONG_ENOUGH = 12


class ProviderKeyNotFound(NotFound):
    code = "provider_key_not_found"


def place_of(tenant_id: str, key_id: str) -> Place:
    return Place(tenant=tenant_id, table="provider_keys", record=key_id, field="api_key")


async def create(
    tx: Tx, keyring: Keyring, guard: Guard, tenant_id: str, data: CreateProviderKey
) -> ProviderKeyView:
    base_url = _checked(guard, data)
    await _one_at_a_time(tx, tenant_id)
    session = await tx.session()
    if (await session.scalar(_count(tenant_id)) or 0) >= _MOST:
        raise Conflict(f"A tenant has at most {_MOST} provider keys; delete one first")
    theirs = ProviderKey.tenant_id == tenant_id, ProviderKey.provider == data.provider
    others = await session.scalar(
        select(ProviderKey.id).where(*theirs, ProviderKey.is_default).with_for_update()
    )
    if data.is_default and others is not None:
        await session.execute(update(ProviderKey).where(*theirs).values(is_default=False))
    key_id = new_id("pvk")
    shown = data.api_key[-_HINT_CHARS:] if len(data.api_key) >= _LONG_ENOUGH else "****"
    key = ProviderKey(
        id=key_id,
        tenant_id=tenant_id,
        provider=data.provider,
        name=data.name,
        api_key=keyring.seal(data.api_key.encode(), place_of(tenant_id, key_id)),
        key_hint=f"…{shown}",
        base_url=base_url,
        is_default=data.is_default or others is None,
    )
    session.add(key)
    await session.flush()
    created = ProviderKeyCreated(key.id, key.provider, key.name)
    await events.emit(tx, created, tenant_id=tenant_id)
    return _view(key)


async def _one_at_a_time(tx: Tx, tenant_id: str) -> None:
    """Which key is the default is decided by one request after the other."""
    await (await tx.raw()).execute(_LOCK, tenant_id)


def _count(tenant_id: str) -> Select[int]:
    return select(func.count()).select_from(ProviderKey).where(ProviderKey.tenant_id == tenant_id)


def _checked(guard: Guard, data: CreateProviderKey) -> str | None:
    if data.provider == LOCAL:
        raise Invalid.field("provider", "local models need no key")
    if data.base_url is None:
        if data.provider not in PROVIDERS:
            known = ", ".join(PROVIDERS)
            raise Invalid.field("provider", f"must be one of {known}, or come with a base_url")
        return None
    problem = guard.problem_with(data.base_url)
    if problem is not None:
        raise Invalid.field("base_url", problem)
    url = guard.check_url(data.base_url)
    if url.query_string or url.fragment:
        raise Invalid.field("base_url", "must have no query and no fragment")
    return str(url).rstrip("/")


async def every(tx: Tx) -> list[ProviderKeyView]:
    session = await tx.session()
    found = await session.scalars(
        select(ProviderKey).order_by(ProviderKey.provider, ProviderKey.created_at, ProviderKey.id)
    )
    return [_view(key) for key in found]


async def delete(tx: Tx, key_id: str) -> None:
    """Where the default goes, the newest of the others takes its place."""
    session = await tx.session()
    key = await session.get(ProviderKey, key_id)
    if key is not None:
        await _one_at_a_time(tx, key.tenant_id)
        key = await session.get(ProviderKey, key_id, with_for_update=True, populate_existing=True)
    if key is None:
        raise ProviderKeyNotFound(f"There is no provider key {key_id[:64]}")
    await session.delete(key)
    await session.flush()
    if key.is_default:
        others = await session.scalars(
            select(ProviderKey)
            .where(ProviderKey.tenant_id == key.tenant_id, ProviderKey.provider == key.provider)
            .order_by(ProviderKey.created_at.desc(), ProviderKey.id.desc())
            # Whatever else deletes keys does not take the lock of this module.
            .with_for_update()
        )
        heir = others.first()
        if heir is not None:
            heir.is_default = True
            await session.flush()
    gone = ProviderKeyDeleted(key.id, key.provider, key.name)
    await events.emit(tx, gone, tenant_id=key.tenant_id)


async def target_of(tx: Tx, keyring: Keyring, key_id: str) -> Target:
    """What is needed to use this very key, default or not."""
    key = await (await tx.session()).get(ProviderKey, key_id)
    if key is None:
        raise ProviderKeyNotFound(f"There is no provider key {key_id[:64]}")
    return _target(keyring, key)


async def defaults(tx: Tx, keyring: Keyring, tenant_id: str) -> list[Target]:
    session = await tx.session()
    found = await session.scalars(
        select(ProviderKey)
        .where(ProviderKey.tenant_id == tenant_id, ProviderKey.is_default)
        .order_by(ProviderKey.provider)
    )
    return [_target(keyring, key) for key in found]


def _target(keyring: Keyring, key: ProviderKey) -> Target:
    opened = keyring.open(key.api_key, place_of(key.tenant_id, key.id)).decode()
    return Target(key.provider, key.provider, opened, key.base_url)


async def test(models: Models, target: Target) -> KeyTest:
    """Ask the provider for something that costs next to nothing."""
    started = time.perf_counter()
    try:
        message, success = await _try(models, target), True
    except ModelFailed as error:
        message, success = error.message, False
    took = round((time.perf_counter() - started) * 1000)
    return KeyTest(success, message, took, clock.now())


async def _try(models: Models, target: Target) -> str:
    known = PROVIDERS.get(target.provider)
    if target.base_url is not None or (known is not None and known.base_url is not None):
        count = len(await models.listed(target))
        return f"The provider took the key and lists {count} models"
    names = prices.models_of(await prices.table(), target.provider)
    if not names:
        raise ModelFailed(target.provider, "refused", "no model of this provider is known")
    cheapest = Target(names[0], target.provider, target.api_key)
    ask = Ask(messages=[Message("user", "Hi")], max_tokens=1, live=False)
    async for _ in models.answer(cheapest, ask):
        pass
    return f"The provider took the key: {cheapest.model} answered"


def _view(key: ProviderKey) -> ProviderKeyView:
    return ProviderKeyView(
        key.id,
        key.provider,
        key.name,
        key.key_hint,
        key.base_url,
        key.is_default,
        key.created_at,
    )
