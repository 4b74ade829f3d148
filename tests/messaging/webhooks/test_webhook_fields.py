"""Validation of the fields of a webhook, which is the same for create and update."""

from typing import Any

import pytest

from tests.assertions import refused
from tests.messaging.webhooks.factories import (
    BODY,
    PATH,
    create_webhook,
    list_events,
    read_webhook,
    update_webhook,
)
from tests.world import Client, World

INVALID: list[tuple[str, Any, str]] = [
    # The field, its value, and the key of the error.
    ("url", None, "url"),
    ("url", "", "url"),
    ("url", 7, "url"),
    ("url", ["https://example.com"], "url"),
    ("url", "https://example.com/" + "x" * 1981, "url"),
    ("url", "example.com/hook", "url"),
    ("url", "//example.com/hook", "url"),
    ("url", "https://", "url"),
    ("url", "https:///hook", "url"),
    ("url", "https://exa mple.com/", "url"),
    ("url", "https://exa\tmple.com/", "url"),
    ("url", " https://example.com/", "url"),
    ("url", "https://example.com/\r\nX-Service-Test: true", "url"),
    ("url", "https://example.com/\x7f", "url"),
    ("url", "https://example.com:99999/", "url"),
    ("url", "https://example.com:port/", "url"),
    ("url", "ftp://example.com/", "url"),
    ("url", "file:///etc/passwd", "url"),
    ("url", "javascript:alert(1)", "url"),
    ("url", "http://example.com/hook", "url"),
    ("url", "HTTP://example.com/hook", "url"),
    ("url", "https://ada:pw@example.com/", "url"),
    ("url", "https://ada@example.com/", "url"),
    ("url", "https://10.0.0.1/", "url"),
    ("url", "https://0x0a000001/", "url"),
    ("url", "https://167772161/", "url"),
    ("url", "https://169.254.169.254/latest/meta-data", "url"),
    ("url", "https://[::1]/", "url"),
    ("url", "https://[::ffff:10.0.0.1]/", "url"),
    ("url", "https://[::1", "url"),
    ("events", None, "events"),
    ("events", [], "events"),
    ("events", "agent.created", "events"),
    ("events", {"agent.created": True}, "events"),
    ("events", ["agent.created"] * 201, "events"),
    ("events", ["agent.created", "agent.exploded"], "events.1"),
    ("events", ["*"], "events.0"),
    ("events", ["agent.*"], "events.0"),
    ("events", ["Agent.Created"], "events.0"),
    ("events", ["agent.created "], "events.0"),
    ("events", [""], "events.0"),
    ("events", ["x" * 101], "events.0"),
    ("events", ["agent.created", None], "events.1"),
    ("events", ["agent.created", 7], "events.1"),
    ("active", None, "active"),
    ("active", "true", "active"),
    ("active", 1, "active"),
    ("description", 7, "description"),
    ("description", ["a"], "description"),
    ("description", "x" * 1001, "description"),
    ("description", "a\0b", "body"),
    ("headers", [], "headers"),
    ("headers", "X-Team: sales", "headers"),
    ("headers", {"X-Team": 7}, "headers.X-Team"),
    ("headers", {"X-Team": None}, "headers.X-Team"),
    ("headers", {"X-Team": ["a"]}, "headers.X-Team"),
    ("headers", {f"X-{n}": "a" for n in range(21)}, "headers"),
    ("headers", {"X-Team": "a" * 4097}, "headers.X-Team"),
    ("headers", {"x" * 101: "a"}, "headers." + "x" * 100),
    ("headers", {"X-Team": "a", "x-team": "b"}, "headers.x-team"),
]


async def test_creating_with_a_wrong_field_names_it(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for field, value, error_field in INVALID:
        with subtests.test(field=field, value=value, error_field=error_field):
            error = refused(
                await developer.post(PATH, {**BODY, field: value}), 422, "validation_error"
            )
            assert list(error["details"]) == [error_field]
    assert (await developer.get(PATH)).json()["data"] == []


async def test_updating_with_a_wrong_field_names_it_and_changes_nothing(
    developer: Client, subtests: pytest.Subtests
) -> None:
    webhook = await create_webhook(developer)
    for field, value, error_field in INVALID:
        with subtests.test(field=field, value=value, error_field=error_field):
            changes = {
                "url": "https://example.com/other",
                "description": "Other",
                "headers": {"X-A": "b"},
            }
            answer = await developer.put(f"{PATH}/{webhook['id']}", {**changes, field: value})
            assert list(refused(answer, 422, "validation_error")["details"]) == [error_field]
    stored = await read_webhook(developer, webhook["id"])
    assert stored == {name: value for name, value in webhook.items() if name != "secret"}
    assert await list_events(developer, "system.webhook.updated") == []


async def test_a_missing_required_field_is_named(world: World, subtests: pytest.Subtests) -> None:
    for missing in ("url", "events"):
        with subtests.test(missing=missing):
            developer = await world.user()
            body = {name: value for name, value in BODY.items() if name != missing}
            error = refused(await developer.post(PATH, body), 422, "validation_error")
            assert error["details"] == {missing: "is required"}


async def test_every_wrong_field_is_named_at_once(developer: Client) -> None:
    body = {"url": 7, "active": "yes", "description": 1, "headers": {"A": 1}}
    error = refused(await developer.post(PATH, body), 422, "validation_error")
    error_fields = {"url", "events", "active", "description", "headers.A"}
    assert set(error["details"]) == error_fields


async def test_every_unknown_event_type_is_named(developer: Client) -> None:
    answer = await developer.post(PATH, {**BODY, "events": ["a.b", "agent.created", "c.d"]})
    error = refused(answer, 422, "validation_error")
    assert set(error["details"]) == {"events.0", "events.2"}


async def test_a_body_that_is_no_object_is_refused(world: World, subtests: pytest.Subtests) -> None:
    for method in ("POST", "PUT"):
        with subtests.test(method=method):
            developer = await world.user()
            path = PATH if method == "POST" else f"{PATH}/{(await create_webhook(developer))['id']}"
            for content in (b"", b"{", b"[]", b"null", b'"text"', b"\xff", b"{}garbage"):
                with subtests.test(content=content):
                    answer = await developer(
                        method, path, content=content, headers={"content-type": "application/json"}
                    )
                    error = refused(answer, 422, "validation_error")
                    assert list(error["details"]) == ["body"]


async def test_a_body_that_is_too_large_is_refused(developer: Client) -> None:
    answer = await developer.post(PATH, {**BODY, "description": "x" * 1_100_000})
    refused(answer, 413, "payload_too_large")


VALID: list[tuple[str, Any]] = [
    ("url", "https://example.com/" + "x" * 1980),
    ("url", "http://127.0.0.1:8080/allowed"),
    ("url", "http://localhost/allowed"),
    ("url", "https://bücher.example/straße?q=ü"),
    ("url", "https://[2606:4700::1111]:8443/"),
    ("description", "x" * 1000),
    ("description", "Zeile 1\nZeile 2 ☕"),
    ("events", ["system.webhook.created", "agent.published", "agent.chat.completed"]),
    ("headers", {}),
    ("headers", {f"X-{n}": "a" * 400 for n in range(20)}),
    ("headers", {"x" * 100: ""}),
    ("headers", {"X-Name": "Zoë"}),
]


async def test_a_webhook_can_be_created_at_the_limits(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for field, value in VALID:
        with subtests.test(field=field, value=value):
            webhook = await create_webhook(developer, **{field: value})
            assert webhook[field] == value
            assert (await read_webhook(developer, webhook["id"]))[field] == value


async def test_a_webhook_can_be_updated_to_the_limits(
    developer: Client, subtests: pytest.Subtests
) -> None:
    webhook = await create_webhook(developer, headers={"X-Old": "old"})
    for field, value in VALID:
        with subtests.test(field=field, value=value):
            assert (await update_webhook(developer, webhook["id"], **{field: value}))[
                field
            ] == value
            assert (await read_webhook(developer, webhook["id"]))[field] == value


async def test_an_optional_field_may_be_null(world: World, subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, Any]] = [("description", ""), ("headers", {})]
    for field, default in cases:
        with subtests.test(field=field, default=default):
            developer = await world.user()
            webhook = await create_webhook(developer, **{field: None})
            assert webhook[field] == default
            fields = {"description": "Ours", "headers": {"X-Team": "a"}}
            await update_webhook(developer, webhook["id"], **fields)
            assert (await update_webhook(developer, webhook["id"], **{field: None}))[
                field
            ] == default
