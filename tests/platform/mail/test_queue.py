"""Queued mails, and the job that sends them."""

from collections import Counter

import asyncpg
import pytest

from app.domain.platform.mail import service as mail
from app.domain.platform.mail.rendering import MailContent
from app.services import Services
from db.models import MailMessage
from db.session import ALL_TENANTS
from tests.assertions import until
from tests.database import fetch_rows, run_sql
from tests.lengths import rounds
from tests.platform.mail.factories import CONTENT, create_runner, queue_mail, read_work
from tests.platform.mail.inbox import WRONG_PASSWORD, Inbox
from tests.platform.mail.messages import parse, read_part
from tests.ports import free_port
from tests.running_worker import run_worker
from tests.world import World


async def _send(
    services: Services, inbox: Inbox, mail_id: str, login: str = ""
) -> dict[str, object]:
    """Runs the job of a mail; returns its row of the ledger."""
    runner = create_runner(services, inbox.configure(services.settings, login))
    await runner.run((await read_work(services, mail_id))["id"])
    return await read_work(services, mail_id)


async def _queue(services: Services, tenant_id: str, recipient: str = "ada@example.com") -> str:
    async with services.db.tx(tenant_id) as tx:
        return await queue_mail(tx, services, tenant_id, recipient)


async def test_a_sent_mail_keeps_no_content(world: World, services: Services, inbox: Inbox) -> None:
    mail_id = await _queue(services, await world.tenant())
    assert (await _send(services, inbox, mail_id))["state"] == "done"
    (received,) = inbox.received
    assert parse(received.content)["Subject"] == CONTENT.subject
    assert read_part(received.content) == CONTENT.text
    assert read_part(received.content, "html") == CONTENT.html
    sql = "SELECT body, sent_at IS NOT NULL AS is_sent FROM mail_messages WHERE id = $1"
    assert await fetch_rows(services, sql, mail_id) == [{"body": None, "is_sent": True}]


async def test_a_mail_that_an_older_version_queued_is_sent_as_plain_text(
    world: World, services: Services, inbox: Inbox
) -> None:
    tenant_id = await world.tenant()
    mail_id = await _queue(services, tenant_id)
    text = "Hello,\n\nhttps://parley.test/register?token=old\n"
    body = services.keyring.seal(text.encode(), mail.seal_context(tenant_id, mail_id))
    await run_sql(services, "UPDATE mail_messages SET body = $2 WHERE id = $1", mail_id, body)
    assert (await _send(services, inbox, mail_id))["state"] == "done"
    message = parse(inbox.received[0].content)
    assert message.get_content_type() == "text/plain"
    assert read_part(inbox.received[0].content) == text


async def test_only_a_mail_that_is_refused_for_good_is_given_up(
    world: World, services: Services, inbox: Inbox, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, str, str, int]] = [
        ("nobody@example.com", "", "dead", 550),
        ("later@example.com", "", "pending", 451),
        # The operator can correct the password.
        ("ada@example.com", f"ann:{WRONG_PASSWORD}@", "pending", 535),
    ]
    for recipient, login, state, code in cases:
        with subtests.test(recipient=recipient, login=login):
            mail_id = await _queue(services, await world.tenant(), recipient)
            row = await _send(services, inbox, mail_id, login)
            await run_sql(services, "DELETE FROM work WHERE ref_id = $1", mail_id)
            reason = f"the mail cannot be sent: the mail server answered {code}"
            assert (row["state"], row["last_error"]) == (state, reason)


async def test_a_mail_is_retried_and_stays_sealed_while_the_mail_server_is_unreachable(
    world: World, services: Services
) -> None:
    mail_id = await _queue(services, await world.tenant())
    row = await _send(services, Inbox(free_port()), mail_id, "ann:secret@")
    (message,) = await fetch_rows(services, "SELECT body FROM mail_messages WHERE id = $1", mail_id)
    await run_sql(services, "DELETE FROM work WHERE ref_id = $1", mail_id)
    reason = "the mail cannot be sent: no session with the mail server: SMTPConnectError"
    assert (row["state"], row["last_error"]) == ("pending", reason)
    assert b"hunter2" not in message["body"]


# Many at once


async def test_each_of_many_mails_is_sent_once(
    world: World, services: Services, inbox: Inbox
) -> None:
    tenant_id = await world.tenant()
    recipients = [f"user{number}@{tenant_id}.example" for number in range(rounds(50, 500))]
    async with services.db.tx(tenant_id) as tx:
        await mail.queue_many(
            tx,
            services.keyring,
            tenant_id=tenant_id,
            mails=[(recipient, MailContent(recipient, "t\n", "h\n")) for recipient in recipients],
        )

    def list_received() -> list[str]:
        return [item.recipients[0] for item in inbox.received if tenant_id in item.recipients[0]]

    async with run_worker(inbox.configure(services.settings), "default"):
        await until(lambda: len(list_received()) >= len(recipients), 60)
    assert Counter(list_received()) == Counter(recipients)
    subjects = {parse(item.content)["Subject"]: item.recipients for item in inbox.received}
    assert all(subjects[recipient] == [recipient] for recipient in recipients)


async def test_many_mails_are_one_statement_and_wake_few_workers(
    world: World, services: Services
) -> None:
    tenant_id, statements = await world.tenant(), list[str]()
    mails = [(f"user{number}@example.com", CONTENT) for number in range(100)]
    async with services.db.tx(tenant_id) as tx:
        # The first one reads the types of the parameters.
        await queue_mail(tx, services, tenant_id)
        tx.after_commit.clear()
        connection: asyncpg.Connection = await tx.raw()
        with connection.query_logger(lambda record: statements.append(record.query)):
            mail_ids = await mail.queue_many(
                tx, services.keyring, tenant_id=tenant_id, mails=mails, cause_event_id="evt_1"
            )
        rows = await connection.fetch(
            "SELECT ref_id, cause_event_id, dispatched_at FROM work WHERE ref_id = ANY($1)",
            mail_ids,
        )
        wake_ups = len(tx.after_commit)
        await tx.rollback()
    assert len(statements) == 1
    assert {row["cause_event_id"] for row in rows} == {"evt_1"}
    # The rows that nobody wakes a worker for are left to the pollers.
    woken = {row["ref_id"] for row in rows if row["dispatched_at"] is not None}
    assert (woken, wake_ups) == (set(mail_ids[:32]), 32)


async def test_ids_are_in_the_order_of_the_mails(world: World, services: Services) -> None:
    tenant_id = await world.tenant()
    mails = [(f"user{number}@example.com", CONTENT) for number in range(5)]
    async with services.db.tx(tenant_id) as tx:
        mail_ids = await mail.queue_many(tx, services.keyring, tenant_id=tenant_id, mails=mails)
        session = await tx.session()
        messages = [await session.get_one(MailMessage, mail_id) for mail_id in mail_ids]
        await tx.rollback()
    assert [message.recipient for message in messages] == [recipient for recipient, _ in mails]
    assert {mail.open_content(services.keyring, message) for message in messages} == {CONTENT}


async def test_no_mails_are_no_statement(services: Services) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        assert await mail.queue_many(tx, services.keyring, tenant_id="ten_1", mails=[]) == []
        assert tx.after_commit == []
