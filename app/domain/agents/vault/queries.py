"""SQL of the vault: credentials, access rules, token refreshes and the audit chain."""

from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import delete, select

from app.kit import paging
from app.kit.paging import Page, SortOrders
from db import fast
from db.fast import Row, tenant_of
from db.lists import Total, Where
from db.models import Credential, CredentialAccess
from db.session import Tx
from db.user_names import user_name_sql
from db.views import View

from .schemas import AccessRule, AuditEntry, CredentialSummary, CredentialView, Integration

_SORT_ORDERS = SortOrders(
    "-created_at",
    Credential.id,
    name=Credential.name,
    type=Credential.type,
    created_at=Credential.created_at,
    updated_at=Credential.updated_at,
    last_used_at=Credential.last_used_at,
    last_tested_at=Credential.last_tested_at,
)
_SUMMARY = View(CredentialSummary)
_VIEW = View(CredentialView)
_NAMED_TABLES = {
    "user": ("users", user_name_sql("n")),
    "service_key": ("service_keys", "n.name"),
    "agent": ("agents", "n.name"),
    "tool": ("tools", "n.name"),
    "workflow": ("workflows", "n.name"),
    "channel": ("notification_channels", "n.name"),
}


def _name_sql(table: str, kind: str, id_: str) -> str:
    """Returns the name of what a row of `table` names by its kind and id."""
    cases = " ".join(
        f"WHEN '{name}' THEN (SELECT {column} FROM {source} n"
        f" WHERE n.tenant_id = {table}.tenant_id AND n.id = {id_})"
        for name, (source, column) in _NAMED_TABLES.items()
    )
    return f"CASE {kind} {cases} END"


_RULE = View(
    AccessRule,
    integration_name=_name_sql("credential_access", "integration_type", "integration_id"),
)
_ENTRY = View(
    AuditEntry,
    credential_name="(SELECT c.name FROM credentials c"
    " WHERE c.tenant_id = credential_audit.tenant_id AND c.id = credential_id)",
    actor_name=_name_sql("credential_audit", "actor_type", "actor_id"),
    integration_name=_name_sql(
        "credential_audit", "split_part(integration, ':', 1)", "split_part(integration, ':', 2)"
    ),
)
_FIND = f"""
SELECT {_VIEW.columns} FROM credentials WHERE ($1::text IS NULL OR tenant_id = $1) AND id = $2
"""
_LIST_RULES = f"""
SELECT {_RULE.columns} FROM credential_access
WHERE ($1::text IS NULL OR tenant_id = $1) AND credential_id = $2
ORDER BY created_at, id
"""

_AUDIT_COLUMNS = (
    "id, tenant_id, seq, credential_id, action, actor_id, actor_type, integration, ip_address, "
    "success, created_at, mac"
)
_LOCK_HEAD = """
SELECT id, tenant_id, key, seq, mac, seal FROM credential_audit_chains WHERE tenant_id = $1
FOR UPDATE
"""
_HEADS = "SELECT id, tenant_id, key, seq, mac, seal FROM credential_audit_chains ORDER BY id"
_INSERT_CHAIN = """
INSERT INTO credential_audit_chains (tenant_id, id, key, seq, mac, seal)
VALUES ($1, $2, $3, 0, $4, $5) ON CONFLICT (tenant_id) DO NOTHING
"""
_APPEND = """
WITH row AS (
    INSERT INTO credential_audit (tenant_id, id, seq, credential_id, action, actor_id, actor_type,
                                  integration, ip_address, success, created_at, mac)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
)
UPDATE credential_audit_chains SET seq = $3, mac = $12, seal = $13 WHERE tenant_id = $1
"""
_ROWS_BETWEEN = f"""
SELECT {_AUDIT_COLUMNS} FROM credential_audit WHERE tenant_id = $1 AND seq BETWEEN $2 AND $3
ORDER BY seq LIMIT $4
"""
# One statement, so that a row written at the same time is read with the matching chain head.
_ROW_OUTSIDE_CHAIN = """
SELECT a.id, a.seq FROM credential_audit a JOIN credential_audit_chains c USING (tenant_id)
WHERE tenant_id = $1 AND (a.seq < 1 OR a.seq > c.seq) ORDER BY a.seq LIMIT 1
"""
_TENANTS_WITHOUT_CHAIN = """
SELECT DISTINCT tenant_id FROM (
    SELECT tenant_id FROM credentials UNION SELECT tenant_id FROM credential_audit
) tenants
WHERE NOT EXISTS (SELECT 1 FROM credential_audit_chains c WHERE c.tenant_id = tenants.tenant_id)
"""
# These remain after a whole chain is deleted and a new one is started.
_CREDENTIALS_WITHOUT_CREATION = """
SELECT c.tenant_id, c.id FROM credentials c
WHERE NOT EXISTS (SELECT 1 FROM credential_audit a WHERE a.tenant_id = c.tenant_id
                  AND a.credential_id = c.id AND a.action = 'created')
  AND EXISTS (SELECT 1 FROM credential_audit_chains h WHERE h.tenant_id = c.tenant_id)
ORDER BY c.id
"""
_HAS_RULES = """
SELECT EXISTS (SELECT 1 FROM credential_access
               WHERE tenant_id = $1 AND integration_type = $2 AND integration_id = $3)
"""
# The audit rows of a credential tell who set its secrets.
_HAS_SET_ALL_SECRETS = """
SELECT coalesce(bool_and(actor_type = 'user' AND actor_id = $3), false) FROM credential_audit
WHERE tenant_id = $1 AND credential_id = $2 AND action IN ('created', 'secrets_updated')
"""
_HAS_RULE = """
SELECT EXISTS (SELECT 1 FROM credential_access WHERE tenant_id = $1 AND credential_id = $2
               AND integration_type = $3 AND integration_id = $4)
"""
_FOR_USE = """
SELECT c.id, c.name, c.type, c.secrets, c.secrets_version, c.token_expires_at, c.metadata::text,
       EXISTS (SELECT 1 FROM credential_access a
               WHERE a.credential_id = c.id AND a.tenant_id = c.tenant_id
                 AND a.integration_type = $3 AND a.integration_id = $4) AS allowed
FROM credentials c WHERE c.tenant_id = $1 AND c.id = $2
"""
_MARK_USED = "UPDATE credentials SET last_used_at = now() WHERE tenant_id = $1 AND id = $2"
# A success counts only for the secrets that were tested. A test does not change `updated_at`.
_MARK_TESTED = """
UPDATE credentials
SET last_tested_at = $3, is_valid = is_valid OR ($5 AND secrets_version = $4)
WHERE tenant_id = $1 AND id = $2
"""

_CLAIM_REFRESH = """
UPDATE credentials SET refresh_holder = $3, refresh_until = now() + $4 * interval '1 second'
WHERE tenant_id = $1 AND id = $2 AND (refresh_until IS NULL OR refresh_until < now())
RETURNING name, secrets, secrets_version, token_expires_at
"""
_SECRETS = """
SELECT secrets, secrets_version, token_expires_at FROM credentials WHERE tenant_id = $1 AND id = $2
"""
_STORE_REFRESH = """
UPDATE credentials
SET secrets = $4, secret_keys = $5, token_expires_at = $6, secrets_version = secrets_version + 1,
    is_valid = true, refresh_until = NULL, refresh_holder = NULL
WHERE tenant_id = $1 AND id = $2 AND refresh_holder = $3 AND secrets_version = $7
"""
_RELEASE_REFRESH = """
UPDATE credentials SET refresh_until = NULL, refresh_holder = NULL
WHERE tenant_id = $1 AND id = $2 AND refresh_holder = $3
"""
_MARK_INVALID = """
UPDATE credentials SET is_valid = false
WHERE tenant_id = $1 AND id = $2 AND is_valid AND secrets_version = $3
RETURNING name, type
"""


async def lock_audit_head(tx: Tx, tenant: str) -> Row | None:
    return await fast.row(tx, tenant, _LOCK_HEAD)


async def insert_audit_chain(
    tx: Tx, tenant: str, chain_id: str, key: bytes, mac: bytes, seal: bytes
) -> None:
    await fast.execute(tx, tenant, _INSERT_CHAIN, chain_id, key, mac, seal)


async def append_audit_row(
    tx: Tx, tenant: str, row: dict[str, Any], mac: bytes, seal: bytes
) -> None:
    await fast.execute(tx, tenant, _APPEND, *row.values(), mac, seal)


async def list_audit_heads(tx: Tx) -> list[Row]:
    return list(await (await tx.raw()).fetch(_HEADS))


async def list_tenants_without_chain(tx: Tx) -> list[Row]:
    """Returns the tenants that have credentials or audit rows, but no chain."""
    return list(await (await tx.raw()).fetch(_TENANTS_WITHOUT_CHAIN))


async def list_credentials_without_creation(tx: Tx) -> list[Row]:
    """Returns the credentials that have no audit row with the action `created`."""
    return list(await (await tx.raw()).fetch(_CREDENTIALS_WITHOUT_CREATION))


async def list_audit_rows(tx: Tx, tenant: str, first: int, last: int, limit: int) -> list[Row]:
    return await fast.rows(tx, tenant, _ROWS_BETWEEN, first, last, limit)


async def find_row_outside_chain(tx: Tx, tenant: str) -> Row | None:
    """Returns the first row before the start or after the head of the tenant's chain."""
    return await fast.row(tx, tenant, _ROW_OUTSIDE_CHAIN)


class AuditFilter(msgspec.Struct, frozen=True):
    action: str | None = None
    actor_type: str | None = None
    after: datetime | None = None
    before: datetime | None = None


async def list_audit_page(
    tx: Tx, credential_id: str | None, filters: AuditFilter, page: Page
) -> tuple[list[AuditEntry], Total]:
    where = Where(tenant_of(tx))
    where.equal("credential_id", credential_id)
    where.equal("action", filters.action)
    where.equal("actor_type", filters.actor_type)
    if filters.after is not None:
        where.add("created_at > $n", filters.after)
    if filters.before is not None:
        where.add("created_at < $n", filters.before)
    is_of_all = where.tenant is None and credential_id is None
    # `seq` counts per tenant; a page over all tenants is ordered by id.
    order = "id DESC" if is_of_all else "seq DESC"
    return await paging.fetch(
        tx,
        _ENTRY,
        "credential_audit",
        where,
        order,
        page,
        tenant_is_implied=credential_id is not None,
    )


async def find_for_use(
    tx: Tx, tenant: str, credential_id: str, integration_type: str, integration_id: str
) -> Row | None:
    """Returns the credential; `allowed` is true when the integration has an access rule."""
    return await fast.row(tx, tenant, _FOR_USE, credential_id, integration_type, integration_id)


async def mark_used(tx: Tx, tenant: str, credential_id: str) -> None:
    await fast.execute(tx, tenant, _MARK_USED, credential_id)


async def mark_tested(
    tx: Tx, tenant: str, credential_id: str, tested_at: datetime, version: int, *, success: bool
) -> bool:
    """True when the credential still exists."""
    values = (credential_id, tested_at, version, success)
    return await fast.execute(tx, tenant, _MARK_TESTED, *values) == 1


async def claim_refresh(
    tx: Tx, tenant: str, credential_id: str, holder: str, seconds: float
) -> Row | None:
    """Returns the credential if the holder got the lease; None while another one has it."""
    return await fast.row(tx, tenant, _CLAIM_REFRESH, credential_id, holder, seconds)


async def find_secrets(tx: Tx, tenant: str, credential_id: str) -> Row | None:
    return await fast.row(tx, tenant, _SECRETS, credential_id)


async def store_token(
    tx: Tx,
    tenant: str,
    credential_id: str,
    holder: str,
    secrets: bytes,
    secret_keys: list[str],
    expires_at: datetime | None,
    version: int,
) -> None:
    """Stores the token only if the holder has the lease and the secrets are unchanged."""
    values = (credential_id, holder, secrets, secret_keys, expires_at, version)
    await fast.execute(tx, tenant, _STORE_REFRESH, *values)


async def release_refresh(tx: Tx, tenant: str, credential_id: str, holder: str) -> None:
    await fast.execute(tx, tenant, _RELEASE_REFRESH, credential_id, holder)


async def mark_invalid(tx: Tx, tenant: str, credential_id: str, version: int) -> Row | None:
    """Returns the credential if it was valid and its secrets still have this version."""
    return await fast.row(tx, tenant, _MARK_INVALID, credential_id, version)


async def list_page(
    tx: Tx, page: Page, *, type_: str | None, search: str | None, sort: str | None
) -> tuple[list[CredentialSummary], Total]:
    where = Where(tenant_of(tx))
    where.equal("type", type_)
    where.contain(search, "name")
    return await paging.fetch(tx, _SUMMARY, "credentials", where, _SORT_ORDERS.sql(sort), page)


async def find_view(tx: Tx, credential_id: str) -> CredentialView | None:
    return await _VIEW.find(tx, tenant_of(tx), _FIND, credential_id)


async def list_rules(tx: Tx, credential_id: str) -> list[AccessRule]:
    return await _RULE.list(tx, tenant_of(tx), _LIST_RULES, credential_id)


async def has_rules(tx: Tx, tenant: str, integration: Integration, integration_id: str) -> bool:
    """True when the integration may use a credential."""
    return bool(await fast.value(tx, tenant, _HAS_RULES, integration, integration_id))


async def has_rule(
    tx: Tx, tenant: str, credential_id: str, integration: Integration, integration_id: str
) -> bool:
    """True when the integration may use this credential."""
    values = (credential_id, integration, integration_id)
    return bool(await fast.value(tx, tenant, _HAS_RULE, *values))


async def has_set_all_secrets(tx: Tx, tenant: str, credential_id: str, user_id: str) -> bool:
    """True when the user created the credential and nobody else has replaced its secrets."""
    return bool(await fast.value(tx, tenant, _HAS_SET_ALL_SECRETS, credential_id, user_id))


async def list_integrations(tx: Tx, credential_id: str) -> set[tuple[str, str]]:
    """Returns type and id of the integrations that have an access rule."""
    statement = select(CredentialAccess.integration_type, CredentialAccess.integration_id).where(
        CredentialAccess.credential_id == credential_id
    )
    return {(row[0], row[1]) for row in await (await tx.session()).execute(statement)}


async def delete_rules(
    tx: Tx, tenant_id: str, integration: Integration, integration_ids: list[str]
) -> None:
    """Deletes the access rules of integrations that are being deleted."""
    statement = delete(CredentialAccess).where(
        CredentialAccess.tenant_id == tenant_id,
        CredentialAccess.integration_type == integration,
        CredentialAccess.integration_id.in_(integration_ids),
    )
    await (await tx.session()).execute(statement)


async def find_credential(tx: Tx, tenant_id: str, credential_id: str) -> Credential | None:
    """Returns a credential of this tenant."""
    statement = select(Credential).where(
        Credential.tenant_id == tenant_id, Credential.id == credential_id
    )
    credential: Credential | None = await (await tx.session()).scalar(statement)
    return credential
