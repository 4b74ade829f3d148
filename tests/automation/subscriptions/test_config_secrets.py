"""Secrets of a subscription's own address: shown once, masked and sealed."""

from app.services import Services
from tests.automation.subscriptions.factories import (
    PATH,
    read_subscription,
    subscribe_url,
    update_subscription,
)
from tests.database import fetch_rows
from tests.platform.events.database import load_events
from tests.world import Client

URL = "https://example.com/hook"
MASK = "********"


async def test_the_secret_is_shown_once(developer: Client) -> None:
    subscription = await subscribe_url(developer, URL)
    secret = subscription.pop("secret")
    assert secret.startswith("whsec_")
    assert await read_subscription(developer, subscription["id"]) == subscription
    answer = await developer.get(PATH)
    assert secret not in answer.text
    assert "secret" not in await update_subscription(developer, subscription["id"], active=False)


async def test_each_address_has_a_secret_of_its_own(developer: Client) -> None:
    first, second = [await subscribe_url(developer, URL) for _ in range(2)]
    assert first["secret"] != second["secret"]


async def test_secret_headers_are_masked(developer: Client) -> None:
    headers = {"Authorization": "Bearer planted", "X-Api-Key": "planted", "X-Team": "sales"}
    subscription = await subscribe_url(developer, URL, config={"headers": headers})
    masked = {"Authorization": MASK, "X-Api-Key": MASK, "X-Team": "sales"}
    assert subscription["action_config"] == {"url": URL, "headers": masked}
    assert "planted" not in (await developer.get(PATH)).text
    assert "planted" not in str(
        await update_subscription(developer, subscription["id"], active=False)
    )


async def test_secrets_are_stored_sealed(developer: Client, services: Services) -> None:
    headers = {"Authorization": "Bearer planted-in-the-open"}
    subscription = await subscribe_url(developer, URL, config={"headers": headers})
    rows = await fetch_rows(
        services,
        "SELECT s::text AS s, w::text AS w FROM event_subscriptions s "
        "JOIN webhooks w ON w.subscription_id = s.id WHERE s.id = $1",
        subscription["id"],
    )
    log = await load_events(services, developer.tenant_id)
    for secret in ("planted-in-the-open", subscription["secret"].removeprefix("whsec_")):
        assert secret not in str(rows)
        assert secret not in str(log)


async def test_events_do_not_contain_the_query_of_an_address(
    developer: Client, services: Services
) -> None:
    subscription = await subscribe_url(developer, f"{URL}?key=planted")
    await update_subscription(
        developer, subscription["id"], action_config={"url": f"{URL}?key=planted2"}
    )
    await developer.delete(f"{PATH}/{subscription['id']}")
    assert "planted" not in str(await load_events(services, developer.tenant_id))
