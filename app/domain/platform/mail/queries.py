"""The mails' SQL."""

from datetime import datetime

import msgspec

from app.jobs.work import WorkKind
from db import fast, ledger
from db.session import Tx

_ADD_WORK = ledger.insert_sql(
    "unnest($2::text[], $3::text[]) WITH ORDINALITY AS m(id, work_id, number)",
    tenant_id="$1::text",
    id="m.work_id",
    kind="$7::text",
    ref_id="m.id",
    dedupe_key="m.id",
    max_attempts="$8::int",
    correlation_id="$9::text",
    cause_event_id="$10::text",
    run_at="coalesce($12::timestamptz, now())",
    dispatched_at="CASE WHEN m.number <= $11 AND $12::timestamptz IS NULL THEN now() END",
)
# One statement for any number of mails and the work of sending them.
_ADD = f"""
WITH mails AS (
    INSERT INTO mail_messages (tenant_id, id, recipient, subject, body)
    SELECT $1::text, m.id, m.recipient, m.subject, m.body
    FROM unnest($2::text[], $4::text[], $5::text[], $6::bytea[])
         AS m(id, recipient, subject, body)
)
{_ADD_WORK}
"""


class NewMail(msgspec.Struct, frozen=True):
    id: str
    work_id: str
    recipient: str
    subject: str
    body: bytes


class Cause(msgspec.Struct, frozen=True):
    """The chain that the work of sending belongs to."""

    correlation_id: str
    event_id: str | None


async def add(
    tx: Tx,
    tenant: str,
    mails: list[NewMail],
    kind: WorkKind,
    cause: Cause,
    woken: int,
    run_at: datetime | None,
) -> None:
    """Adds mails and their work, due at once or at `run_at`. The caller wakes workers for the first
    ones; pollers find the rest.
    """
    await fast.execute(
        tx,
        tenant,
        _ADD,
        [mail.id for mail in mails],
        [mail.work_id for mail in mails],
        [mail.recipient for mail in mails],
        [mail.subject for mail in mails],
        [mail.body for mail in mails],
        kind.name,
        kind.max_attempts,
        cause.correlation_id,
        cause.event_id,
        woken,
        run_at,
    )
