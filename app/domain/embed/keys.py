"""Creates, lists and revokes embed keys. Only their hashes are stored."""

import hashlib
import secrets

from app.domain.agents import service as agents
from app.domain.embed import origins, queries
from app.domain.embed.errors import EmbedKeyNotFound
from app.domain.embed.events import EmbedKeyCreated, EmbedKeyRevoked
from app.domain.embed.schemas import CreatedEmbedKey, CreateEmbedKey
from app.domain.events import service as events
from app.kit.errors import Invalid
from app.kit.ids import new_id
from app.security.principal import EMBED_PREFIX
from db.models import EmbedKey
from db.session import Tx

_PREFIX_CHARS = 12


def hash_key(api_key: str) -> str:
    """Needs no salt and no slow hash, because the key is random."""
    return hashlib.sha256(api_key.encode()).hexdigest()


async def create(tx: Tx, data: CreateEmbedKey) -> CreatedEmbedKey:
    agent = await agents.find(tx, data.agent_id)
    api_key = EMBED_PREFIX + secrets.token_urlsafe(32)
    key = EmbedKey(
        id=new_id("emk"),
        tenant_id=agent.tenant_id,
        agent_id=agent.id,
        name=data.name,
        key_prefix=api_key[:_PREFIX_CHARS],
        key_hash=hash_key(api_key),
        allowed_domains=_normalize_domains(data.allowed_domains),
    )
    session = await tx.session()
    session.add(key)
    await session.flush()
    created = EmbedKeyCreated(key.id, key.agent_id, key.name, key.allowed_domains)
    await events.emit(tx, created, tenant_id=key.tenant_id)
    return CreatedEmbedKey(
        key.id,
        key.agent_id,
        key.name,
        key.key_prefix,
        api_key,
        key.allowed_domains,
        key.created_at,
    )


def _normalize_domains(entries: list[str]) -> list[str]:
    normalized: dict[str, None] = {}
    for index, entry in enumerate(entries):
        try:
            normalized[origins.normalize(entry)] = None
        except ValueError as error:
            raise Invalid.field(f"allowed_domains.{index}", str(error)) from None
    return list(normalized)


list_all = queries.list_all


async def revoke(tx: Tx, key_id: str) -> None:
    session = await tx.session()
    key = await session.get(EmbedKey, key_id, with_for_update=True)
    if key is None:
        raise EmbedKeyNotFound(f"There is no embed key {key_id[:64]}")
    await session.delete(key)
    await session.flush()
    revoked = EmbedKeyRevoked(key.id, key.agent_id, key.name)
    await events.emit(tx, revoked, tenant_id=key.tenant_id)
