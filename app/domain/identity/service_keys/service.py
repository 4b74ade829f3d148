"""Keys with which programs use the API as themselves. Only their hashes are stored."""

import secrets
from functools import partial

from app.context import RequestContext
from app.domain.agents.definition import api as agents
from app.domain.identity.accounts import api as accounts
from app.domain.platform.events import api as events
from app.domain.platform.history import api as history
from app.kit import clock, paging
from app.kit.errors import Invalid
from app.kit.ids import new_id
from app.kit.paging import Page, Paged
from app.security import service_keys
from app.security.principal import SERVICE_PREFIX
from db.models import ServiceKey
from db.session import Tx

from . import queries
from .errors import ServiceKeyNotFound
from .events import ServiceKeyCreated, ServiceKeyRevoked
from .schemas import CreatedServiceKey, CreateServiceKey, ServiceKeyView

_PREFIX_CHARS = 12


async def create(context: RequestContext, data: CreateServiceKey) -> CreatedServiceKey:
    tx, principal = context.tx, context.principal
    tenant_id = principal.home
    accounts.refuse_higher_role(principal, data.role)
    if data.expires_at is not None and data.expires_at <= clock.now():
        raise Invalid.field("expires_at", "must be in the future")
    # Locked until the commit, so that an administrator who is demoted at this moment creates no
    # key, and creations at the same time do not exceed the limit.
    await accounts.lock_own_user(tx, principal)
    await queries.check_quota(tx, tenant_id)
    agent_ids = await _check_agents(tx, tenant_id, data.agent_ids)
    secret = SERVICE_PREFIX + secrets.token_urlsafe(32)
    key = ServiceKey(
        id=new_id(service_keys.ID_PREFIX),
        tenant_id=tenant_id,
        name=data.name,
        role=data.role,
        agent_ids=agent_ids,
        key_prefix=secret[:_PREFIX_CHARS],
        key_hash=service_keys.hash_key(secret),
        expires_at=data.expires_at,
        created_by=principal.user_id,
    )
    session = await tx.session()
    session.add(key)
    await session.flush()
    await events.emit(tx, ServiceKeyCreated(key.id, key.name, key.role), tenant_id=tenant_id)
    return CreatedServiceKey(
        key.id,
        key.name,
        data.role,
        agent_ids,
        key.key_prefix,
        key.expires_at,
        key.created_by,
        key.created_at,
        secret,
    )


async def _check_agents(tx: Tx, tenant_id: str, agent_ids: list[str] | None) -> list[str] | None:
    if agent_ids is None:
        return None
    wanted = list(dict.fromkeys(agent_ids))
    known = await agents.find_existing_ids(tx, tenant_id, wanted)
    Invalid.check(
        (f"agent_ids.{number}", f"there is no agent {agent_id[:64]}")
        for number, agent_id in enumerate(wanted)
        if agent_id not in known
    )
    return wanted


async def list_page(
    tx: Tx, page: Page, sort: str | None, created_by: str | None
) -> Paged[ServiceKeyView]:
    views, total = await queries.list_page(tx, page, sort, created_by)
    return paging.paged(views, total, page)


async def revoke(context: RequestContext, key_id: str) -> None:
    tx = context.tx
    role = await queries.find_role(tx, key_id)
    if role is not None:
        accounts.refuse_higher_role(context.principal, role)
    row = await queries.revoke(tx, key_id)
    if row is None:
        raise ServiceKeyNotFound(f"There is no service key {key_id[:64]}")
    tenant_id, name = row["tenant_id"], row["name"]
    history.note(tx, "service_key", key_id, name, tenant_id=tenant_id, action="revoked")
    revoked = ServiceKeyRevoked(key_id, row["name"], row["role"])
    await events.emit(tx, revoked, tenant_id=row["tenant_id"])
    tx.after_commit.append(partial(context.services.session_cache.end_sessions, [key_id]))
