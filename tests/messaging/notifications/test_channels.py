"""/api/v1/notification-channels: create, list, read, change and delete channels."""

import re
from typing import Any

import pytest

from app.domain.messaging.notifications import channel_queries
from app.kit.ids import new_id
from app.services import Services
from tests.assertions import refused
from tests.database import run_sql
from tests.messaging.notifications.factories import (
    CONFIGS,
    PATH,
    SUMMARY_KEYS,
    TYPES,
    VIEW_KEYS,
    build_body,
    create_channel,
    list_channels,
    list_names,
    read_channel,
    update_channel,
)
from tests.messaging.webhooks.factories import list_events
from tests.platform.events.responses import read_field_errors, read_json
from tests.world import Client, World

_CHANGES = {"created", "updated", "deleted"}


async def _list_changes(client: Client) -> list[str]:
    """Returns the events about channels, without their common prefix."""
    return [
        name
        for name in sorted(_CHANGES)
        for _ in await list_events(client, f"system.notification_channel.{name}")
    ]


# Create


async def test_a_new_channel_has_its_defaults(developer: Client) -> None:
    channel = await create_channel(developer, "slack_bot")
    assert set(channel) == VIEW_KEYS
    assert re.fullmatch(r"nch_[0-9a-z]{26}", channel["id"])
    assert channel == {
        "id": channel["id"],
        "name": "Our slack_bot",
        "type": "team_chat",
        "provider": "slack_bot",
        "active": True,
        "config": {"token": "********", "channel": "#ops"},
        "rate_limit_per_minute": None,
        "created_at": channel["created_at"],
        "updated_at": channel["updated_at"],
    }


async def test_every_field_is_stored(developer: Client) -> None:
    fields = {"name": "Büro ☕", "active": False, "rate_limit_per_minute": 7}
    config = {"to": [developer.user_id]}
    channel = await create_channel(developer, "in_app", **fields, config=config)
    assert await read_channel(developer, channel["id"]) == channel
    assert {name: channel[name] for name in fields} == fields
    assert channel["config"] == config


async def test_only_users_of_the_tenant_can_be_named_for_the_center(
    developer: Client, admin: Client
) -> None:
    body = {"name": "Center", "type": "in_app", "config": {"to": [admin.user_id]}}
    error = (await developer.post(PATH, body)).json()["error"]
    assert (error["code"], set(error["details"])) == ("invalid_config", {"config.to"})


async def test_a_channel_of_every_provider_can_be_created_and_sent_back(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for provider in CONFIGS:
        with subtests.test(provider=provider):
            channel = await create_channel(developer, provider)
            assert (channel["type"], channel["provider"]) == (TYPES[provider], provider)
            assert await update_channel(developer, channel["id"], **channel) == channel
    assert await list_events(developer, "system.notification_channel.updated") == []


async def test_the_provider_may_be_left_out_for_in_app(developer: Client) -> None:
    fields: dict[str, Any]
    for more in ({}, {"provider": None}):
        fields = {"name": "Center", "type": "in_app", "config": {}, **more}
        channel = read_json(await developer.post(PATH, fields), 201)
        assert channel["provider"] == "in_app"


async def test_a_wrong_body_names_the_field(developer: Client, subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"name": None}, "name"),
        ({"name": ""}, "name"),
        ({"name": "two\nlines"}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"type": "pigeon"}, "type"),
        ({"type": None}, "type"),
        ({"provider": None}, "provider"),
        ({"provider": ""}, "provider"),
        ({"provider": "pigeon"}, "provider"),
        ({"provider": "slack_bot"}, "provider"),
        ({"type": "sms"}, "provider"),
        ({"type": "in_app"}, "provider"),
        ({"config": None}, "config"),
        ({"config": []}, "config"),
        ({"active": "yes"}, "active"),
        ({"rate_limit_per_minute": 0}, "rate_limit_per_minute"),
        ({"rate_limit_per_minute": 100_001}, "rate_limit_per_minute"),
        ({"rate_limit_per_minute": 1.5}, "rate_limit_per_minute"),
    ]
    for change, field in cases:
        with subtests.test(change=change):
            answer = await developer.post(PATH, build_body("smtp") | change)
            assert set(read_field_errors(answer)) == {field}
    for missing in ("name", "type", "config"):
        with subtests.test(missing=missing):
            body = build_body("smtp")
            del body[missing]
            refused(await developer.post(PATH, body), 422, "validation_error")
    assert await list_channels(developer) == []


async def test_an_invalid_config_names_its_keys_without_their_values(
    developer: Client, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("smtp", {"port": "planted-9"}, "port"),
        ("smtp", {"unknown": 1}, "unknown"),
        ("smtp", {"to": ["planted-9"]}, "to"),
        ("sendgrid", {"api_key": "********"}, "api_key"),
        ("slack_webhook", {"webhook_url": "http://10.0.0.1/planted-9"}, "webhook_url"),
        ("slack_webhook", {"webhook_url": "planted-9"}, "webhook_url"),
        ("webhook", {"headers": {"Bad Name": "planted-9"}}, "headers"),
        ("twilio", {"account_sid": "planted-9"}, "account_sid"),
    ]
    for provider, change, key in cases:
        with subtests.test(provider=provider, key=key):
            body = build_body(provider, config=CONFIGS[provider] | change)
            error = refused(answer := await developer.post(PATH, body), 422, "invalid_config")
            assert [name.split(".")[:2] for name in error["details"]] == [["config", key]]
            assert "planted" not in answer.text


async def test_a_config_without_a_required_key_is_invalid(developer: Client) -> None:
    answer = await developer.post(PATH, build_body("slack_bot", config={"channel": "#ops"}))
    error = refused(answer, 422, "invalid_config")
    assert set(error["details"]) == {"config.token"}


async def test_the_same_idempotency_key_creates_one_channel(developer: Client) -> None:
    headers = {"Idempotency-Key": new_id("key")}
    body = build_body("slack_bot")
    answers = [await developer.post(PATH, body, headers=headers) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert len(await list_channels(developer)) == 1


async def test_a_tenant_has_a_limited_number_of_channels(
    developer: Client, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert channel_queries.MAX_CHANNELS == 200
    monkeypatch.setattr(channel_queries, "MAX_CHANNELS", 2)
    channels = [await create_channel(developer, "in_app") for _ in range(2)]
    refused(await developer.post(PATH, build_body("in_app")), 409, "conflict")
    await create_channel(admin, "in_app")
    await developer.delete(f"{PATH}/{channels[0]['id']}")
    await create_channel(developer, "in_app")


# List


async def test_channels_are_listed_as_summaries_from_the_oldest_on(developer: Client) -> None:
    channels = [await create_channel(developer, provider) for provider in ("vonage", "smtp")]
    listed = await list_channels(developer)
    assert listed == [{name: channel[name] for name in SUMMARY_KEYS} for channel in channels]


async def test_a_list_is_filtered_by_type_and_activity(developer: Client) -> None:
    for name, provider, active in (
        ("a", "smtp", True),
        ("b", "resend", False),
        ("c", "vonage", True),
    ):
        await create_channel(developer, provider, name=name, active=active)
    assert await list_names(developer) == ["a", "b", "c"]
    assert await list_names(developer, type="email") == ["a", "b"]
    assert await list_names(developer, active="true") == ["a", "c"]
    assert await list_names(developer, type="email", active="false") == ["b"]
    assert await list_names(developer, type="in_app") == []
    assert await list_names(developer, "/active/email") == ["a"]
    assert await list_names(developer, "/active/team_chat") == []


async def test_an_unknown_type_is_refused(developer: Client) -> None:
    assert set(read_field_errors(await developer.get(PATH, params={"type": "pigeon"}))) == {"type"}
    answer = await developer.get(f"{PATH}/active/pigeon")
    assert "email" in refused(answer, 404, "channel_type_not_found")["message"]


async def test_all_providers_are_listed_with_their_keys(developer: Client) -> None:
    providers = read_json(await developer.get(f"{PATH}/providers"))["providers"]
    assert {item["id"]: item["type"] for item in providers} == TYPES
    for item in providers:
        assert set(item) == {"id", "type", "name", "config_schema"}
        assert CONFIGS[item["id"]].keys() <= item["config_schema"].keys()
    (slack,) = [item for item in providers if item["id"] == "slack_webhook"]
    assert slack["config_schema"] == {
        "webhook_url": {"type": "string", "required": True, "secret": True},
        "to": {"type": "array", "required": False},
    }


# Change


async def test_a_change_keeps_the_other_fields_and_names_what_changed(developer: Client) -> None:
    channel = await create_channel(developer, "slack_bot")
    changes = {"name": "New", "active": False, "rate_limit_per_minute": 3}
    changed = await update_channel(developer, channel["id"], **changes)
    assert changed == channel | changes | {"updated_at": changed["updated_at"]}
    assert changed == await read_channel(developer, channel["id"])
    (event,) = await list_events(developer, "system.notification_channel.updated")
    assert set(event["data"].pop("changed")) == set(changes)
    assert event["data"] == {
        "channel_id": channel["id"],
        "name": "New",
        "channel_type": "team_chat",
        "provider": "slack_bot",
    }
    unlimited = await update_channel(developer, channel["id"], rate_limit_per_minute=None)
    assert unlimited["rate_limit_per_minute"] is None


async def test_type_and_provider_cannot_change(developer: Client) -> None:
    channel = await create_channel(developer, "smtp")
    for name, value in (("type", "sms"), ("provider", "resend"), ("provider", "pigeon")):
        answer = await developer.put(f"{PATH}/{channel['id']}", {name: value, "name": "New"})
        assert set(read_field_errors(answer)) == {name}
    assert await read_channel(developer, channel["id"]) == channel


async def test_a_refused_change_names_the_field(developer: Client) -> None:
    channel = await create_channel(developer, "smtp")
    for name, value in (("name", None), ("active", None), ("rate_limit_per_minute", -1)):
        answer = await developer.put(f"{PATH}/{channel['id']}", {name: value})
        assert set(read_field_errors(answer)) == {name}
    config = channel["config"] | {"port": 0}
    answer = await developer.put(f"{PATH}/{channel['id']}", {"config": config})
    assert set(refused(answer, 422, "invalid_config")["details"]) == {"config.port"}
    assert await read_channel(developer, channel["id"]) == channel


# Delete


async def test_a_deleted_channel_is_gone_with_an_event(developer: Client) -> None:
    channel = await create_channel(developer, "smtp")
    answer = await developer.delete(f"{PATH}/{channel['id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert await list_channels(developer) == []
    assert await _list_changes(developer) == ["created", "deleted"]


_ROUTES = [
    ("GET", ""),
    ("PUT", ""),
    ("DELETE", ""),
    ("POST", "/test"),
    ("GET", "/logs"),
    ("GET", "/stats"),
    ("GET", "/reveal"),
]


async def test_an_unknown_or_foreign_channel_is_not_found(
    admin: Client, developer: Client, subtests: pytest.Subtests
) -> None:
    foreign = await create_channel(developer, "smtp")
    for channel_id in ("nch_unknown", foreign["id"]):
        for method, suffix in _ROUTES:
            with subtests.test(method=method, suffix=suffix, channel_id=channel_id):
                body: dict[str, Any] | None = {} if method == "PUT" else None
                answer = await admin(method, f"{PATH}/{channel_id}{suffix}", json=body)
                refused(answer, 404, "channel_not_found")
    assert await read_channel(developer, foreign["id"]) == foreign


# Permissions


async def test_only_developers_and_administrators_reach_channels(
    world: World, developer: Client, services: Services, subtests: pytest.Subtests
) -> None:
    channel = await create_channel(developer, "in_app")
    paths = ["", "/providers", "/active/email", "/stats", "/stats/breakdown"]
    routes = [
        *(("GET", path) for path in paths),
        ("POST", ""),
        *((method, f"/{channel['id']}{suffix}") for method, suffix in _ROUTES),
    ]
    for role in ("viewer", "agent_user"):
        client = await world.user(role, developer.tenant_id)
        for method, path in routes:
            with subtests.test(role=role, method=method, path=path):
                body = build_body("in_app") if method in {"POST", "PUT"} else None
                refused(await client(method, f"{PATH}{path}", json=body), 403, "forbidden")
    count = "SELECT count(*) AS n FROM notification_channels WHERE tenant_id = $1"
    assert (await run_sql(services, count, developer.tenant_id))[0]["n"] == 1


async def test_an_administrator_reveals_secrets_and_a_developer_does_not(
    world: World, developer: Client
) -> None:
    channel = await create_channel(developer, "slack_bot")
    path = f"{PATH}/{channel['id']}/reveal"
    refused(await developer.get(path), 403, "forbidden")
    assert await list_events(developer, "system.notification_channel.revealed") == []
    admin = await world.user("tenant_admin", developer.tenant_id)
    assert read_json(await admin.get(path)) == channel | {"config": CONFIGS["slack_bot"]}
    (event,) = await list_events(developer, "system.notification_channel.revealed")
    assert event["data"]["user_id"] == admin.user_id
    assert event["data"]["channel_id"] == channel["id"]
