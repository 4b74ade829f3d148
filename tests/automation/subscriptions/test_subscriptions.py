"""/api/v1/event-subscriptions: create, read, list, update and delete."""

from datetime import datetime
from typing import Any

import pytest

from app.domain.automation.subscriptions import queries
from app.kit.ids import new_id
from app.services import Services
from tests.assertions import refused
from tests.automation.subscriptions.factories import (
    KEYS,
    PATH,
    WORKFLOW,
    create_draft,
    create_subscription,
    find_draft,
    list_ids,
    read_subscription,
    update_subscription,
)
from tests.database import run_sql
from tests.platform.events.database import load_events
from tests.platform.events.responses import read_field_errors
from tests.world import Client, World

OWN_ADDRESS = {"action_type": "webhook", "action_config": {"url": "https://example.com/hook"}}
NOTIFICATION = {
    "action_type": "notification",
    "action_config": {"role": "tenant_admin", "title": "Look", "message": "An agent!"},
}


# Create


async def test_a_new_subscription_has_its_fields_and_counters(developer: Client) -> None:
    body = {
        **WORKFLOW,
        "action_config": {"workflow_id": await find_draft(developer)},
        "filters": {"name": "Ada", "status": {"in": ["draft"]}},
        "active": False,
    }
    answer = await developer.post(PATH, body)
    assert answer.status_code == 201
    subscription = answer.json()
    assert set(subscription) == KEYS
    assert subscription["id"].startswith("sub_")
    assert {name: subscription[name] for name in body} == body
    assert (subscription["last_triggered_at"], subscription["trigger_count"]) == (None, 0)
    assert subscription["created_at"] <= subscription["updated_at"]
    assert datetime.fromisoformat(subscription["created_at"]).tzinfo is not None


async def test_filters_may_be_left_out_and_active_is_the_default(developer: Client) -> None:
    subscription = await create_subscription(developer)
    assert (subscription["filters"], subscription["active"]) == (None, True)


async def test_empty_filters_are_stored_as_null(world: World, subtests: pytest.Subtests) -> None:
    cases: list[Any] = [None, {}]
    for filters in cases:
        with subtests.test(filters=filters):
            developer = await world.user()
            assert (await create_subscription(developer, filters=filters))["filters"] is None


async def test_a_subscription_is_read_as_it_was_created(developer: Client) -> None:
    for fields in ({}, NOTIFICATION, {"filters": {"name": "ünïcode 🙂"}}):
        subscription = await create_subscription(developer, **fields)
        assert await read_subscription(developer, subscription["id"]) == subscription


async def test_read_only_fields_are_ignored(developer: Client) -> None:
    fields = {"id": "sub_mine", "trigger_count": 9}
    subscription = await create_subscription(
        developer, **fields, last_triggered_at="2026-01-01T00:00:00Z"
    )
    assert subscription["id"] != "sub_mine"
    assert (subscription["trigger_count"], subscription["last_triggered_at"]) == (0, None)


_INVALID_BODIES: list[tuple[Any, set[str]]] = [
    ({}, {"event_type", "action_type", "action_config"}),
    ([], {"body"}),
    ("text", {"body"}),
    ({**WORKFLOW, "event_type": 7}, {"event_type"}),
    ({**WORKFLOW, "event_type": ""}, {"event_type"}),
    ({**WORKFLOW, "event_type": None}, {"event_type"}),
    ({**WORKFLOW, "event_type": "agent.exploded"}, {"event_type"}),
    ({**WORKFLOW, "event_type": "agent.*"}, {"event_type"}),
    ({**WORKFLOW, "event_type": "AGENT.CREATED"}, {"event_type"}),
    ({**WORKFLOW, "event_type": "x" * 101}, {"event_type"}),
    ({**WORKFLOW, "action_type": "email"}, {"action_type"}),
    ({**WORKFLOW, "action_type": None}, {"action_type"}),
    ({**WORKFLOW, "action_config": None}, {"action_config"}),
    ({**WORKFLOW, "action_config": []}, {"action_config"}),
    ({**WORKFLOW, "action_config": "wfl_1"}, {"action_config"}),
    ({**WORKFLOW, "filters": []}, {"filters"}),
    ({**WORKFLOW, "filters": "name"}, {"filters"}),
    ({**WORKFLOW, "filters": {"name": {"regex": "a"}}}, {"filters.name"}),
    ({**WORKFLOW, "filters": {"": 1, "a..b": 2}}, {"filters.", "filters.a..b"}),
    ({**WORKFLOW, "active": "yes"}, {"active"}),
    ({**WORKFLOW, "active": None}, {"active"}),
    ({**WORKFLOW, "active": 1}, {"active"}),
]


async def test_a_wrong_field_is_named(developer: Client, subtests: pytest.Subtests) -> None:
    config = {"workflow_id": await find_draft(developer)}
    for body, fields in _INVALID_BODIES:
        with subtests.test(body=body, fields=fields):
            is_filled = isinstance(body, dict) and body
            sent = {"action_config": config, **body} if is_filled else body
            assert set(read_field_errors(await developer.post(PATH, sent))) == fields


async def test_a_body_that_is_not_json_is_refused(developer: Client) -> None:
    answer = await developer("POST", PATH, content=b"{not json")
    assert set(read_field_errors(answer)) == {"body"}
    assert set(read_field_errors(await developer("POST", PATH, content=b""))) == {"body"}


async def test_a_nul_character_is_refused(developer: Client) -> None:
    config = {"workflow_id": await find_draft(developer)}
    body = {**WORKFLOW, "action_config": config, "filters": {"name": "a\0b"}}
    answer = await developer.post(PATH, body)
    assert answer.status_code == 422


async def test_the_same_idempotency_key_creates_one_subscription(developer: Client) -> None:
    key = {"Idempotency-Key": new_id("key")}
    body = {**WORKFLOW, **OWN_ADDRESS}
    first = await developer.post(PATH, body, headers=key)
    again = await developer.post(PATH, body, headers=key)
    assert (again.status_code, again.json()["id"]) == (201, first.json()["id"])
    assert await list_ids(developer) == [first.json()["id"]]


async def test_the_number_of_subscriptions_is_limited(
    developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "MAX_SUBSCRIPTIONS", 2)
    subscriptions = [await create_subscription(developer) for _ in range(2)]
    config = {"workflow_id": await find_draft(developer)}
    refused(await developer.post(PATH, {**WORKFLOW, "action_config": config}), 409, "conflict")
    await developer.delete(f"{PATH}/{subscriptions[0]['id']}")
    await create_subscription(developer)


# Read and list


async def test_a_list_has_pages_with_the_newest_first(developer: Client) -> None:
    subscription_ids = [(await create_subscription(developer))["id"] for _ in range(3)]
    answer = await developer.get(PATH, params={"per_page": 2})
    assert set(answer.json()) == {"data", "pagination"}
    assert answer.json()["pagination"] == {
        "page": 1,
        "per_page": 2,
        "total": 3,
        "total_pages": 2,
    }
    assert {frozenset(entry) for entry in answer.json()["data"]} == {frozenset(KEYS)}
    assert await list_ids(developer) == subscription_ids[::-1]
    assert await list_ids(developer, page=2, per_page=2) == subscription_ids[:1]
    assert await list_ids(developer, page=3, per_page=2) == []


async def test_a_list_can_be_filtered(developer: Client) -> None:
    workflow = (await create_subscription(developer))["id"]
    inactive = (await create_subscription(developer, active=False, event_type="agent.deleted"))[
        "id"
    ]
    notification = (await create_subscription(developer, **NOTIFICATION))["id"]
    assert await list_ids(developer, event_type="agent.created") == [notification, workflow]
    assert await list_ids(developer, event_type="agent.nothing") == []
    assert await list_ids(developer, action_type="notification") == [notification]
    assert await list_ids(developer, active="true") == [notification, workflow]
    assert await list_ids(developer, active="false") == [inactive]
    assert await list_ids(developer, active="false", action_type="notification") == []
    filters = {"event_type": "agent.created", "action_type": "workflow", "active": "true"}
    assert await list_ids(developer, **filters) == [workflow]


_SET_TRIGGERED = """
UPDATE event_subscriptions SET trigger_count = $2, last_triggered_at = now() - $3 * interval '1 day'
WHERE id = $1
"""


_SORTS: list[tuple[str, list[int]]] = [
    ("event_type", [1, 2, 0]),
    ("action_type", [2, 0, 1]),
    ("trigger_count", [2, 1, 0]),
    ("last_triggered_at", [1, 0, 2]),
    ("created_at", [0, 1, 2]),
    ("updated_at", [0, 2, 1]),
]


async def test_a_list_can_be_sorted_by_each_of_its_fields(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for sort, order in _SORTS:
        with subtests.test(sort=sort, order=order):
            developer = await world.user()
            bodies: list[dict[str, Any]] = [
                {"event_type": "agent.updated", **OWN_ADDRESS},
                {"event_type": "agent.created"},
                {"event_type": "agent.deleted", **NOTIFICATION},
            ]
            ids = [(await create_subscription(developer, **body))["id"] for body in bodies]
            for subscription_id, count, days in zip(ids, (3, 2, 1), (2, 3, 1), strict=True):
                await run_sql(services, _SET_TRIGGERED, subscription_id, count, days)
            await update_subscription(developer, ids[1], active=False)
            expected = [ids[index] for index in order]
            assert await list_ids(developer, sort=sort) == expected
            assert await list_ids(developer, sort=f"-{sort}") == expected[::-1]


_INVALID_PARAMETERS: list[tuple[str, str]] = [
    ("page", "0"),
    ("per_page", "101"),
    ("per_page", "0"),
    ("sort", "filters"),
    ("sort", "tenant_id"),
    ("action_type", "email"),
    ("active", "maybe"),
    ("event_type", "x" * 101),
]


async def test_a_wrong_query_parameter_is_named(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for name, value in _INVALID_PARAMETERS:
        with subtests.test(name=name, value=value):
            assert set(read_field_errors(await developer.get(PATH, params={name: value}))) == {name}


# Update


async def test_an_update_is_stored_and_emits_an_event(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({"event_type": "agent.deleted"}, ["event_type"]),
        ({"active": False}, ["active"]),
        ({"filters": {"name": "Ada"}}, ["filters"]),
        (NOTIFICATION, ["action_type", "action_config"]),
    ]
    for fields, changed in cases:
        with subtests.test(fields=fields, changed=changed):
            developer = await world.user()
            subscription = await create_subscription(developer)
            answer = await update_subscription(developer, subscription["id"], **fields)
            assert {name: answer[name] for name in fields} == fields
            assert answer["created_at"] == subscription["created_at"]
            assert answer["updated_at"] > subscription["updated_at"]
            assert await read_subscription(developer, subscription["id"]) == answer
            (event,) = await load_events(
                services, developer.tenant_id, "system.subscription.updated"
            )
            assert set(event["data"].pop("changed")) == set(changed)
            assert event["data"] == {
                "subscription_id": subscription["id"],
                "event_type": answer["event_type"],
                "action_type": answer["action_type"],
            }


async def test_another_workflow_is_stored_and_emits_an_event(
    developer: Client, services: Services
) -> None:
    subscription = await create_subscription(developer)
    config = {"workflow_id": await create_draft(developer), "input": {"a": [1]}}
    answer = await update_subscription(developer, subscription["id"], action_config=config)
    assert answer["action_config"] == config
    (event,) = await load_events(services, developer.tenant_id, "system.subscription.updated")
    assert event["data"]["changed"] == ["action_config"]


async def test_an_update_without_a_change_emits_nothing(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    cases: list[dict[str, Any]] = [{}, {"active": True}, WORKFLOW, {"filters": None}]
    for changes in cases:
        with subtests.test(changes=changes):
            developer = await world.user()
            subscription = await create_subscription(developer)
            fields = {"action_config": subscription["action_config"], **changes}
            assert (
                await update_subscription(developer, subscription["id"], **fields) == subscription
            )
            assert (
                await load_events(services, developer.tenant_id, "system.subscription.updated")
                == []
            )


async def test_filters_can_be_removed(world: World, subtests: pytest.Subtests) -> None:
    cases: list[Any] = [None, {}]
    for filters in cases:
        with subtests.test(filters=filters):
            developer = await world.user()
            subscription = await create_subscription(developer, filters={"name": "Ada"})
            updated = await update_subscription(developer, subscription["id"], filters=filters)
            assert updated["filters"] is None


async def test_filters_are_replaced_as_a_whole(developer: Client) -> None:
    subscription = await create_subscription(developer, filters={"name": "Ada", "status": "draft"})
    updated = await update_subscription(
        developer, subscription["id"], filters={"status": "published"}
    )
    assert updated["filters"] == {"status": "published"}


_INVALID_UPDATES: list[tuple[dict[str, Any], set[str]]] = [
    ({"event_type": "agent.exploded"}, {"event_type"}),
    ({"event_type": None}, {"event_type"}),
    ({"active": None}, {"active"}),
    ({"filters": {"a": {}}}, {"filters.a"}),
    ({"action_type": "notification"}, {"action_config"}),
    ({"action_type": "webhook"}, {"action_config"}),
    ({"action_config": None}, {"action_config"}),
    ({"action_config": {}}, {"action_config.workflow_id"}),
    ({"action_config": {"url": "https://example.com"}}, {"action_config.url"}),
]


async def test_a_wrong_update_names_the_field_and_changes_nothing(
    developer: Client, subtests: pytest.Subtests
) -> None:
    subscription = await create_subscription(developer)
    for fields, names in _INVALID_UPDATES:
        with subtests.test(fields=fields, names=names):
            answer = await developer.put(f"{PATH}/{subscription['id']}", fields)
            assert names <= set(read_field_errors(answer))
    assert await read_subscription(developer, subscription["id"]) == subscription


# Delete


async def test_deleting_a_subscription_emits_an_event(
    developer: Client, services: Services
) -> None:
    subscription = await create_subscription(developer)
    answer = await developer.delete(f"{PATH}/{subscription['id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    for method in ("GET", "PUT", "DELETE"):
        response = await developer(method, f"{PATH}/{subscription['id']}", json={})
        refused(response, 404, "subscription_not_found")
    assert await list_ids(developer) == []
    (event,) = await load_events(services, developer.tenant_id, "system.subscription.deleted")
    assert event["data"]["subscription_id"] == subscription["id"]


async def test_a_list_shows_each_subscription_as_it_is_read(developer: Client) -> None:
    subscriptions = [await create_subscription(developer, filters={"n": n}) for n in range(5)]
    answer = await developer.get(PATH, params={"per_page": 100})
    assert answer.json()["data"] == [
        await read_subscription(developer, subscription["id"])
        for subscription in reversed(subscriptions)
    ]
