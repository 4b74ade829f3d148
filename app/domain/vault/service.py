"""Credentials: their fields, their secrets, who may use them. Whatever is done is written down."""

from contextlib import suppress
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from sqlalchemy import func, select

from app.domain.events import service as events
from app.domain.vault import audit, types
from app.domain.vault.audit import Actor
from app.domain.vault.errors import AccessRuleNotFound, CredentialNotFound
from app.domain.vault.events import CredentialCreated, CredentialDeleted, CredentialUpdated
from app.domain.vault.opened import place_of, unsealed
from app.domain.vault.schemas import (
    AccessRule,
    Action,
    AuditEntry,
    CreateCredential,
    CredentialSummary,
    CredentialView,
    GrantAccess,
    Revealed,
    TypeView,
    UpdateCredential,
)
from app.domain.vault.types import TYPES
from app.http import bodies, paging
from app.http.answers import filled
from app.http.errors import ApiError, Conflict, Invalid
from app.http.paging import Page, Paged
from app.kit.crypto import Keyring
from app.kit.egress import Guard
from app.kit.ids import new_id
from app.kit.texts import as_json, is_deeper
from app.security.principal import Principal
from db.models import Agent, Credential, CredentialAccess, Tool
from db.session import Tx

_SORTABLE = {
    "name": Credential.name,
    "type": Credential.type,
    "created_at": Credential.created_at,
    "updated_at": Credential.updated_at,
    "last_used_at": Credential.last_used_at,
    "last_tested_at": Credential.last_tested_at,
}
_METADATA_CHARS = 16_384
_DEEPEST = 16
_MOST_RULES = 500


class _Hosts(msgspec.Struct):
    allowed_hosts: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=255)]], Meta(max_length=100)
    ]


class Vault(msgspec.Struct, frozen=True):
    """Somebody at the vault: their transaction, the keys, and where they come from."""

    tx: Tx
    keyring: Keyring
    guard: Guard
    principal: Principal
    address: str

    @property
    def actor(self) -> Actor:
        return Actor("user", self.principal.user_id, self.address)


def every_type() -> list[TypeView]:
    return [
        TypeView(kind.type, kind.name, kind.description, kind.tested_by, types.schema_of(kind))
        for kind in TYPES.values()
    ]


async def page_of(
    tx: Tx, page: Page, *, type_: str | None, search: str | None, sort: str | None
) -> Paged[CredentialSummary]:
    wanted = select(Credential)
    if type_:
        wanted = wanted.where(Credential.type == type_)
    if search:
        wanted = wanted.where(paging.contains(Credential.name, search))
    ordering = paging.order(sort, _SORTABLE, "-created_at", Credential.id)
    rows, total = await paging.fetch(tx, wanted, page, ordering)
    return paging.paged([filled(CredentialSummary, row) for row in rows], total, page)


async def find(tx: Tx, credential_id: str, *, for_update: bool = False) -> Credential:
    found = await (await tx.session()).get(Credential, credential_id, with_for_update=for_update)
    if found is None:
        raise CredentialNotFound(f"There is no credential {credential_id[:64]}")
    return found


async def get(tx: Tx, credential_id: str) -> CredentialView:
    return _view(await find(tx, credential_id))


async def create(at: Vault, data: CreateCredential) -> CredentialView:
    secrets = types.checked(data.type, data.secrets, at.guard)
    _check_metadata(data.metadata, at.guard)
    credential_id, tenant_id = new_id("crd"), at.principal.home
    credential = Credential(
        id=credential_id,
        tenant_id=tenant_id,
        name=data.name,
        type=data.type,
        description=data.description,
        secrets=_sealed(at.keyring, tenant_id, credential_id, secrets),
        secret_keys=_keys(secrets),
        about=data.metadata,
    )
    session = await at.tx.session()
    session.add(credential)
    await session.flush()
    await _note(at, credential, "created")
    created = CredentialCreated(credential.id, credential.name, credential.type)
    await events.emit(at.tx, created, tenant_id=tenant_id)
    return _view(credential)


async def update(at: Vault, credential_id: str, data: UpdateCredential) -> CredentialView:
    credential = await find(at.tx, credential_id, for_update=True)
    values = bodies.given(data)
    secrets = values.pop("secrets", None)
    if "metadata" in values:
        _check_metadata(values["metadata"], at.guard)
        if secrets is None and _where(values["metadata"]) != _where(credential.about):
            # Whoever decides where the secrets are sent can read them there.
            at.principal.require("credentials:reveal")
        values["about"] = values.pop("metadata")
    changed = [name for name, value in values.items() if getattr(credential, name) != value]
    for name in changed:
        setattr(credential, name, values[name])
    if secrets is not None:
        await _replace(at, credential, secrets)
    told = ["metadata" if name == "about" else name for name in changed]
    if told:
        await (await at.tx.session()).flush()
        await _note(at, credential, "updated")
    await _tell(at.tx, credential, told + (["secrets"] if secrets is not None else []))
    return _view(credential)


async def update_secrets(at: Vault, credential_id: str, given: dict[str, Any]) -> CredentialView:
    """The set is replaced as a whole: what is not named is no longer there."""
    credential = await find(at.tx, credential_id, for_update=True)
    await _replace(at, credential, given)
    await _tell(at.tx, credential, ["secrets"])
    return _view(credential)


async def _replace(at: Vault, credential: Credential, given: dict[str, Any]) -> None:
    secrets = types.checked(credential.type, given, at.guard)
    credential.secrets = _sealed(at.keyring, credential.tenant_id, credential.id, secrets)
    credential.secret_keys = _keys(secrets)
    credential.secrets_version += 1
    # Nothing bad is known of the new ones.
    credential.is_valid, credential.token_expires_at = True, None
    credential.refresh_holder = credential.refresh_until = None
    await (await at.tx.session()).flush()
    await _note(at, credential, "secrets_updated")


async def delete(at: Vault, credential_id: str) -> None:
    credential = await find(at.tx, credential_id, for_update=True)
    await _note(at, credential, "deleted")
    session = await at.tx.session()
    await session.delete(credential)
    await session.flush()
    gone = CredentialDeleted(credential.id, credential.name, credential.type)
    await events.emit(at.tx, gone, tenant_id=credential.tenant_id)


async def reveal(at: Vault, credential_id: str) -> Revealed:
    """Written down in the same transaction, which is committed before the answer goes out."""
    credential = await find(at.tx, credential_id)
    await _note(at, credential, "revealed")
    secrets = unsealed(
        at.keyring, credential.tenant_id, credential.id, credential.type, credential.secrets
    )
    shown = msgspec.to_builtins(secrets)
    return Revealed(credential.id, credential.type, shown)  # type: ignore[arg-type]


async def refuse_reveal(at: Vault, credential_id: str) -> ApiError:
    """Somebody without the permission tried; that is written down, too. Gives what to tell them."""
    with suppress(CredentialNotFound):
        credential = await find(at.tx, credential_id)
        await _note(at, credential, "denied", success=False)
    try:
        at.principal.require("credentials:reveal")
    except ApiError as error:
        return error
    raise RuntimeError("the caller has the permission")


async def audit_of(tx: Tx, page: Page, credential_id: str) -> Paged[AuditEntry]:
    """What was done with one credential; the trail outlives it."""
    found = await audit.entries(tx, page, credential_id)
    if not found.pagination.total:
        await find(tx, credential_id)
    return found


# Access rules


async def rules(tx: Tx, credential_id: str) -> list[AccessRule]:
    await find(tx, credential_id)
    found = await (await tx.session()).scalars(
        select(CredentialAccess)
        .where(CredentialAccess.credential_id == credential_id)
        .order_by(CredentialAccess.created_at, CredentialAccess.id)
    )
    return [_rule(row) for row in found]


async def grant(at: Vault, credential_id: str, data: GrantAccess) -> AccessRule:
    credential = await find(at.tx, credential_id, for_update=True)
    await _check_integration(at.tx, credential.tenant_id, data)
    session = await at.tx.session()
    same = select(CredentialAccess.id).where(
        CredentialAccess.credential_id == credential_id,
        CredentialAccess.integration_type == data.integration_type,
        CredentialAccess.integration_id == data.integration_id,
    )
    if await session.scalar(same) is not None:
        raise Conflict(f"This {data.integration_type} has access already")
    theirs = select(func.count()).where(CredentialAccess.credential_id == credential_id)
    if (await session.scalar(theirs) or 0) >= _MOST_RULES:
        raise Conflict(f"A credential has at most {_MOST_RULES} access rules; revoke one first")
    rule = CredentialAccess(
        id=new_id("acr"),
        tenant_id=credential.tenant_id,
        credential_id=credential_id,
        integration_type=data.integration_type,
        integration_id=data.integration_id,
        created_by=at.principal.user_id,
    )
    session.add(rule)
    await session.flush()
    await session.refresh(rule)
    await _note(at, credential, "access_granted", rule)
    await _tell(at.tx, credential, ["access"])
    return _rule(rule)


async def _check_integration(tx: Tx, tenant_id: str, data: GrantAccess) -> None:
    """An agent or tool of the same tenant; workflows and channels are looked up when they ask."""
    if data.integration_type in {"workflow", "channel"}:
        return
    kind: Any = Tool if data.integration_type == "tool" else Agent
    found = await (await tx.session()).get(kind, data.integration_id)
    if found is None or found.tenant_id != tenant_id:
        raise Invalid.field("integration_id", f"there is no such {data.integration_type}")


async def revoke(at: Vault, credential_id: str, rule_id: str) -> None:
    credential = await find(at.tx, credential_id, for_update=True)
    session = await at.tx.session()
    rule = await session.get(CredentialAccess, rule_id)
    if rule is None or rule.credential_id != credential_id:
        raise AccessRuleNotFound(f"This credential has no access rule {rule_id[:64]}")
    await session.delete(rule)
    await session.flush()
    await _note(at, credential, "access_revoked", rule)
    await _tell(at.tx, credential, ["access"])


# Small parts


def _check_metadata(metadata: dict[str, Any], guard: Guard) -> None:
    if is_deeper(metadata, _DEEPEST):
        raise Invalid.field("metadata", f"is nested deeper than {_DEEPEST} levels")
    if len(as_json(metadata)) > _METADATA_CHARS:
        raise Invalid.field("metadata", f"must have at most {_METADATA_CHARS} characters")
    hosts = metadata.get("allowed_hosts")
    if hosts is not None:
        bodies.converted(_Hosts, {"allowed_hosts": hosts}, "metadata")
    url = metadata.get("test_url")
    if url is not None:
        problem = guard.problem_with(url) if isinstance(url, str) else "must be a text"
        if problem is not None:
            raise Invalid.field("metadata.test_url", problem)


def _where(metadata: dict[str, Any]) -> Any:
    """Where the secrets may be sent."""
    return metadata.get("test_url"), metadata.get("allowed_hosts")


def _sealed(keyring: Keyring, tenant_id: str, credential_id: str, secrets: Any) -> bytes:
    return keyring.seal(msgspec.json.encode(secrets), place_of(tenant_id, credential_id))


def _keys(secrets: Any) -> list[str]:
    return sorted(msgspec.to_builtins(secrets))


async def _note(
    at: Vault,
    credential: Credential,
    action: Action,
    rule: CredentialAccess | None = None,
    *,
    success: bool = True,
) -> None:
    actor = at.actor
    if rule is not None:
        integration = f"{rule.integration_type}:{rule.integration_id}"
        actor = msgspec.structs.replace(actor, integration=integration)
    await audit.append(
        at.tx, at.keyring, credential.tenant_id, credential.id, action, actor, success=success
    )


async def _tell(tx: Tx, credential: Credential, changed: list[str]) -> None:
    if changed:
        told = CredentialUpdated(credential.id, credential.name, credential.type, changed)
        await events.emit(tx, told, tenant_id=credential.tenant_id)


def _view(credential: Credential) -> CredentialView:
    return filled(CredentialView, credential, metadata=credential.about)


def _rule(row: CredentialAccess) -> AccessRule:
    return AccessRule(
        row.id,
        row.integration_type,  # type: ignore[arg-type]
        row.integration_id,
        row.created_by,
        row.created_at,
    )
