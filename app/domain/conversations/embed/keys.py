"""Creates, changes, lists and revokes embed keys. Only their hashes are stored."""

import hashlib
import secrets

from app.crypto.keyring import Keyring
from app.domain.agents.definition import api as agents
from app.domain.platform.events import api as events
from app.kit import paging, validation
from app.kit.errors import Invalid
from app.kit.ids import new_id
from app.kit.paging import Page, Paged
from app.security.principal import EMBED_PREFIX
from app.services import Services
from db.models import EmbedKey
from db.session import Tx

from . import origins, queries, snippet, user_tokens
from .errors import EmbedKeyNotFound
from .events import EmbedKeyCreated, EmbedKeyRevoked, EmbedKeyUpdated
from .schemas import (
    CreatedEmbedKey,
    CreateEmbedKey,
    EmbedKeyView,
    NewIdentitySecret,
    UpdateEmbedKey,
)

_PREFIX_CHARS = 12


def hash_key(api_key: str) -> str:
    """Needs no salt and no slow hash, because the key is random."""
    return hashlib.sha256(api_key.encode()).hexdigest()


async def create(
    tx: Tx, services: Services, data: CreateEmbedKey, api_key: str | None = None
) -> CreatedEmbedKey:
    """`api_key` is a secret that the caller has derived; without it, a random one is made."""
    # Locked, so that creations at the same time do not exceed the limit.
    agent = await agents.find(tx, data.agent_id, for_update=True)
    await queries.check_quota(tx, agent.id)
    api_key = api_key or EMBED_PREFIX + secrets.token_urlsafe(32)
    values = validation.set_fields(data)
    values["allowed_domains"] = _normalize_domains(data.allowed_domains)
    key = EmbedKey(
        **values,
        id=new_id("emk"),
        tenant_id=agent.tenant_id,
        key_prefix=api_key[:_PREFIX_CHARS],
        key_hash=hash_key(api_key),
    )
    identity_secret = _set_identity_secret(services.keyring, key)
    session = await tx.session()
    session.add(key)
    await session.flush()
    created = EmbedKeyCreated(key.id, key.agent_id, key.name, key.allowed_domains)
    await events.emit(tx, created, tenant_id=key.tenant_id)
    return CreatedEmbedKey(
        **values,
        id=key.id,
        key_prefix=key.key_prefix,
        api_key=api_key,
        identity_secret=identity_secret,
        embed_code=snippet.build(services.settings.public_url, key.agent_id, api_key),
        created_at=key.created_at,
    )


def _set_identity_secret(keyring: Keyring, key: EmbedKey) -> str:
    secret = user_tokens.new_secret()
    context = user_tokens.seal_context(key.tenant_id, key.id)
    key.identity_secret = keyring.seal(secret.encode(), context)
    return secret


async def get(tx: Tx, key_id: str) -> EmbedKeyView:
    view = await queries.find_view(tx, key_id)
    if view is None:
        raise _not_found(key_id)
    return view


async def update(tx: Tx, key_id: str, data: UpdateEmbedKey) -> EmbedKeyView:
    key = await _find(tx, key_id)
    values = validation.set_fields(data)
    if "allowed_domains" in values:
        values["allowed_domains"] = _normalize_domains(values["allowed_domains"])
    await events.save_changes(
        tx, key, values, lambda names: EmbedKeyUpdated(key.id, key.agent_id, key.name, names)
    )
    return await get(tx, key_id)


async def rotate_identity_secret(tx: Tx, keyring: Keyring, key_id: str) -> NewIdentitySecret:
    """User tokens that were signed with the former secret are refused from now on."""
    key = await _find(tx, key_id)
    secret = _set_identity_secret(keyring, key)
    await (await tx.session()).flush()
    updated = EmbedKeyUpdated(key.id, key.agent_id, key.name, ["identity_secret"])
    await events.emit(tx, updated, tenant_id=key.tenant_id)
    return NewIdentitySecret(key.id, secret)


def _normalize_domains(entries: list[str]) -> list[str]:
    normalized: dict[str, None] = {}
    for index, entry in enumerate(entries):
        try:
            normalized[origins.normalize(entry)] = None
        except ValueError as error:
            raise Invalid.field(f"allowed_domains.{index}", str(error)) from None
    return list(normalized)


async def list_page(tx: Tx, page: Page, agent_id: str | None) -> Paged[EmbedKeyView]:
    views, total = await queries.list_page(tx, page, agent_id)
    return paging.paged(views, total, page)


async def revoke(tx: Tx, key_id: str) -> None:
    key = await _find(tx, key_id)
    session = await tx.session()
    await session.delete(key)
    await session.flush()
    revoked = EmbedKeyRevoked(key.id, key.agent_id, key.name)
    await events.emit(tx, revoked, tenant_id=key.tenant_id)


async def _find(tx: Tx, key_id: str) -> EmbedKey:
    session = await tx.session()
    key = await session.get(EmbedKey, key_id, with_for_update=True)
    if key is None:
        raise _not_found(key_id)
    return key


def _not_found(key_id: str) -> EmbedKeyNotFound:
    return EmbedKeyNotFound(f"There is no embed key {key_id[:64]}")
