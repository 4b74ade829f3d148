"""The audit trail of a tenant's credentials: a chain of rows, each vouching for the one before.

A row's code covers its fields and the code of the row before it, under a key that is sealed like a
secret; the chain's end vouches for the last number. An edited, missing or cut-off row is found.
"""

import hashlib
import hmac
import os
import struct
from datetime import datetime

import msgspec

from app.domain.vault import queries
from app.domain.vault.schemas import Action, AuditEntry
from app.kit import clock
from app.kit.crypto import CannotOpen, Keyring, SealContext
from app.kit.ids import new_id
from app.kit.paging import Page, Paged, paged
from db.fast import Row, tenant_of
from db.models import CredentialAuditChain
from db.session import ALL_TENANTS, Database, Tx

_KEY_BYTES = 32
_START = b"\0" * 32
_BATCH = 1000


class Actor(msgspec.Struct, frozen=True):
    """Who does something with a credential, and for what."""

    type: str
    id: str | None
    ip_address: str | None = None
    integration: str | None = None


class Break(msgspec.Struct, frozen=True):
    """Where a chain does not hold."""

    tenant_id: str
    seq: int
    row_id: str | None
    problem: str


async def append(
    tx: Tx,
    keyring: Keyring,
    tenant_id: str,
    credential_id: str,
    action: Action,
    actor: Actor,
    *,
    success: bool = True,
) -> None:
    """In the caller's transaction, and before any plaintext leaves: no row, no secret."""
    head = await _head(tx, keyring, tenant_id)
    key = keyring.open(head["key"], _place(tenant_id, head["id"]))
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
    mac = _mac(key, head["mac"], tenant_id, row)
    await queries.append_audit(tx, tenant_id, row, mac, _seal(key, seq, mac))


async def _head(tx: Tx, keyring: Keyring, tenant_id: str) -> Row:
    """The end of the chain, locked: rows of one tenant are written one after the other."""
    found = await queries.audit_head(tx, tenant_id)
    while found is None:
        chain_id, key = new_id("auc"), os.urandom(_KEY_BYTES)
        sealed = keyring.seal(key, _place(tenant_id, chain_id))
        await queries.begin_audit(tx, tenant_id, chain_id, sealed, _START, _seal(key, 0, _START))
        found = await queries.audit_head(tx, tenant_id)
    return found


def _place(tenant_id: str, chain_id: str) -> SealContext:
    return SealContext.of(CredentialAuditChain.key, tenant_id, chain_id)


def _mac(key: bytes, before: bytes, tenant_id: str, row: dict[str, object] | Row) -> bytes:
    moment = row["created_at"]
    assert isinstance(moment, datetime)  # noqa: S101  # for the type alone
    parts = [before, tenant_id.encode()]
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
    parts.append(str(round(moment.timestamp() * 1_000_000)).encode())
    told = b"".join(struct.pack(">I", len(part)) + part for part in parts)
    return hmac.digest(key, told, hashlib.sha256)


def _seal(key: bytes, seq: int, mac: bytes) -> bytes:
    return hmac.digest(key, b"end" + struct.pack(">Q", seq) + mac, hashlib.sha256)


async def entries(tx: Tx, page: Page, credential_id: str | None = None) -> Paged[AuditEntry]:
    rows, total = await queries.audit_page(tx, tenant_of(tx), credential_id, page)
    names = AuditEntry.__struct_fields__
    return paged([AuditEntry(*(row[name] for name in names)) for row in rows], total, page)


async def verify(db: Database, keyring: Keyring) -> tuple[int, list[Break]]:
    """How many rows hold, and the first break of each chain that has one."""
    async with db.tx(ALL_TENANTS, autocommit=True) as tx:
        heads = await queries.audit_heads(tx)
        orphans, unborn = await queries.unchained(tx), await queries.unborn(tx)
    held, breaks = 0, [Break(row["tenant_id"], 0, None, "the chain is missing") for row in orphans]
    breaks += [
        Break(row["tenant_id"], 0, row["id"], "no row tells of its creation") for row in unborn
    ]
    for head in heads:
        count, broken = await _verify_one(db, keyring, head)
        held += count
        breaks += [broken] if broken else []
    return held, breaks


async def _verify_one(db: Database, keyring: Keyring, head: Row) -> tuple[int, Break | None]:
    tenant_id = head["tenant_id"]
    try:
        key = keyring.open(head["key"], _place(tenant_id, head["id"]))
    except CannotOpen as error:
        return 0, Break(tenant_id, 0, None, f"the chain's key does not open: {error}")
    before, expected = _START, 1
    while expected <= head["seq"]:
        async with db.tx(tenant_id, autocommit=True) as tx:
            rows = await queries.audit_between(tx, tenant_id, expected, head["seq"], _BATCH)
        for row in rows:
            if row["seq"] != expected:
                break
            if not hmac.compare_digest(row["mac"], _mac(key, before, tenant_id, row)):
                return expected - 1, Break(tenant_id, expected, row["id"], "the row was edited")
            before, expected = row["mac"], expected + 1
        else:
            if rows:
                continue
        return expected - 1, Break(tenant_id, expected, None, "the row is missing")
    if head["mac"] != before or not hmac.compare_digest(
        head["seal"], _seal(key, head["seq"], head["mac"])
    ):
        return expected - 1, Break(tenant_id, expected, None, "rows after this one are missing")
    return expected - 1, await _stray(db, tenant_id)


async def _stray(db: Database, tenant_id: str) -> Break | None:
    """A row that the chain never came to: somebody put it there."""
    async with db.tx(tenant_id, autocommit=True) as tx:
        found = await queries.stray(tx, tenant_id)
    if found is None:
        return None
    return Break(tenant_id, found["seq"], found["id"], "the row does not belong to the chain")
