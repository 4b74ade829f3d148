"""SQL of the addresses that mails about submissions go to. Addresses are compared in lower case."""

from datetime import datetime

from app.domain.identity.accounts import api as accounts
from db import fast
from db.fast import Row
from db.session import Tx


def allowed_sql(tenant: str, address: str) -> str:
    """Returns the condition that an address is a verified member's, or confirmed."""
    return f"""({accounts.member_sql(tenant, address)} OR EXISTS (
        SELECT 1 FROM form_recipients r
        WHERE r.tenant_id = {tenant} AND r.address = lower({address})
          AND r.confirmed_at IS NOT NULL))"""


_FIND = f"""
SELECT {allowed_sql("$1", "$2")} AS is_allowed, r.address IS NOT NULL AS is_known, r.expires_at
FROM (SELECT 1) one LEFT JOIN form_recipients r ON r.tenant_id = $1 AND r.address = lower($2)
"""
_ASK = """
INSERT INTO form_recipients (tenant_id, address, token_hash, expires_at)
VALUES ($1, lower($2), $3, $4)
ON CONFLICT (tenant_id, address) DO UPDATE
SET token_hash = excluded.token_hash, expires_at = excluded.expires_at
"""
_CONFIRM = """
UPDATE form_recipients SET confirmed_at = now(), token_hash = NULL, expires_at = NULL
WHERE token_hash = $1 AND expires_at > $2 RETURNING address
"""
# The hour is that of the statement, not that of the transaction, which may wait for a lock.
_COUNT_MAIL = """
INSERT INTO form_mail_counts AS c (tenant_id, form_id, hour, mails)
VALUES ($1, $2, date_trunc('hour', clock_timestamp(), 'UTC'), 1)
ON CONFLICT (form_id) DO UPDATE
SET hour = greatest(c.hour, excluded.hour),
    mails = CASE WHEN c.hour < excluded.hour THEN 1 ELSE c.mails + 1 END,
    withheld = c.withheld + CASE WHEN c.hour >= excluded.hour AND c.mails >= $3 THEN 1 ELSE 0 END
RETURNING mails, withheld, digests, hour + interval '1 hour' AS ends_at
"""
_TAKE_WITHHELD = """
WITH count AS (
    SELECT form_id, withheld FROM form_mail_counts
    WHERE tenant_id = $1 AND form_id = $2 FOR UPDATE
), taken AS (
    UPDATE form_mail_counts c SET withheld = 0, digests = c.digests + 1
    FROM count WHERE c.form_id = count.form_id
)
SELECT withheld FROM count
"""


async def find(tx: Tx, tenant: str, address: str) -> Row:
    return _require(await fast.row(tx, tenant, _FIND, address))


async def ask(tx: Tx, tenant: str, address: str, token_hash: str, expires_at: datetime) -> None:
    await fast.execute(tx, tenant, _ASK, address, token_hash, expires_at)


async def confirm(tx: Tx, token_hash: str, now: datetime) -> str | None:
    """Of any tenant: the token determines it. Returns the address."""
    address: str | None = await (await tx.raw()).fetchval(_CONFIRM, token_hash, now)
    return address


async def count_mail(tx: Tx, tenant: str, form_id: str, limit: int) -> Row:
    """Counts a mail of the current hour; beyond the limit, a submission for the digest. The count
    is locked until the end of the transaction.
    """
    return _require(await fast.row(tx, tenant, _COUNT_MAIL, form_id, limit))


def _require(row: Row | None) -> Row:
    if row is None:
        raise LookupError("the statement has one row")
    return row


async def take_withheld(tx: Tx, tenant: str, form_id: str) -> int:
    """Returns how many submissions a digest counts, and begins the next count."""
    return int(await fast.value(tx, tenant, _TAKE_WITHHELD, form_id) or 0)
