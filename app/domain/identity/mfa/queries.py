"""SQL of authenticator devices and recovery codes."""

from datetime import datetime

from app.kit.ids import new_id
from db import fast
from db.fast import Row
from db.session import Tx

_LIST_SECRETS = """
SELECT id, secret FROM mfa_devices
WHERE tenant_id = $1 AND user_id = $2 AND (confirmed_at IS NULL) = $3 ORDER BY id
"""
_LIST_CONFIRMED = """
SELECT id, name, created_at, last_used_at FROM mfa_devices
WHERE tenant_id = $1 AND user_id = $2 AND confirmed_at IS NOT NULL ORDER BY id
"""
_ADD_DEVICE = """
INSERT INTO mfa_devices (tenant_id, id, user_id, name, secret) VALUES ($1, $2, $3, $4, $5)
"""
# Each step is accepted once. The stored steps reach further back than the accepted ones.
_USE_STEP = """
UPDATE mfa_devices
SET used_steps = ARRAY(SELECT s FROM unnest(used_steps) AS s WHERE s > $4 - 10) || $4::bigint,
    last_used_at = $5
WHERE tenant_id = $1 AND user_id = $2 AND id = $3 AND NOT $4 = ANY(used_steps)
"""
_CONFIRM_DEVICE = """
UPDATE mfa_devices SET confirmed_at = $4, updated_at = $4, name = coalesce($5, name)
WHERE tenant_id = $1 AND user_id = $2 AND id = $3 AND confirmed_at IS NULL
"""
_REMOVE_DEVICE = """
DELETE FROM mfa_devices
WHERE tenant_id = $1 AND user_id = $2 AND id = $3 AND confirmed_at IS NOT NULL
"""
_REMOVE_PENDING_DEVICES = """
DELETE FROM mfa_devices WHERE tenant_id = $1 AND user_id = $2 AND confirmed_at IS NULL
"""
_REMOVE_DEVICES = "DELETE FROM mfa_devices WHERE tenant_id = $1 AND user_id = $2"

_ADD_CODES = """
INSERT INTO recovery_codes (tenant_id, id, user_id, code_hash, is_pending)
SELECT $1, id, $2, code_hash, $3 FROM unnest($4::text[], $5::text[]) AS t (id, code_hash)
"""
_USE_CODE = """
UPDATE recovery_codes SET used_at = $4
WHERE tenant_id = $1 AND user_id = $2 AND code_hash = $3 AND used_at IS NULL AND NOT is_pending
"""
_REMOVE_CODES = """
DELETE FROM recovery_codes
WHERE tenant_id = $1 AND user_id = $2 AND ($3::boolean IS NULL OR is_pending = $3)
"""
_CONFIRM_CODES = """
UPDATE recovery_codes SET is_pending = false WHERE tenant_id = $1 AND user_id = $2 AND is_pending
"""
_STATUS = """
SELECT u.mfa_enabled AS enabled,
       (SELECT count(*) FROM mfa_devices d
        WHERE d.tenant_id = $1 AND d.user_id = $2 AND d.confirmed_at IS NOT NULL) AS devices_count,
       (SELECT count(*) FROM recovery_codes c
        WHERE c.tenant_id = $1 AND c.user_id = $2 AND c.used_at IS NULL
          AND NOT c.is_pending) AS codes_left
FROM users u WHERE u.tenant_id = $1 AND u.id = $2
"""


async def list_secrets(tx: Tx, tenant: str, user_id: str, *, pending: bool) -> list[Row]:
    return await fast.rows(tx, tenant, _LIST_SECRETS, user_id, pending)


async def list_confirmed(tx: Tx, tenant: str, user_id: str) -> list[Row]:
    return await fast.rows(tx, tenant, _LIST_CONFIRMED, user_id)


async def add_device(tx: Tx, tenant: str, *values: object) -> None:
    await fast.execute(tx, tenant, _ADD_DEVICE, *values)


async def use_step(
    tx: Tx, tenant: str, user_id: str, device_id: str, step: int, at: datetime
) -> bool:
    return await fast.execute(tx, tenant, _USE_STEP, user_id, device_id, step, at) == 1


async def confirm_device(
    tx: Tx, tenant: str, user_id: str, device_id: str, at: datetime, name: str | None
) -> bool:
    return await fast.execute(tx, tenant, _CONFIRM_DEVICE, user_id, device_id, at, name) == 1


async def remove_device(tx: Tx, tenant: str, user_id: str, device_id: str) -> bool:
    return await fast.execute(tx, tenant, _REMOVE_DEVICE, user_id, device_id) == 1


async def remove_pending(tx: Tx, tenant: str, user_id: str) -> None:
    await fast.execute(tx, tenant, _REMOVE_PENDING_DEVICES, user_id)
    await fast.execute(tx, tenant, _REMOVE_CODES, user_id, True)  # noqa: FBT003  # is_pending


async def remove_all(tx: Tx, tenant: str, user_id: str) -> None:
    await fast.execute(tx, tenant, _REMOVE_DEVICES, user_id)
    await fast.execute(tx, tenant, _REMOVE_CODES, user_id, None)


async def add_codes(tx: Tx, tenant: str, user_id: str, hashes: list[str], *, pending: bool) -> None:
    ids = [new_id("rec") for _ in hashes]
    await fast.execute(tx, tenant, _ADD_CODES, user_id, pending, ids, hashes)


async def confirm_codes(tx: Tx, tenant: str, user_id: str) -> None:
    """Replaces the confirmed recovery codes by the pending ones."""
    await fast.execute(tx, tenant, _REMOVE_CODES, user_id, False)  # noqa: FBT003  # is_pending
    await fast.execute(tx, tenant, _CONFIRM_CODES, user_id)


async def replace_codes(tx: Tx, tenant: str, user_id: str, hashes: list[str]) -> None:
    await fast.execute(tx, tenant, _REMOVE_CODES, user_id, False)  # noqa: FBT003  # is_pending
    await add_codes(tx, tenant, user_id, hashes, pending=False)


async def use_recovery_code(
    tx: Tx, tenant: str, user_id: str, code_hash: str, at: datetime
) -> bool:
    return await fast.execute(tx, tenant, _USE_CODE, user_id, code_hash, at) == 1


async def find_status(tx: Tx, tenant: str, user_id: str) -> Row | None:
    return await fast.row(tx, tenant, _STATUS, user_id)
