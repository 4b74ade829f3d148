"""Secrets of channels: masks, moves to other hosts, lost keys, and all places they must not be."""

from collections.abc import Iterator
from typing import Any

import pytest

from app.kit import logs
from app.kit.ids import new_id
from app.net.secret_fields import MASK
from app.services import Services
from tests.assertions import refused
from tests.database import fetch_rows
from tests.messaging.notifications.factories import (
    CONFIGS,
    PATH,
    build_body,
    create_channel,
    list_log,
    read_channel,
    reveal_config,
    run_test,
    seal_with_lost_key,
    store_config,
    update_channel,
)
from tests.messaging.notifications.sender import ChannelSender
from tests.messaging.webhooks.factories import list_events
from tests.platform.events.responses import read_json
from tests.stored_texts import NewRows
from tests.world import Client

_UPDATED = "system.notification_channel.updated"


# Masks


async def test_a_mask_keeps_the_stored_secret(admin: Client) -> None:
    channel = await create_channel(admin, "sendgrid")
    assert channel["config"]["api_key"] == MASK
    config = channel["config"] | {"from": "new@example.com"}
    changed = await update_channel(admin, channel["id"], config=config)
    assert changed["config"] == config
    stored = CONFIGS["sendgrid"] | {"from": "new@example.com"}
    assert await reveal_config(admin, channel["id"]) == stored
    (event,) = await list_events(admin, _UPDATED)
    assert event["data"]["changed"] == ["config"]


async def test_a_config_replaces_all_keys(admin: Client) -> None:
    channel = await create_channel(admin, "smtp", config=CONFIGS["smtp"] | {"port": 25})
    config = {"host": "mail.example.com", "from": "new@example.com"}
    changed = await update_channel(admin, channel["id"], config=config)
    assert changed["config"] == await reveal_config(admin, channel["id"]) == config


async def test_masked_headers_of_a_webhook_are_kept(admin: Client) -> None:
    headers = {"Authorization": "planted-10", "X-Team": "blue"}
    channel = await create_channel(
        admin, "webhook", config=CONFIGS["webhook"] | {"headers": headers}
    )
    assert channel["config"]["headers"] == {"Authorization": MASK, "X-Team": "blue"}
    await update_channel(admin, channel["id"], config=channel["config"])
    assert (await reveal_config(admin, channel["id"]))["headers"] == headers
    assert await list_events(admin, _UPDATED) == []


async def test_another_host_needs_the_secrets_again(
    admin: Client, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("smtp", {"host": "other.example.com"}, "password"),
        ("smtp", {"port": 25}, "password"),
        ("smtp", {"use_tls": False}, "password"),
        ("resend", {"api_base": "https://other.example.com"}, "api_key"),
        ("webhook", {"url": "https://other.example.com/"}, "secret"),
    ]
    for provider, change, key in cases:
        with subtests.test(provider=provider, change=change):
            channel = await create_channel(admin, provider)
            path, config = f"{PATH}/{channel['id']}", channel["config"] | change
            error = refused(await admin.put(path, {"config": config}), 422, "invalid_config")
            assert set(error["details"]) == {f"config.{key}"}
            assert await reveal_config(admin, channel["id"]) == CONFIGS[provider]
            whole = CONFIGS[provider] | change
            await update_channel(admin, channel["id"], config=whole)
            assert await reveal_config(admin, channel["id"]) == whole


# A lost root key


async def test_a_config_under_a_lost_key_is_empty_until_it_is_set_again(
    admin: Client, services: Services
) -> None:
    channel = await create_channel(admin, "sendgrid")
    path = f"{PATH}/{channel['id']}"
    await seal_with_lost_key(services, admin, channel["id"])
    assert (await read_channel(admin, channel["id"]))["config"] == {}
    refused(await admin.get(f"{path}/reveal"), 409, "conflict")
    assert (await update_channel(admin, channel["id"], name="New"))["config"] == {}
    refused(await admin.put(path, {"config": channel["config"]}), 422, "invalid_config")
    await update_channel(admin, channel["id"], config=CONFIGS["sendgrid"])
    assert await reveal_config(admin, channel["id"]) == CONFIGS["sendgrid"]


async def test_an_empty_config_replaces_one_under_a_lost_key(
    admin: Client, services: Services
) -> None:
    channel = await create_channel(admin, "in_app")
    await seal_with_lost_key(services, admin, channel["id"])
    await update_channel(admin, channel["id"], config={})
    assert await reveal_config(admin, channel["id"]) == {}


async def test_a_config_of_another_version_can_be_set_again(
    admin: Client, services: Services
) -> None:
    channel = await create_channel(admin, "sendgrid")
    stored = {"api_key": "planted-1", "sender": "ann@example.com"}
    await store_config(services.keyring, services, admin, channel["id"], stored)
    path = f"{PATH}/{channel['id']}"
    config = CONFIGS["sendgrid"] | {"api_key": MASK}
    refused(await admin.put(path, {"config": config}), 422, "invalid_config")
    await update_channel(admin, channel["id"], config=CONFIGS["sendgrid"])
    assert await reveal_config(admin, channel["id"]) == CONFIGS["sendgrid"]


async def test_a_send_under_a_lost_key_fails_and_says_why(
    sender: ChannelSender, services: Services
) -> None:
    channel_id = await sender.create()
    await seal_with_lost_key(services, sender.client, channel_id)
    await sender.send(channel_id)
    outline = await sender.wait_for(channel_id, "failed")
    assert outline == [(1, "failed", "invalid_config")]
    (entry,) = await list_log(sender.client, channel_id)
    assert "cannot be decrypted" in entry["error"]
    assert "cannot be decrypted" in (await run_test(sender.client, channel_id))["message"]
    assert sender.providers.calls == []


# Places without secrets


async def _use_everything(sender: ChannelSender, secret: str) -> list[str]:
    """Uses channels whose providers repeat the secret; returns the answers of all routes."""
    client, texts = sender.client, []

    async def call(method: str, path: str, body: object = None, **more: Any) -> Any:
        answer = await client(method, path, json=body, **more)
        assert answer.status_code < 500, answer.text
        texts.append(answer.text)
        return answer.json()

    sender.providers.answer(400, {"message": f"bad key {secret}", "errors": [{"message": secret}]})
    configs = {
        "resend": sender.providers.config("resend", api_key=secret, to=["bob@example.com"]),
        "webhook": sender.providers.config(
            "webhook", secret=secret, headers={"Authorization": f"Bearer {secret}"}
        ),
        "slack_webhook": {"webhook_url": f"{sender.providers.url}/services/{secret}"},
    }
    for provider, config in configs.items():
        body = build_body(provider, config=config)
        headers = {"Idempotency-Key": new_id("key")}
        channel = await call("POST", PATH, body, headers=headers)
        path = f"{PATH}/{channel['id']}"
        await call("PUT", path, {"config": config, "name": "New"})
        await call("PUT", path, {"config": config | {"unknown": secret}})
        await call("PUT", path, {"config": [secret]})
        await call("POST", f"{path}/test")
        await sender.send(channel["id"])
        await sender.wait_for_finished(channel["id"], 2)
        for url in (path, PATH, f"{path}/logs", f"{path}/stats"):
            await call("GET", url)
    await sender.wait_until_idle()
    await call("GET", "/api/v1/event-log", params={"per_page": 100})
    return texts


@pytest.fixture
def _all_log_lines() -> Iterator[None]:
    logs.configure("debug", "json")
    yield
    logs.configure("warning", "json")


@pytest.mark.usefixtures("_all_log_lines")
async def test_a_secret_is_in_no_answer_no_line_of_the_log_and_no_table(
    sender: ChannelSender, services: Services, capsys: pytest.CaptureFixture[str]
) -> None:
    secret, new_rows = new_id("planted"), await NewRows.start(services)
    texts = await _use_everything(sender, secret)
    assert len(texts) > 20
    assert [text for text in texts if secret in text] == []
    lines = capsys.readouterr().err
    assert "work dead" in lines
    assert secret not in lines
    assert any("400" in row["last_error"] for row in await _list_errors(services, sender.client))
    assert "notification_channels" in await new_rows.find(sender.client.tenant_id)
    assert await new_rows.find(secret, secret.encode().hex()) == set()


async def _list_errors(services: Services, client: Client) -> list[dict[str, Any]]:
    sql = "SELECT last_error FROM work WHERE tenant_id = $1 AND last_error IS NOT NULL"
    return await fetch_rows(services, sql, client.tenant_id)


async def test_revealing_is_recorded_without_the_secret(admin: Client) -> None:
    channel = await create_channel(admin, "vonage")
    assert await reveal_config(admin, channel["id"]) == CONFIGS["vonage"]
    log = read_json(await admin.get("/api/v1/event-log", params={"per_page": 100}))
    assert "system.notification_channel.revealed" in [event["type"] for event in log["data"]]
    assert CONFIGS["vonage"]["api_secret"] not in str(log)
