"""GET /api/v1/notifications/stream over a socket."""

from contextlib import AsyncExitStack

import httpx

from app.kit.sse import MAX_STREAMS_PER_USER
from app.services import Services
from tests.assertions import refused, wait_until
from tests.event_reader import open_events
from tests.messaging.notifications.center.api import (
    PATH,
    list_notifications,
    send_by_hand,
    send_test,
)
from tests.messaging.notifications.center.event_reader import open_stream
from tests.messaging.notifications.center.post_office import PostOffice, add_notification
from tests.server import Server
from tests.world import Client, World


async def _request(server: Server, caller: Client) -> httpx.Response:
    """Returns the answer with its body where it is no stream."""
    async with open_events(server, caller, f"{PATH}/stream") as answer:
        return answer


async def test_a_new_notification_arrives_as_the_list_shows_it(
    server: Server, developer: Client
) -> None:
    async with open_stream(server, developer) as reader:
        await send_test(developer, "in_app", message="Does this arrive?")
        notification = await reader.read_notification()
    assert [notification] == await list_notifications(developer)


async def test_a_message_that_a_worker_dispatches_arrives(
    server: Server, office: PostOffice
) -> None:
    async with open_stream(server, office.admin) as reader:
        await send_by_hand(office.admin, role="tenant_admin", title="One")
        assert (await reader.read_notification())["title"] == "One"


async def test_a_stream_begins_with_what_is_new(
    server: Server, developer: Client, services: Services
) -> None:
    await add_notification(services, developer, "Old")
    async with open_stream(server, developer) as reader:
        await send_test(developer, "in_app", message="New")
        assert (await reader.read_notification())["message"] == "New"


async def test_a_stream_continues_after_the_last_one_without_gaps(
    server: Server, developer: Client
) -> None:
    async with open_stream(server, developer) as reader:
        for text in ("1", "2"):
            await send_test(developer, "in_app", message=text)
        await reader.read_notification()
        last = await reader.read_notification()
    for text in ("3", "4"):
        await send_test(developer, "in_app", message=text)
    async with open_stream(server, developer, last["id"]) as reader:
        # The one before the last one comes again: its time is less than 30 seconds ago.
        missed = [await reader.read_notification() for _ in range(3)]
        await send_test(developer, "in_app", message="5")
        missed.append(await reader.read_notification())
    assert [item["message"] for item in missed] == ["1", "3", "4", "5"]


async def test_a_stream_after_an_unknown_or_foreign_one_begins_with_what_is_new(
    server: Server, world: World, developer: Client, services: Services
) -> None:
    other = await world.user("viewer", developer.tenant_id)
    foreign_id = await add_notification(services, other, seconds_ago=100)
    await add_notification(services, developer, "Old", seconds_ago=50)
    for last_id in (foreign_id, "ntf_unknown"):
        async with open_stream(server, developer, last_id) as reader:
            await send_test(developer, "in_app", message=last_id)
            assert (await reader.read_notification())["message"] == last_id


async def test_a_stream_has_no_notification_of_another_user(
    server: Server, world: World, developer: Client
) -> None:
    for role in ("tenant_admin", "super_admin"):
        other = await world.user(role, developer.tenant_id)
        async with open_stream(server, other) as reader:
            await send_test(developer, "in_app", message="Foreign")
            await send_test(other, "in_app", message="Own")
            assert (await reader.read_notification())["message"] == "Own"


async def test_a_user_has_a_limited_number_of_streams(
    server: Server, developer: Client, admin: Client
) -> None:
    async with AsyncExitStack() as streams:
        for _ in range(MAX_STREAMS_PER_USER):
            await streams.enter_async_context(open_stream(server, developer))
        answer = await _request(server, developer)
        refused(answer, 429, "rate_limited")
        assert answer.headers["retry-after"] == "5"
        # Another user's streams are counted apart.
        await streams.enter_async_context(open_stream(server, admin))

    async def is_open_again() -> bool:
        return (await _request(server, developer)).status_code == 200

    await wait_until(is_open_again)


async def test_a_stream_needs_a_session(server: Server, anonymous: Client) -> None:
    refused(await _request(server, anonymous), 401, "unauthorized")
