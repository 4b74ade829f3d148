"""Credentials, their secrets and access rules. Every action is written to the audit log."""

from contextlib import suppress
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from app.context import RequestContext
from app.crypto.keyring import Keyring
from app.domain.area import Areas, CredentialTarget
from app.domain.platform.events import api as events
from app.kit import clock, paging, validation
from app.kit.changes import apply_changes
from app.kit.errors import Conflict, Invalid
from app.kit.ids import new_id
from app.kit.paging import Page, Paged
from app.kit.texts import as_json, is_deeper
from app.kit.views import build_view
from app.net.egress import Guard
from app.security.principal import Principal
from app.services import Services
from db.models import Agent, Credential, CredentialAccess, Tool
from db.session import Tx

from . import audit, destinations, queries, types
from .audit import Actor
from .decrypted import decrypt_values, seal_context
from .errors import AccessRuleNotFound, CredentialNotFound
from .events import CredentialCreated, CredentialDeleted, CredentialUpdated
from .queries import AuditFilter
from .schemas import (
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
from .types import TYPES

_MAX_METADATA_CHARS = 16_384
_MAX_DEPTH = 16
_MAX_RULES = 500


class _AllowedHosts(msgspec.Struct):
    allowed_hosts: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=255)]], Meta(max_length=100)
    ]


def _build_actor(context: RequestContext) -> Actor:
    return Actor(context.principal.kind, context.principal.user_id, context.address)


def list_types() -> list[TypeView]:
    return [
        TypeView(row.type, row.name, row.description, row.tested_by, types.build_schema(row))
        for row in TYPES.values()
    ]


async def list_page(
    tx: Tx, page: Page, *, type_: str | None, search: str | None, sort: str | None
) -> Paged[CredentialSummary]:
    summaries, total = await queries.list_page(tx, page, type_=type_, search=search, sort=sort)
    return paging.paged(summaries, total, page)


async def find(tx: Tx, credential_id: str, *, for_update: bool = False) -> Credential:
    session = await tx.session()
    credential = await session.get(Credential, credential_id, with_for_update=for_update)
    if credential is None:
        raise _not_found(credential_id)
    return credential


def _not_found(credential_id: str) -> CredentialNotFound:
    return CredentialNotFound(f"There is no credential {credential_id[:64]}")


async def get(tx: Tx, credential_id: str) -> CredentialView:
    view = await queries.find_view(tx, credential_id)
    if view is None:
        raise _not_found(credential_id)
    return view


async def create(context: RequestContext, data: CreateCredential) -> CredentialView:
    types.validate_secrets(data.type, data.secrets, context.guard)
    _check_metadata(data.metadata, context.guard)
    credential_id, tenant_id = new_id("crd"), context.principal.home
    credential = Credential(
        id=credential_id,
        tenant_id=tenant_id,
        name=data.name,
        type=data.type,
        description=data.description,
        secrets=_seal_secrets(context.keyring, tenant_id, credential_id, data.secrets),
        secret_keys=sorted(data.secrets),
        about=data.metadata,
    )
    session = await context.tx.session()
    session.add(credential)
    await session.flush()
    await _append_audit(context, credential, "created")
    created = CredentialCreated(credential.id, credential.name, credential.type)
    await events.emit(context.tx, created, tenant_id=tenant_id)
    return _build_view(credential)


async def update(
    context: RequestContext, credential_id: str, data: UpdateCredential
) -> CredentialView:
    credential = await find(context.tx, credential_id, for_update=True)
    values = validation.set_fields(data)
    secrets = values.pop("secrets", None)
    if "metadata" in values:
        _check_metadata(values["metadata"], context.guard, credential.about)
        if _get_destinations(values["metadata"]) != _get_destinations(credential.about):
            await destinations.require_knowledge(
                context,
                credential,
                "Whoever sets test_url or allowed_hosts can read the secrets there. Ask somebody "
                "with credentials:reveal to change them",
            )
        values["about"] = values.pop("metadata")
    changed = apply_changes(credential, values)
    if secrets is not None:
        await _replace_secrets(context, credential, secrets)
    names = ["metadata" if name == "about" else name for name in changed]
    if names:
        await (await context.tx.session()).flush()
        await _append_audit(context, credential, "updated")
    names += ["secrets"] if secrets is not None else []
    await _emit_updated(context.tx, credential, names)
    return _build_view(credential)


async def update_secrets(
    context: RequestContext, credential_id: str, values: dict[str, Any]
) -> CredentialView:
    """Replaces all secrets of the credential; secrets that `values` leaves out are deleted."""
    credential = await find(context.tx, credential_id, for_update=True)
    await _replace_secrets(context, credential, values)
    await _emit_updated(context.tx, credential, ["secrets"])
    return _build_view(credential)


async def _replace_secrets(
    context: RequestContext, credential: Credential, values: dict[str, Any]
) -> None:
    types.validate_secrets(credential.type, values, context.guard)
    credential.secrets = _seal_secrets(context.keyring, credential.tenant_id, credential.id, values)
    credential.secret_keys = sorted(values)
    credential.secrets_version += 1
    credential.secrets_updated_at = clock.now()
    # New secrets count as valid until a test or a refresh fails.
    credential.is_valid, credential.token_expires_at = True, None
    credential.refresh_holder = credential.refresh_until = None
    await (await context.tx.session()).flush()
    await _append_audit(context, credential, "secrets_updated")


async def delete(context: RequestContext, credential_id: str) -> None:
    credential = await find(context.tx, credential_id, for_update=True)
    await _append_audit(context, credential, "deleted")
    session = await context.tx.session()
    await session.delete(credential)
    await session.flush()
    deleted = CredentialDeleted(credential.id, credential.name, credential.type)
    await events.emit(context.tx, deleted, tenant_id=credential.tenant_id)


async def reveal(
    services: Services, principal: Principal, address: str, credential_id: str
) -> Revealed:
    """Returns the secrets. The audit row is committed before the response is sent, also that of an
    attempt without the permission.
    """
    if not principal.may("credentials:read"):
        principal.require("credentials:reveal")
    async with services.db.tx(principal.scope) as tx:
        context = RequestContext(tx, services, principal, address)
        if principal.may("credentials:reveal"):
            return await _reveal(context, credential_id)
        with suppress(CredentialNotFound):
            credential = await find(tx, credential_id)
            await _append_audit(context, credential, "denied", success=False)
    raise principal.refusal("credentials:reveal")


async def _reveal(context: RequestContext, credential_id: str) -> Revealed:
    credential = await find(context.tx, credential_id)
    await _append_audit(context, credential, "revealed")
    values = decrypt_values(
        context.keyring, credential.tenant_id, credential.id, credential.secrets
    )
    return Revealed(credential.id, credential.type, values)  # type: ignore[arg-type]


async def list_audit(
    tx: Tx, page: Page, filters: AuditFilter, credential_id: str
) -> Paged[AuditEntry]:
    """Returns the audit rows of a credential, also of a deleted one.

    Raises CredentialNotFound when there are none and the credential does not exist.
    """
    entries = await audit.list_entries(tx, page, filters, credential_id)
    if not entries.pagination.total:
        await get(tx, credential_id)
    return entries


# Access rules


async def list_rules(tx: Tx, credential_id: str) -> list[AccessRule]:
    rules = await queries.list_rules(tx, credential_id)
    if not rules:
        await get(tx, credential_id)
    return rules


async def grant_access(
    context: RequestContext, credential_id: str, data: GrantAccess
) -> AccessRule:
    credential = await find(context.tx, credential_id, for_update=True)
    await _check_integration(context.tx, credential.tenant_id, data)
    target = CredentialTarget(
        context.tx, context.services, credential_id, data.integration_type, data.integration_id
    )
    hosts = await context.services.get(Areas).list_credential_hosts(target)
    await destinations.check_use(context, credential, hosts, "integration_id", takes_effect=True)
    allowed = await queries.list_integrations(context.tx, credential_id)
    if (data.integration_type, data.integration_id) in allowed:
        raise Conflict(f"This {data.integration_type} already has access")
    if len(allowed) >= _MAX_RULES:
        raise Conflict(f"A credential has at most {_MAX_RULES} access rules; revoke one first")
    rule = CredentialAccess(
        id=new_id("acr"),
        tenant_id=credential.tenant_id,
        credential_id=credential_id,
        integration_type=data.integration_type,
        integration_id=data.integration_id,
        created_by=context.principal.user_id,
    )
    session = await context.tx.session()
    session.add(rule)
    await session.flush()
    await _append_audit(context, credential, "access_granted", rule)
    await _emit_updated(context.tx, credential, ["access"])
    rules = await queries.list_rules(context.tx, credential_id)
    return next(view for view in rules if view.id == rule.id)


async def _check_integration(tx: Tx, tenant_id: str, data: GrantAccess) -> None:
    """Raises Invalid unless the agent or tool exists in the tenant. Workflows and channels are
    looked up when they use the credential. Locks the row: its host must not change meanwhile.
    """
    if data.integration_type in {"workflow", "channel"}:
        return
    model: Any = Tool if data.integration_type == "tool" else Agent
    integration = await (await tx.session()).get(model, data.integration_id, with_for_update=True)
    if integration is None or integration.tenant_id != tenant_id:
        raise Invalid.field("integration_id", f"this {data.integration_type} does not exist")


async def revoke_access(context: RequestContext, credential_id: str, rule_id: str) -> None:
    credential = await find(context.tx, credential_id, for_update=True)
    session = await context.tx.session()
    rule = await session.get(CredentialAccess, rule_id)
    if rule is None or rule.credential_id != credential_id:
        raise AccessRuleNotFound(f"This credential has no access rule {rule_id[:64]}")
    await session.delete(rule)
    await session.flush()
    await _append_audit(context, credential, "access_revoked", rule)
    await _emit_updated(context.tx, credential, ["access"])


# Helpers


def _check_metadata(
    metadata: dict[str, Any], guard: Guard, stored: dict[str, Any] | None = None
) -> None:
    if is_deeper(metadata, _MAX_DEPTH):
        raise Invalid.field("metadata", f"is nested deeper than {_MAX_DEPTH} levels")
    if len(as_json(metadata)) > _MAX_METADATA_CHARS:
        raise Invalid.field("metadata", f"must have at most {_MAX_METADATA_CHARS} characters")
    hosts = metadata.get("allowed_hosts")
    if hosts is not None:
        validation.convert_field(_AllowedHosts, {"allowed_hosts": hosts}, "metadata")
        if stored is None or hosts != stored.get("allowed_hosts"):
            Invalid.check(destinations.find_host_problems(hosts, "metadata.allowed_hosts"))
    url = metadata.get("test_url")
    if url is not None:
        problem = guard.problem_with(url) if isinstance(url, str) else "must be a string"
        if problem is not None:
            raise Invalid.field("metadata.test_url", problem)


def _get_destinations(metadata: dict[str, Any]) -> Any:
    """Returns the addresses that the secrets may be sent to."""
    return metadata.get("test_url"), metadata.get("allowed_hosts")


def _seal_secrets(
    keyring: Keyring, tenant_id: str, credential_id: str, values: dict[str, Any]
) -> bytes:
    return keyring.seal(msgspec.json.encode(values), seal_context(tenant_id, credential_id))


async def _append_audit(
    context: RequestContext,
    credential: Credential,
    action: Action,
    rule: CredentialAccess | None = None,
    *,
    success: bool = True,
) -> None:
    actor = _build_actor(context)
    if rule is not None:
        integration = f"{rule.integration_type}:{rule.integration_id}"
        actor = msgspec.structs.replace(actor, integration=integration)
    await audit.append_entry(
        context.tx,
        context.keyring,
        credential.tenant_id,
        credential.id,
        action,
        actor,
        success=success,
    )


async def _emit_updated(tx: Tx, credential: Credential, changed: list[str]) -> None:
    if changed:
        updated = CredentialUpdated(credential.id, credential.name, credential.type, changed)
        await events.emit(tx, updated, tenant_id=credential.tenant_id)


def _build_view(credential: Credential) -> CredentialView:
    return build_view(CredentialView, credential, metadata=credential.about)
