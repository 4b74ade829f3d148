"""Mails about submissions: to whom, and how many."""

import asyncio
import re
from datetime import timedelta
from typing import Any

import httpx
import pytest

from app.domain.forms.submissions.submission_mails import MAX_PER_HOUR
from app.kit import clock
from app.kit.ids import new_id
from app.services import Services
from tests.assertions import refused
from tests.database import fetch_rows, run_sql
from tests.forms.api import get_form, request_form, submit, update_form
from tests.forms.manual_worker import allow_mails, process, read_mails
from tests.world import Client, World
from workers.runner import Runner

_CONFIRM = "/api/v1/public/form-recipients/confirm"


def _address() -> str:
    return f"{new_id('team')}@Example.com"


def _mail_to(address: str | None) -> dict[str, Any]:
    return {"settings": {"notifications": {"email": address}}}


async def _confirm(client: Client, token: object) -> httpx.Response:
    return await client.post(_CONFIRM, {"token": token})


async def _read_tokens(services: Services, tenant_id: str) -> list[str]:
    """Returns the tokens of the links that were mailed."""
    mails = await read_mails(services, tenant_id)
    pattern = re.compile(r"/confirm-recipient\?token=(\S+)")
    return [match[1] for _, content in mails if (match := pattern.search(content.text))]


async def _submit_and_process(
    services: Services, visitor: Client, form: dict[str, Any], count: int = 1
) -> None:
    for _ in range(count):
        await process(services, await submit(visitor, form, {"name": "Ada"}))


# To whom


async def test_an_address_gets_mails_once_its_owner_has_confirmed_it(
    developer: Client, anonymous: Client, services: Services
) -> None:
    address = _address()
    form = await request_form(developer, **_mail_to(address))
    assert (await get_form(developer, form))["unconfirmed_emails"] == [address]
    await _submit_and_process(services, anonymous, form)
    ((recipient, content),) = await read_mails(services, developer.tenant_id)
    assert recipient == address
    # Nothing that the tenant wrote goes to an address that did not agree.
    assert form["name"] not in content.subject + content.text
    assert developer.email in content.text
    # Saving it again mails no second link.
    await update_form(developer, form, **_mail_to(address.lower()))
    (token,) = await _read_tokens(services, developer.tenant_id)
    assert (await _confirm(anonymous, token)).status_code == 200
    assert (await get_form(developer, form))["unconfirmed_emails"] == []
    await _submit_and_process(services, anonymous, form)
    assert (await read_mails(services, developer.tenant_id))[1][1].subject.startswith("New sub")
    refused(await _confirm(anonymous, token), 422, "validation_error")


async def test_a_confirmation_holds_for_all_forms_of_one_tenant(
    world: World, anonymous: Client, services: Services
) -> None:
    first, second = await world.user("agent_developer"), await world.user("agent_developer")
    address = _address()
    await request_form(first, **_mail_to(address))
    (token,) = await _read_tokens(services, first.tenant_id)
    await _confirm(anonymous, token)
    another = await request_form(first, **_mail_to(address))
    assert another["unconfirmed_emails"] == []
    assert len(await read_mails(services, first.tenant_id)) == 1
    foreign = await request_form(second, **_mail_to(address))
    assert foreign["unconfirmed_emails"] == [address]


async def test_the_address_of_a_verified_member_needs_no_confirmation(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    developer, stranger = await world.user("agent_developer"), await world.user("agent_developer")
    member = await world.user("viewer", developer.tenant_id)
    sql = "UPDATE users SET email_verified = $2, status = $3 WHERE email = $1"
    cases = [
        (member.email, True, "active", True),
        (member.email.upper(), True, "active", True),
        (member.email, False, "active", False),
        (member.email, True, "inactive", False),
        (stranger.email, True, "active", False),
    ]
    for address, is_verified, status, is_confirmed in cases:
        with subtests.test(address=address, is_verified=is_verified, status=status):
            await run_sql(services, sql, address.lower(), is_verified, status)
            form = await request_form(developer, **_mail_to(address))
            assert form["unconfirmed_emails"] == ([] if is_confirmed else [address])


async def test_a_link_works_once_and_for_a_week(
    developer: Client, anonymous: Client, services: Services, subtests: pytest.Subtests
) -> None:
    await request_form(developer, **_mail_to(_address()))
    (token,) = await _read_tokens(services, developer.tenant_id)
    for wrong in ("x", token[:-1], token + "x"):
        with subtests.test(token=wrong):
            error = refused(await _confirm(anonymous, wrong), 422, "validation_error")
            assert set(error["details"]) == {"token"}
    with clock.frozen(clock.now() + timedelta(days=7, seconds=1)):
        refused(await _confirm(anonymous, token), 422, "validation_error")
    (row,) = await fetch_rows(
        services, "SELECT * FROM form_recipients WHERE tenant_id = $1", developer.tenant_id
    )
    assert token not in str(dict(row))
    assert (await _confirm(anonymous, token)).status_code == 200


async def test_one_mailbox_gets_few_links(world: World, services: Services) -> None:
    """Also from many tenants, and with texts after a plus sign."""
    local_part = new_id("victim")
    owners = [await world.user("agent_developer") for _ in range(7)]
    for number, owner in enumerate(owners):
        form = await request_form(owner, **_mail_to(f"{local_part}+{number}@example.com"))
        assert len(form["unconfirmed_emails"]) == 1
    counts = [len(await read_mails(services, owner.tenant_id)) for owner in owners]
    assert sum(counts) == 5


async def test_a_form_from_before_addresses_were_confirmed_asks_once(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form = await request_form(developer)
    sql = (
        "UPDATE forms SET settings = jsonb_set(settings, '{notifications,email}', $2) WHERE id = $1"
    )
    await run_sql(services, sql, form["id"], f'"{_address()}"')
    await _submit_and_process(services, anonymous, form, 3)
    assert len(await read_mails(services, developer.tenant_id)) == 1
    assert len(await _read_tokens(services, developer.tenant_id)) == 1


async def test_no_mail_is_queued_without_an_address(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form = await request_form(developer)
    await _submit_and_process(services, anonymous, form)
    assert await read_mails(services, developer.tenant_id) == []


# How many


async def test_submissions_beyond_the_limit_of_an_hour_are_counted_by_a_digest(
    developer: Client, world: World, services: Services
) -> None:
    form = await _create_full_form(developer, services)
    visitors = [world.anonymous() for _ in range(4)]
    # Workers process them at the same time.
    ids = [await submit(visitor, form, {"name": "Ada"}) for visitor in visitors]
    await asyncio.gather(*(process(services, submission_id) for submission_id in ids))
    mails = await read_mails(services, developer.tenant_id)
    assert [content.subject for _, content in mails] == ["New submission: Contact"]
    (work,) = await _list_digests(services, form)
    assert work["run_at"] > clock.now()
    assert (work["run_at"].minute, work["run_at"].second) == (0, 0)
    # A worker that is killed before the end, and two at once, send one mail.
    await _run_digest(services, work["id"])
    await _run_digest(services, work["id"])
    _, (_, digest) = await read_mails(services, developer.tenant_id)
    assert digest.subject == "3 more submissions: Contact"
    assert f"/api/v1/forms/{form['id']}/submissions" in digest.text


async def test_what_is_withheld_after_a_digest_is_in_the_next_one(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form = await _create_full_form(developer, services, sent=MAX_PER_HOUR)
    await _submit_and_process(services, anonymous, form, 2)
    (first,) = await _list_digests(services, form)
    await _run_digest(services, first["id"])
    await _submit_and_process(services, anonymous, form)
    second = (await _list_digests(services, form))[1]
    await _run_digest(services, second["id"])
    mails = await read_mails(services, developer.tenant_id)
    assert [content.subject for _, content in mails] == [
        "2 more submissions: Contact",
        "1 more submission: Contact",
    ]


async def test_the_next_hour_begins_with_mails(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form = await _create_full_form(developer, services, sent=MAX_PER_HOUR)
    await _submit_and_process(services, anonymous, form)
    await run_sql(
        services,
        "UPDATE form_mail_counts SET hour = hour - interval '1 hour' WHERE form_id = $1",
        form["id"],
    )
    await _submit_and_process(services, anonymous, form)
    (work,) = await _list_digests(services, form)
    await _run_digest(services, work["id"])
    mails = await read_mails(services, developer.tenant_id)
    assert [content.subject for _, content in mails] == [
        "New submission: Contact",
        "1 more submission: Contact",
    ]


async def _create_full_form(
    client: Client, services: Services, sent: int = MAX_PER_HOUR - 1
) -> dict[str, Any]:
    """Returns a form that has sent so many mails in this hour."""
    address = _address().lower()
    await allow_mails(services, client.tenant_id, address)
    form = await request_form(client, **_mail_to(address))
    sql = """
    INSERT INTO form_mail_counts (tenant_id, form_id, hour, mails)
    VALUES ($1, $2, date_trunc('hour', now(), 'UTC'), $3)
    """
    await run_sql(services, sql, client.tenant_id, form["id"], sent)
    return form


async def _list_digests(services: Services, form: dict[str, Any]) -> list[Any]:
    sql = "SELECT * FROM work WHERE kind = 'forms.digest' AND ref_id = $1 ORDER BY id"
    return await fetch_rows(services, sql, form["id"])


async def _run_digest(services: Services, work_id: str) -> None:
    await run_sql(
        services, "UPDATE work SET run_at = now() WHERE id = $1 AND state = 'pending'", work_id
    )
    await asyncio.gather(*(Runner(services).run(work_id) for _ in range(2)))
