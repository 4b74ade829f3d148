"""Creates notification channels and calls their routes."""

from typing import Any

from app.crypto.keyring import Keyring
from app.domain.messaging.notifications import sealed_configs
from app.domain.messaging.notifications.providers.registry import PROVIDERS
from app.services import Services
from tests.database import run_sql
from tests.messaging.notifications.provider_server import STUBS
from tests.platform.events.responses import post_json, read_json
from tests.world import Client

PATH = "/api/v1/notification-channels"
# A config of each provider without `to`. Nothing is sent to these hosts.
CONFIGS: dict[str, dict[str, Any]] = {
    **{name: stub.config("https://api.example.com") for name, stub in STUBS.items()},
    "smtp": {
        "host": "mail.example.com",
        "username": "parley",
        "password": "planted-0",
        "from": "Ann <ann@example.com>",
    },
    "sendgrid": {"api_key": "planted-1", "from": "ann@example.com"},
    "mailgun": {"api_key": "planted-2", "domain": "mg.example.com", "from": "ann@example.com"},
    "resend": {"api_key": "planted-3", "from": "ann@example.com"},
    "slack_webhook": {"webhook_url": "https://hooks.slack.com/services/T0/B0/planted-4"},
    "slack_bot": {"token": "planted-5", "channel": "#ops"},
    "webhook": {"url": "https://shop.example.com/hook", "secret": "planted-6"},
    "twilio": {
        "account_sid": "AC" + "0123456789abcdef" * 2,
        "auth_token": "planted-7",
        "from": "+14155550100",
    },
    "vonage": {"api_key": "abcd1234", "api_secret": "planted-8", "from": "Parley"},
    "in_app": {},
}
TYPES = {provider.id: provider.channel_type for provider in PROVIDERS.values()}
VIEW_KEYS = {
    "id",
    "name",
    "type",
    "provider",
    "active",
    "config",
    "rate_limit_per_minute",
    "created_at",
    "updated_at",
}
SUMMARY_KEYS = {"id", "name", "type", "provider", "active", "created_at"}


def build_body(provider: str, **fields: Any) -> dict[str, Any]:
    return {
        "name": f"Our {provider}",
        "type": TYPES[provider],
        "provider": provider,
        "config": CONFIGS[provider],
        **fields,
    }


async def create_channel(client: Client, provider: str = "smtp", **fields: Any) -> dict[str, Any]:
    channel: dict[str, Any] = await post_json(client, PATH, build_body(provider, **fields))
    return channel


async def read_channel(client: Client, channel_id: str) -> dict[str, Any]:
    channel: dict[str, Any] = read_json(await client.get(f"{PATH}/{channel_id}"))
    return channel


async def update_channel(client: Client, channel_id: str, **fields: Any) -> dict[str, Any]:
    channel: dict[str, Any] = read_json(await client.put(f"{PATH}/{channel_id}", fields))
    return channel


async def list_channels(client: Client, path: str = "", **params: Any) -> list[dict[str, Any]]:
    """Returns the summaries; `total` counts all of them."""
    answer = read_json(await client.get(f"{PATH}{path}", params=params))
    assert answer["total"] == len(answer["data"])
    channels: list[dict[str, Any]] = answer["data"]
    return channels


async def list_names(client: Client, path: str = "", **params: Any) -> list[str]:
    return [channel["name"] for channel in await list_channels(client, path, **params)]


async def reveal_config(client: Client, channel_id: str) -> dict[str, Any]:
    answer = read_json(await client.get(f"{PATH}/{channel_id}/reveal"))
    config: dict[str, Any] = answer["config"]
    return config


async def run_test(client: Client, channel_id: str) -> dict[str, Any]:
    """Returns the result of a channel test."""
    answer = await client.post(f"{PATH}/{channel_id}/test", timeout=60)
    result: dict[str, Any] = read_json(answer)
    assert set(result) == {"success", "message", "delivery_time_ms"}
    return result


async def list_log(client: Client, channel_id: str, **params: Any) -> list[dict[str, Any]]:
    """Returns the attempts, the newest first."""
    answer = read_json(await client.get(f"{PATH}/{channel_id}/logs", params=params))
    entries: list[dict[str, Any]] = answer["data"]
    return entries


async def store_config(
    keyring: Keyring, services: Services, client: Client, channel_id: str, values: dict[str, Any]
) -> None:
    """Seals and stores a config without the API's validation."""
    sealed = sealed_configs.seal_config(keyring, client.tenant_id, channel_id, values)
    sql = "UPDATE notification_channels SET config = $2 WHERE id = $1"
    await run_sql(services, sql, channel_id, sealed)


async def seal_with_lost_key(services: Services, client: Client, channel_id: str) -> None:
    """Replaces the config of a channel by one that this instance's keys do not open."""
    keyring = Keyring.parse(Keyring.generate("lost"))
    await store_config(keyring, services, client, channel_id, {"to": ["usr_1"]})
