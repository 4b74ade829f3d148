"""Signs of abuse are marked and never dropped; too many requests of an address are refused."""

from collections.abc import Iterator

import pytest

from app.services import Services
from tests.assertions import refused, wait_until
from tests.changed_settings import changed_settings
from tests.database import run_sql
from tests.forms.api import (
    FILE,
    PUBLIC,
    TEXT,
    count_submissions,
    create_form,
    get_submission,
    list_events,
    send,
    send_as_user,
    submit,
    upload,
)
from tests.world import Client, World


async def test_a_honeypot_with_a_value_marks_the_submission(
    developer: Client, anonymous: Client
) -> None:
    form = await create_form(developer)
    bot = await submit(anonymous, form, {"name": "Ada"}, honeypot="https://spam.example.com")
    human = await submit(anonymous, form, {"name": "Bob"}, honeypot="")
    flags = [(await get_submission(developer, form, item))["flags"] for item in (bot, human)]
    assert flags == [["honeypot"], []]
    events = await list_events(developer, "form.submission.created")
    assert [event["flags"] for event in events] == [[], ["honeypot"]]


async def test_a_visitor_cannot_tell_a_marked_submission(
    developer: Client, anonymous: Client
) -> None:
    form = await create_form(developer)
    marked = (await send(anonymous, form, {"name": "Ada"}, honeypot="x")).json()
    plain = (await send(anonymous, form, {"name": "Bob"})).json()
    marked["data"].pop("submission_id")
    plain["data"].pop("submission_id")
    assert marked == plain


async def test_the_same_answers_of_an_address_are_marked_for_a_day(
    developer: Client, world: World, services: Services
) -> None:
    form, other = await create_form(developer), await create_form(developer)
    first, second = world.anonymous(), world.anonymous()
    ids = [
        await submit(first, form, {"name": "Ada", "email": "ada@example.com"}),
        # The order of keys and the look of the address do not matter.
        await submit(first, form, {"email": " ada@EXAMPLE.com", "name": "Ada"}),
        await submit(first, form, {"name": "Bob"}),
        await submit(second, form, {"name": "Ada", "email": "ada@example.com"}),
    ]
    flags = [(await get_submission(developer, form, item))["flags"] for item in ids]
    assert flags == [[], ["repeat"], [], []]
    elsewhere = await submit(first, other, {"name": "Ada", "email": "ada@example.com"})
    assert (await get_submission(developer, other, elsewhere))["flags"] == []
    sql = "UPDATE form_submissions SET created_at = created_at - interval '1 day' WHERE id = $1"
    await run_sql(services, sql, ids[2])
    later = await submit(first, form, {"name": "Bob"})
    assert (await get_submission(developer, form, later))["flags"] == []
    both = await submit(first, form, {"name": "Bob"}, honeypot="x")
    assert (await get_submission(developer, form, both))["flags"] == ["honeypot", "repeat"]
    assert await count_submissions(developer, form) == 6


@pytest.fixture
def strict(world: World) -> Iterator[World]:
    """The application with three submissions per minute, address and form."""
    with changed_settings(world.services, form_submissions_per_minute=3):
        yield world


async def test_an_address_submits_a_form_so_many_times_a_minute(strict: World) -> None:
    owner = await strict.user("agent_developer")
    form, other = await create_form(owner), await create_form(owner)
    visitor = strict.anonymous()
    for number in range(3):
        # Answers that are not valid count too.
        answer = await send(visitor, form, {"name": "Ada"} if number else {})
        assert answer.status_code in {201, 400}
    answer = await send(visitor, form, {"name": "Ada"})
    error = refused(answer, 429, "rate_limit_exceeded")
    wait = int(answer.headers["retry-after"])
    assert 1 <= wait <= 60
    assert error["details"] == {"limit": 3, "window": 60, "retry_after": wait}
    await submit(strict.anonymous(), form, {"name": "Ada"})
    await submit(visitor, other, {"name": "Ada"})
    assert await count_submissions(owner, form) == 3


async def test_one_address_uses_its_share_and_others_are_served(
    world: World, services: Services
) -> None:
    owner = await world.user("agent_developer", await world.tenant("free"))
    form = await create_form(owner)
    visitor, other, path = world.anonymous(), world.anonymous(), f"{PUBLIC}/{form['slug']}"
    statuses = [(await visitor.get(path)).status_code for _ in range(40)]
    assert statuses == [200] * 30 + [429] * 10
    answer = await visitor.get(path)
    error = refused(answer, 429, "rate_limited")
    wait = int(answer.headers["retry-after"])
    assert error["details"] == {"limit": 30, "window": 60, "retry_after": wait}
    assert await _read_units(services, owner) == 30
    assert (await other.get(path)).status_code == 200
    await submit(other, form, {"name": "Ada"})


async def test_an_address_beyond_a_limit_of_the_form_costs_the_tenant_nothing(
    strict: World,
) -> None:
    owner = await strict.user("agent_developer")
    form, visitor = await create_form(owner), strict.anonymous()
    for _ in range(5):
        await send(visitor, form, {"name": "Ada"})
    assert await _read_units(strict.services, owner) == 3 * 2


async def test_refused_answers_cost_one_unit(world: World, services: Services) -> None:
    owner = await world.user("agent_developer")
    form = await create_form(owner)
    refused(await send(world.anonymous(), form, {}), 400, "validation_error")

    async def is_refunded() -> bool:
        return await _read_units(services, owner) == 1

    await wait_until(is_refunded)


async def _read_units(services: Services, owner: Client) -> int:
    """Returns the units that the visitors of the tenant's forms have used of the minute."""
    return int(await services.redis.hget(f"parley:limit:forms:{owner.tenant_id}", "minute") or 0)


async def test_uploads_and_submissions_are_counted_each_on_its_own(strict: World) -> None:
    owner = await strict.user("agent_developer")
    form = await create_form(owner, TEXT, FILE)
    visitor = strict.anonymous()
    for _ in range(3):
        assert (await upload(visitor, form, b"hello")).status_code == 201
    refused(await upload(visitor, form, b"hello"), 429, "rate_limit_exceeded")
    await submit(visitor, form, {"name": "Ada"})


async def test_a_form_that_does_not_exist_costs_nothing_of_the_limit(strict: World) -> None:
    visitor = strict.anonymous()
    for _ in range(5):
        refused(await send(visitor, {"slug": "none"}, {}), 404, "form_not_found")


async def test_users_are_not_limited_by_their_address(strict: World) -> None:
    owner = await strict.user("agent_developer")
    form = await create_form(owner)
    for number in range(5):
        answer = await send_as_user(owner, form, {"name": f"Ada {number}"})
        assert answer.status_code == 201
