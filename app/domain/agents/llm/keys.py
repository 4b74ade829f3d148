"""Tenants' keys of model providers: stored encrypted, shown only by their last characters."""

import time

from app.crypto.keyring import Keyring, SealContext
from app.domain.platform.events import api as events
from app.kit import clock
from app.kit.errors import Conflict, Invalid
from app.kit.ids import new_id
from app.kit.spelling import find_nearest
from app.net.egress import Egress, Guard
from db.fast import Row
from db.models import ProviderKey
from db.session import Tx

from . import key_probes, prices, queries
from .errors import ModelFailed, ProviderKeyNotFound
from .events import ProviderKeyCreated, ProviderKeyDeleted
from .gateway import LOCAL_MODEL, Models
from .key_probes import PROBES
from .protocol import Message, ModelRequest, Target
from .providers import LOCAL, PROVIDERS, SEARCH_PROVIDERS, provider_of
from .rerankers import RERANK_APIS
from .schemas import CreateProviderKey, KeyTest, ProviderKeyView

_HINT_CHARS = 4
_MAX_KEYS = 50
_MIN_CHARS_FOR_HINT = 12
_ADD_KEY = "add a key with a base_url for this provider first"


def seal_context(tenant_id: str, key_id: str) -> SealContext:
    return SealContext.of(ProviderKey.api_key, tenant_id, key_id)


async def create(
    tx: Tx, keyring: Keyring, guard: Guard, tenant_id: str, data: CreateProviderKey
) -> ProviderKeyView:
    base_url = _validate_base_url(guard, data)
    await queries.lock_defaults(tx, tenant_id)
    if await queries.count(tx, tenant_id) >= _MAX_KEYS:
        raise Conflict(f"A tenant has at most {_MAX_KEYS} provider keys; delete one first")
    has_default = await queries.has_default(tx, tenant_id, data.provider)
    if data.is_default and has_default:
        await queries.clear_default(tx, tenant_id, data.provider)
    key_id = new_id("pvk")
    hint = data.api_key[-_HINT_CHARS:] if len(data.api_key) >= _MIN_CHARS_FOR_HINT else "****"
    key = ProviderKey(
        id=key_id,
        tenant_id=tenant_id,
        provider=data.provider,
        name=data.name,
        api_key=keyring.seal(data.api_key.encode(), seal_context(tenant_id, key_id)),
        key_hint=f"…{hint}",
        base_url=base_url,
        is_default=data.is_default or not has_default,
    )
    session = await tx.session()
    session.add(key)
    await session.flush()
    created = ProviderKeyCreated(key.id, key.provider, key.name)
    await events.emit(tx, created, tenant_id=tenant_id)
    return _view(key)


def _validate_base_url(guard: Guard, data: CreateProviderKey) -> str | None:
    if data.provider == LOCAL:
        raise Invalid.field("provider", "local models need no key")
    if data.provider in SEARCH_PROVIDERS and data.base_url is not None:
        raise Invalid.field("base_url", "must be omitted: a search engine has its own address")
    if data.base_url is None:
        if data.provider not in {*PROVIDERS, *SEARCH_PROVIDERS}:
            names = ", ".join([*PROVIDERS, *sorted(SEARCH_PROVIDERS)])
            raise Invalid.field("provider", f"must be one of {names}, or come with a base_url")
        return None
    problem = guard.problem_with(data.base_url)
    if problem is not None:
        raise Invalid.field("base_url", problem)
    url = guard.check_url(data.base_url)
    if url.query_string or url.fragment:
        raise Invalid.field("base_url", "must not have a query or a fragment")
    return str(url).rstrip("/")


list_all = queries.list_all


async def require_offered(tx: Tx, tenant_id: str, model: str, field: str = "primary_model") -> None:
    """Raises Invalid for a model that nobody offers: neither this instance, nor a provider that is
    known here, nor one whose address the tenant has stored. A key may still be missing.
    """
    provider = provider_of(model)
    if provider == LOCAL:
        if model != LOCAL_MODEL:
            problem = f"is not available on this instance; use {LOCAL_MODEL}"
            raise Invalid.field(field, problem)
    elif provider not in PROVIDERS and not await queries.has_default(tx, tenant_id, provider):
        nearest = find_nearest(provider, [LOCAL, *PROVIDERS])
        hint = f"did you mean {nearest}?" if nearest else _ADD_KEY
        raise Invalid.field(field, f"does not start with a known provider; {hint}")


async def require_reranker(tx: Tx, tenant_id: str, model: str, field: str) -> None:
    """Raises Invalid unless the provider has rerankers, or the tenant has stored the address of
    one. A key may still be missing.
    """
    provider, slash, _ = model.partition("/")
    provider = provider.lower() if slash else ""
    if provider in RERANK_APIS or await queries.has_address(tx, tenant_id, provider):
        return
    names = ", ".join(f"{name}/…" for name in RERANK_APIS)
    if provider in PROVIDERS:
        problem = f"{PROVIDERS[provider].title} has no rerankers here"
    else:
        problem = "does not start with a known provider of rerankers"
    raise Invalid.field(field, f"{problem}; use {names}, or {_ADD_KEY}")


async def delete(tx: Tx, key_id: str) -> None:
    """Deletes a key. When it was the default, the provider's newest key becomes the default."""
    key = await queries.find(tx, key_id)
    if key is not None:
        await queries.lock_defaults(tx, key.tenant_id)
        key = await queries.find(tx, key_id, for_update=True)
    if key is None:
        raise ProviderKeyNotFound(f"There is no provider key {key_id[:64]}")
    session = await tx.session()
    await session.delete(key)
    await session.flush()
    if key.is_default:
        newest = await queries.lock_newest(tx, key.tenant_id, key.provider)
        if newest is not None:
            newest.is_default = True
            await session.flush()
    deleted = ProviderKeyDeleted(key.id, key.provider, key.name)
    await events.emit(tx, deleted, tenant_id=key.tenant_id)


async def target_of(tx: Tx, keyring: Keyring, key_id: str) -> Target:
    """Returns a target with this key, whether it is the provider's default or not."""
    row = await queries.find_target(tx, key_id)
    if row is None:
        raise ProviderKeyNotFound(f"There is no provider key {key_id[:64]}")
    return _target(keyring, row)


async def list_default_targets(tx: Tx, keyring: Keyring, tenant_id: str) -> list[Target]:
    """Returns a target for each provider of models."""
    rows = await queries.list_default_targets(tx, tenant_id)
    return [_target(keyring, row) for row in rows if not _is_search_key(row)]


async def load_search_key(tx: Tx, keyring: Keyring, tenant_id: str, provider: str) -> str | None:
    """Returns the tenant's key of a search engine."""
    row = await queries.find_search_key(tx, tenant_id, provider)
    return None if row is None else _target(keyring, row).api_key


def _is_search_key(row: Row) -> bool:
    """False for a tenant's own provider of models that has the name of a search engine."""
    return row["provider"] in SEARCH_PROVIDERS and row["base_url"] is None


async def load_target(tx: Tx, keyring: Keyring, tenant_id: str, model: str) -> Target:
    """Returns a model with the default key of its provider, or without a key if there is none."""
    provider = provider_of(model)
    row = await queries.find_default_target(tx, tenant_id, provider)
    if row is None:
        return Target(model, provider)
    key = _target(keyring, row)
    return Target(model, provider, key.api_key, key.base_url)


def _target(keyring: Keyring, row: Row) -> Target:
    api_key = keyring.open(row["api_key"], seal_context(row["tenant_id"], row["id"])).decode()
    return Target(row["provider"], row["provider"], api_key, row["base_url"])


async def test(models: Models, egress: Egress, target: Target) -> KeyTest:
    """Sends the provider a request that costs almost nothing."""
    started = time.perf_counter()
    try:
        message, success = await _send_test_request(models, egress, target), True
    except ModelFailed as error:
        message, success = error.message, False
    latency_ms = round((time.perf_counter() - started) * 1000)
    return KeyTest(success, message, latency_ms, clock.now())


async def _send_test_request(models: Models, egress: Egress, target: Target) -> str:
    """Lists the provider's models, or has its cheapest model answer with one token. A provider
    without chat models has a request of its own.
    """
    provider, probe = PROVIDERS.get(target.provider), PROBES.get(target.provider)
    if probe is not None and target.base_url is None:
        return await key_probes.send(egress, target, probe)
    if target.base_url is not None or (provider is not None and provider.base_url is not None):
        count = len(await models.list_models(target))
        return f"The provider accepted the key and lists {count} models"
    names = prices.models_of(await prices.table(), target.provider)
    if not names:
        raise ModelFailed(target.provider, "refused", "no model of this provider is known")
    cheapest = Target(names[0], target.provider, target.api_key)
    request = ModelRequest(messages=[Message("user", "Hi")], max_tokens=1, is_streamed=False)
    async for _ in models.answer(cheapest, request):
        pass
    return f"The provider accepted the key: {cheapest.model} answered"


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
