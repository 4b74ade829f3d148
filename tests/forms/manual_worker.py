"""Processes submissions in place of a worker, so that a test decides about the order."""

from app.domain.platform.events.service import emit_dead
from app.domain.platform.mail import service as mail
from app.domain.platform.mail.rendering import MailContent
from app.services import Services
from db.models import MailMessage
from db.session import ALL_TENANTS
from tests.database import Row, fetch_rows, run_sql
from workers.runner import Runner

TEAM = "team@example.com"
_WORK = "SELECT * FROM work WHERE kind = 'forms.process' AND ref_id = $1"
_MAKE_DUE = "UPDATE work SET run_at = now() WHERE id = $1 AND state = 'pending'"
_LAST_ATTEMPT = "UPDATE work SET attempt = max_attempts - 1, run_at = now() WHERE id = $1"
_REPEAT = """
UPDATE work SET state = 'pending', run_at = now(), finished_at = NULL, lease_until = NULL
WHERE id = $1
"""


async def find_work(services: Services, submission_id: str) -> Row:
    (row,) = await fetch_rows(services, _WORK, submission_id)
    return row


async def process(services: Services, submission_id: str) -> Row:
    """Runs the work of a submission; returns its row of the ledger."""
    work = await find_work(services, submission_id)
    await run_sql(services, _MAKE_DUE, work["id"])
    runner = Runner(services, on_any_dead=emit_dead, max_consecutive=1)
    await runner.run(work["id"])
    return await find_work(services, submission_id)


async def process_again(services: Services, submission_id: str) -> Row:
    """Runs work that has finished, as if its outcome had not been recorded."""
    await run_sql(services, _REPEAT, (await find_work(services, submission_id))["id"])
    return await process(services, submission_id)


async def process_last_time(services: Services, submission_id: str) -> Row:
    """Runs the last attempt."""
    await run_sql(services, _LAST_ATTEMPT, (await find_work(services, submission_id))["id"])
    return await process(services, submission_id)


async def allow_mails(services: Services, tenant_id: str, address: str = TEAM) -> None:
    """Confirms an address, as its owner does by the link."""
    sql = "INSERT INTO form_recipients (tenant_id, address, confirmed_at) VALUES ($1, $2, now())"
    await run_sql(services, sql, tenant_id, address)


async def read_mails(services: Services, tenant_id: str) -> list[tuple[str, MailContent]]:
    """Returns the recipients and the contents of the mails that the tenant has queued."""
    sql = "SELECT id FROM mail_messages WHERE tenant_id = $1 ORDER BY id"
    rows = await fetch_rows(services, sql, tenant_id)
    async with services.db.tx(ALL_TENANTS) as tx:
        session = await tx.session()
        messages = [await session.get_one(MailMessage, row["id"]) for row in rows]
        return [
            (message.recipient, mail.open_content(services.keyring, message))
            for message in messages
        ]
