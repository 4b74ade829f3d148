"""The audit log of a tenant's credentials: a chain of rows that shows tampering.

The MAC of a row covers its fields and the MAC of the previous row. Its key is sealed like a secret.
The seal of the chain covers the last sequence number and MAC, so that edited, missing and truncated
rows are detected.
"""

import hashlib
import hmac
import os
import struct
from datetime import datetime

import msgspec

from app.crypto.keyring import CannotOpen, Keyring, SealContext
from app.kit import clock
from app.kit.ids import new_id
from app.kit.paging import Page, Paged, paged
from db.fast import Row
from db.models import CredentialAuditChain
from db.session import ALL_TENANTS, Database, Tx

from . import queries
from .queries import AuditFilter
from .schemas import Action, AuditEntry

_KEY_BYTES = 32
_FIRST_MAC = b"\0" * 32
_BATCH_ROWS = 1000


class Actor(msgspec.Struct, frozen=True):
    """The user or integration that acts on a credential."""

    type: str
    id: str | None
    ip_address: str | None = None
    integration: str | None = None


class ChainBreak(msgspec.Struct, frozen=True):
    """The first position of a chain that fails verification."""

    tenant_id: str
    seq: int
    row_id: str | None
    problem: str


async def append_entry(
    tx: Tx,
    keyring: Keyring,
    tenant_id: str,
    credential_id: str,
    action: Action,
    actor: Actor,
    *,
    success: bool = True,
) -> None:
    """Appends a row in the caller's transaction, which is committed before a secret is returned."""
    head = await _lock_head(tx, keyring, tenant_id)
    key = keyring.open(head["key"], _seal_context(tenant_id, head["id"]))
    seq, now = head["seq"] + 1, clock.now()
    row = {
        "id": new_id("aud"),
        "seq": seq,
        "credential_id": credential_id,
        "action": action,
        "actor_id": actor.id,
        "actor_type": actor.type,
        "integration": actor.integration,
        "ip_address": actor.ip_address,
        "success": success,
        "created_at": now,
    }
    mac = _compute_mac(key, head["mac"], tenant_id, row)
    await queries.append_audit_row(tx, tenant_id, row, mac, _compute_seal(key, seq, mac))


async def _lock_head(tx: Tx, keyring: Keyring, tenant_id: str) -> Row:
    """Returns the head of the chain, locked, so that rows of one tenant are written in sequence.

    Starts the chain if the tenant has none.
    """
    head = await queries.lock_audit_head(tx, tenant_id)
    while head is None:
        chain_id, key = new_id("auc"), os.urandom(_KEY_BYTES)
        sealed_key = keyring.seal(key, _seal_context(tenant_id, chain_id))
        seal = _compute_seal(key, 0, _FIRST_MAC)
        await queries.insert_audit_chain(tx, tenant_id, chain_id, sealed_key, _FIRST_MAC, seal)
        head = await queries.lock_audit_head(tx, tenant_id)
    return head


def _seal_context(tenant_id: str, chain_id: str) -> SealContext:
    return SealContext.of(CredentialAuditChain.key, tenant_id, chain_id)


def _compute_mac(
    key: bytes, previous_mac: bytes, tenant_id: str, row: dict[str, object] | Row
) -> bytes:
    created_at = row["created_at"]
    assert isinstance(created_at, datetime)  # noqa: S101  # for the type alone
    parts = [previous_mac, tenant_id.encode()]
    for name in (
        "id",
        "seq",
        "credential_id",
        "action",
        "actor_id",
        "actor_type",
        "integration",
        "ip_address",
        "success",
    ):
        value = row[name]
        parts.append(b"\0" if value is None else b"\1" + str(value).encode())
    parts.append(str(round(created_at.timestamp() * 1_000_000)).encode())
    message = b"".join(struct.pack(">I", len(part)) + part for part in parts)
    return hmac.digest(key, message, hashlib.sha256)


def _compute_seal(key: bytes, seq: int, mac: bytes) -> bytes:
    return hmac.digest(key, b"end" + struct.pack(">Q", seq) + mac, hashlib.sha256)


async def list_entries(
    tx: Tx, page: Page, filters: AuditFilter, credential_id: str | None = None
) -> Paged[AuditEntry]:
    entries, total = await queries.list_audit_page(tx, credential_id, filters, page)
    return paged(entries, total, page)


async def verify(db: Database, keyring: Keyring) -> tuple[int, list[ChainBreak]]:
    """Returns how many rows are intact, and the first break of each chain that has one."""
    async with db.tx(ALL_TENANTS, autocommit=True) as tx:
        heads = await queries.list_audit_heads(tx)
        tenants = await queries.list_tenants_without_chain(tx)
        credentials = await queries.list_credentials_without_creation(tx)
    breaks = [ChainBreak(row["tenant_id"], 0, None, "the chain is missing") for row in tenants]
    breaks += [
        ChainBreak(row["tenant_id"], 0, row["id"], "no row records its creation")
        for row in credentials
    ]
    intact_rows = 0
    for head in heads:
        count, chain_break = await _verify_chain(db, keyring, head)
        intact_rows += count
        breaks += [chain_break] if chain_break else []
    return intact_rows, breaks


async def _verify_chain(db: Database, keyring: Keyring, head: Row) -> tuple[int, ChainBreak | None]:
    tenant_id = head["tenant_id"]
    try:
        key = keyring.open(head["key"], _seal_context(tenant_id, head["id"]))
    except CannotOpen as error:
        return 0, ChainBreak(tenant_id, 0, None, f"the chain's key cannot be decrypted: {error}")
    mac, seq = _FIRST_MAC, 1
    while seq <= head["seq"]:
        async with db.tx(tenant_id, autocommit=True) as tx:
            rows = await queries.list_audit_rows(tx, tenant_id, seq, head["seq"], _BATCH_ROWS)
        for row in rows:
            if row["seq"] != seq:
                break
            if not hmac.compare_digest(row["mac"], _compute_mac(key, mac, tenant_id, row)):
                return seq - 1, ChainBreak(tenant_id, seq, row["id"], "the row was edited")
            mac, seq = row["mac"], seq + 1
        else:
            if rows:
                continue
        return seq - 1, ChainBreak(tenant_id, seq, None, "the row is missing")
    if head["mac"] != mac or not hmac.compare_digest(
        head["seal"], _compute_seal(key, head["seq"], head["mac"])
    ):
        return seq - 1, ChainBreak(tenant_id, seq, None, "rows after this one are missing")
    return seq - 1, await _find_row_outside_chain(db, tenant_id)


async def _find_row_outside_chain(db: Database, tenant_id: str) -> ChainBreak | None:
    async with db.tx(tenant_id, autocommit=True) as tx:
        row = await queries.find_row_outside_chain(tx, tenant_id)
    if row is None:
        return None
    return ChainBreak(tenant_id, row["seq"], row["id"], "the row does not belong to the chain")
