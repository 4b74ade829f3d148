"""/api/v1/event-log: the list of events, its filters, and one event."""

from datetime import timedelta
from typing import Any

import pytest

from app.services import Services
from tests.assertions import refused
from tests.database import fetch_rows
from tests.platform.events.api import PATH
from tests.platform.events.log_entries import ENTRY_KEYS, NOON, LogEntry, insert_entries
from tests.platform.events.responses import read_field_errors
from tests.world import Client, World


async def _list_ids(caller: Client, **params: Any) -> list[str]:
    answer = await caller.get(PATH, params=params)
    assert answer.status_code == 200, answer.text
    return [entry["id"] for entry in answer.json()["data"]]


# The list


async def test_the_log_has_the_flat_envelope(developer: Client, services: Services) -> None:
    await insert_entries(services, developer.tenant_id, LogEntry())
    answer = await developer.get(PATH)
    assert set(answer.json()) == {"data", "total", "page", "per_page"}
    assert set(answer.json()["data"][0]) == ENTRY_KEYS
    assert [answer.json()[name] for name in ("total", "page", "per_page")] == [1, 1, 20]


async def test_an_empty_log_has_a_total_of_zero(developer: Client) -> None:
    answer = await developer.get(PATH)
    assert answer.json() == {"data": [], "total": 0, "page": 1, "per_page": 20}


async def test_an_actor_without_a_name_has_the_address(
    developer: Client, services: Services
) -> None:
    clear = "UPDATE users SET first_name = '', last_name = '' WHERE id = $1"
    await fetch_rows(services, clear, developer.user_id)
    await insert_entries(services, developer.tenant_id, LogEntry(actor_id=developer.user_id))
    [entry] = (await developer.get(PATH)).json()["data"]
    actor = {"type": "user", "id": developer.user_id, "name": developer.email}
    assert entry["actor"] == actor


async def test_an_entry_shows_the_stored_event(developer: Client, services: Services) -> None:
    cause = LogEntry(type="a.b", correlation_id="cor_1", parent_id="evt_0", data='{"n": [1, null]}')
    ids = await insert_entries(services, developer.tenant_id, cause)
    assert (await developer.get(PATH)).json()["data"] == [
        {
            "id": ids[0],
            "type": "a.b",
            "correlation_id": "cor_1",
            "parent_id": "evt_0",
            "actor": {"type": "system", "id": None, "name": None},
            "data": {"n": [1, None]},
            "created_at": "2030-05-01T12:00:00Z",
        }
    ]


async def test_the_newest_come_first(developer: Client, services: Services) -> None:
    ids = await insert_entries(services, developer.tenant_id, *[LogEntry()] * 3)
    assert await _list_ids(developer) == ids[::-1]


async def test_the_pages_hold_every_entry_once(developer: Client, services: Services) -> None:
    ids = await insert_entries(services, developer.tenant_id, *[LogEntry()] * 5)
    pages = [await _list_ids(developer, page=page, per_page=2) for page in (1, 2, 3, 4)]
    assert pages == [ids[:2:-1], ids[2:0:-1], ids[:1], []]


async def test_the_total_counts_all_pages(developer: Client, services: Services) -> None:
    await insert_entries(services, developer.tenant_id, *[LogEntry()] * 5)
    answer = await developer.get(PATH, params={"page": 2, "per_page": 2})
    assert [answer.json()[name] for name in ("total", "page", "per_page")] == [5, 2, 2]


async def test_an_invalid_page_is_named(developer: Client, subtests: pytest.Subtests) -> None:
    for name in ("page", "per_page"):
        for value in ("0", "-1", "abc", "", "99999999999999999999"):
            with subtests.test(name=name, value=value):
                answer = await developer.get(PATH, params={name: value})
                assert set(read_field_errors(answer)) == {name}


async def test_a_page_holds_at_most_a_hundred(world: World, subtests: pytest.Subtests) -> None:
    for per_page, status in [(1, 200), (100, 200), (101, 422)]:
        with subtests.test(per_page=per_page):
            developer = await world.user()
            assert (await developer.get(PATH, params={"per_page": per_page})).status_code == status


# Filters


async def test_the_log_can_be_filtered_by_type(developer: Client, services: Services) -> None:
    ids = await insert_entries(
        services, developer.tenant_id, LogEntry(type="a.one"), LogEntry(type="a.two")
    )
    assert await _list_ids(developer, event_type="a.two") == [ids[1]]


async def test_a_type_filter_matches_the_whole_type(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for event_type in ("a", "a.%", "A.ONE", "a.one "):
        with subtests.test(event_type=event_type):
            developer = await world.user()
            await insert_entries(services, developer.tenant_id, LogEntry(type="a.one"))
            assert await _list_ids(developer, event_type=event_type) == []


async def test_the_log_can_be_filtered_by_correlation_id(
    developer: Client, services: Services
) -> None:
    entries = [LogEntry(correlation_id="cor_1"), LogEntry(correlation_id="cor_2")]
    ids = await insert_entries(services, developer.tenant_id, *entries)
    assert await _list_ids(developer, correlation_id="cor_1") == [ids[0]]


async def test_a_filter_that_is_too_long_is_named(world: World, subtests: pytest.Subtests) -> None:
    for name in ("event_type", "correlation_id"):
        with subtests.test(name=name):
            developer = await world.user()
            answer = await developer.get(PATH, params={name: "x" * 201})
            assert set(read_field_errors(answer)) == {name}


def _entries_by_hour() -> list[LogEntry]:
    """Returns entries at eleven, noon and one o'clock."""
    return [LogEntry(at=NOON + timedelta(hours=hour)) for hour in (-1, 0, 1)]


_TIME_FILTERS: list[tuple[dict[str, str], list[int]]] = [
    ({"from": "2030-05-01T12:00:00Z"}, [2, 1]),
    ({"from": "2030-05-01T12:00:00.000001Z"}, [2]),
    ({"to": "2030-05-01T12:00:00Z"}, [1, 0]),
    ({"from": "2030-05-01T12:00:00Z", "to": "2030-05-01T12:00:00Z"}, [1]),
    ({"from": "2030-05-01T14:00:00+02:00"}, [2, 1]),
    ({"from": "2030-05-01T07:00:00-05:00", "to": "2030-05-01T12:30:00Z"}, [1]),
    ({"from": "2030-05-01T13:00:01Z"}, []),
    ({"from": "2030-05-01T13:00:00Z", "to": "2030-05-01T11:00:00Z"}, []),
]


async def test_the_log_can_be_filtered_by_time(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for params, expected in _TIME_FILTERS:
        with subtests.test(params=params):
            developer = await world.user()
            ids = await insert_entries(services, developer.tenant_id, *_entries_by_hour())
            assert await _list_ids(developer, **params) == [ids[index] for index in expected]


async def test_a_time_without_a_zone_is_utc_whatever_the_servers_zone(
    developer: Client, services: Services, tokyo_time: None
) -> None:
    ids = await insert_entries(services, developer.tenant_id, *_entries_by_hour())
    assert await _list_ids(developer, **{"from": "2030-05-01T12:00:00"}) == [ids[2], ids[1]]


async def test_filters_are_combined(developer: Client, services: Services) -> None:
    entries = [
        LogEntry(type="a.one", correlation_id="cor_1"),
        LogEntry(type="a.one", correlation_id="cor_2"),
        LogEntry(type="a.two", correlation_id="cor_2"),
    ]
    ids = await insert_entries(services, developer.tenant_id, *entries)
    assert await _list_ids(developer, event_type="a.one", correlation_id="cor_2") == [ids[1]]


async def test_the_total_counts_what_the_filters_match(
    developer: Client, services: Services
) -> None:
    await insert_entries(
        services, developer.tenant_id, LogEntry(type="a.one"), LogEntry(type="a.two")
    )
    answer = await developer.get(PATH, params={"event_type": "a.one"})
    assert answer.json()["total"] == 1


_INVALID_VALUES: list[str] = [
    "yesterday",
    "2030-13-01T00:00:00Z",
    "2030-02-30T00:00:00Z",
    "12:00",
    "2030-05-01T25",
]


async def test_an_invalid_time_is_refused(developer: Client, subtests: pytest.Subtests) -> None:
    for name in ("from", "to"):
        for value in _INVALID_VALUES:
            with subtests.test(name=name, value=value):
                refused(await developer.get(PATH, params={name: value}), 422, "validation_error")


async def test_an_invalid_time_names_the_query_parameter(
    world: World, subtests: pytest.Subtests
) -> None:
    for name in ("from", "to"):
        with subtests.test(name=name):
            developer = await world.user()
            answer = await developer.get(PATH, params={name: "yesterday"})
            assert set(read_field_errors(answer)) == {name}


async def test_the_earliest_and_latest_times_cause_no_server_error(
    world: World, subtests: pytest.Subtests
) -> None:
    for name in ("from", "to"):
        for value in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"):
            with subtests.test(name=name, value=value):
                developer = await world.user()
                assert (await developer.get(PATH, params={name: value})).status_code in {200, 422}


# One entry


async def test_one_entry_equals_the_listed_one(developer: Client, services: Services) -> None:
    (event_id,) = await insert_entries(services, developer.tenant_id, LogEntry(data='{"a": 1}'))
    listed_entry = (await developer.get(PATH)).json()["data"][0]
    answer = await developer.get(f"{PATH}/{event_id}")
    assert answer.status_code == 200
    assert answer.json() == listed_entry


async def test_an_entry_that_does_not_exist_is_404(developer: Client) -> None:
    refused(await developer.get(f"{PATH}/evt_nothing"), 404, "event_not_found")


# Other tenants


async def test_another_tenants_entry_is_not_found(
    developer: Client, admin: Client, services: Services
) -> None:
    (event_id,) = await insert_entries(services, admin.tenant_id, LogEntry())
    refused(await developer.get(f"{PATH}/{event_id}"), 404, "event_not_found")


async def test_another_tenants_entries_are_not_listed(
    developer: Client, admin: Client, services: Services
) -> None:
    (own_id,) = await insert_entries(services, developer.tenant_id, LogEntry())
    await insert_entries(services, admin.tenant_id, LogEntry())
    assert await _list_ids(developer) == [own_id]


async def test_super_admin_reaches_an_entry_of_any_tenant(
    super_admin: Client, admin: Client, services: Services
) -> None:
    (event_id,) = await insert_entries(services, admin.tenant_id, LogEntry())
    assert (await super_admin.get(f"{PATH}/{event_id}")).status_code == 200


async def test_a_role_without_permission_gets_403(world: World, subtests: pytest.Subtests) -> None:
    for path in ("", "/evt_nothing", "/trace/cor_nothing"):
        for role in ("agent_user", "viewer"):
            with subtests.test(path=path, role=role):
                error = refused(await (await world.user(role)).get(PATH + path), 403, "forbidden")
                assert error["details"] == {"required": "events:read", "your_role": role}
