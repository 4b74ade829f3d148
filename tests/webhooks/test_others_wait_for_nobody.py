"""What one tenant does to its deliveries is not felt by another."""

from app.services import Services
from db.session import ALL_TENANTS
from tests.asking import refused
from tests.webhooks.receiver import Receiver
from tests.webhooks.sender import Sender, eventually
from tests.world import Client, World
from workers.main import WorkerProcess

_LOCK = "SELECT 1 FROM work WHERE lane = $1 FOR UPDATE"


async def test_an_outcome_that_must_wait_keeps_no_other_waiting(
    sender: Sender, receiver: Receiver, world: World, services: Services, courier: WorkerProcess
) -> None:
    webhook_id = await sender.webhook(f"{receiver.url}/slow/held")
    await sender.happen()
    await receiver.wait_for(1, "/slow/held")
    other = Sender(await world.user(), services, courier)
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(_LOCK, webhook_id)
        receiver.released.set()
        theirs = await other.webhook(f"{receiver.url}/200")
        await other.happen()
        await other.settled(theirs)
        assert await sender.count(webhook_id, "status = 'pending'") == 1
    await sender.settled(webhook_id)
    assert await sender.count(webhook_id, "status = 'delivered'") == 1
    assert len(receiver.of("/slow/held")) == 1


async def test_headers_are_bounded_together(developer: Client) -> None:
    headers = {f"X-{number}": "a" * 1000 for number in range(9)}
    body = {"url": "https://example.com", "events": ["system.test"], "headers": headers}
    answer = await developer.post("/api/v1/webhooks", body)
    assert set(refused(answer, 422, "validation_error")["details"]) == {"headers"}


async def test_whoever_is_above_all_tenants_gets_the_mail_as_well(
    sender: Sender, receiver: Receiver, super_admin: Client
) -> None:
    body = {"url": f"{receiver.url}/410", "events": ["system.test"]}
    there = {"X-Tenant-ID": sender.client.tenant_id}
    await super_admin.post("/api/v1/webhooks", body, headers=there)
    await sender.happen()
    written = "SELECT count(*) FROM mail_messages WHERE recipient = $1"

    async def arrived() -> bool:
        return bool(await sender.value(written, super_admin.email))

    await eventually(arrived)


async def test_the_mail_about_a_subscription_names_the_subscription(
    sender: Sender, receiver: Receiver, services: Services
) -> None:
    body = {
        "event_type": "system.test",
        "action_type": "webhook",
        "action_config": {"url": f"{receiver.url}/410?key=hidden"},
    }
    made = (await sender.client.post("/api/v1/event-subscriptions", body)).json()
    await sender.happen()
    folder = services.settings.data_dir / "mail"

    async def letters() -> list[str]:
        found = [path.read_text(errors="replace") for path in folder.glob("*.eml")]
        return [letter for letter in found if sender.client.email in letter]

    await eventually(letters)
    (letter,) = await letters()
    assert made["id"] in letter
    assert "hidden" not in letter
    shown = await sender.client.get(f"/api/v1/event-subscriptions/{made['id']}")
    assert shown.json()["active"] is False
