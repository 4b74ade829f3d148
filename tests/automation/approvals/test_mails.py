"""From a workflow that asks, through a mail server, to the decision by the link of the mail."""

import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from app.services import Services
from app.templating.expressions import Expressions
from tests.assertions import refused, wait_until
from tests.automation.approvals.factories import request
from tests.automation.approvals.test_links import DECIDE, LOOK_UP
from tests.automation.workflows.factories import create_workflow, edge, start, transform
from tests.automation.workflows.nodes.single_node import build_node, read_end
from tests.database import fetch_rows
from tests.messaging.notifications.center.api import set_preferences
from tests.messaging.notifications.factories import create_channel
from tests.platform.events.database import load_events
from tests.platform.mail.inbox import Inbox, run_smtp_server
from tests.platform.mail.messages import parse, read_part
from tests.running_worker import cancel_earlier_work, run_worker
from tests.stores import Stores
from tests.world import Client, World


@pytest.fixture
async def inbox(services: Services, stores: Stores) -> AsyncIterator[Inbox]:
    """A mail server, and a worker that sends to it."""
    await cancel_earlier_work(stores)
    queues = ("workflows", "default", "deliveries")
    async with run_smtp_server() as inbox:
        settings = inbox.configure(stores.settings)
        expressions = services.get(Expressions)
        async with run_worker(settings, *queues, slots=4, expressions=expressions):
            yield inbox


async def _receive(inbox: Inbox, *addresses: str) -> dict[str, bytes]:
    """Waits for a mail to each of these; there must be no others."""

    async def is_complete() -> bool:
        return len(inbox.received) >= len(addresses)

    await wait_until(is_complete)
    mails = {mail.recipients[0]: mail.content for mail in inbox.received}
    assert mails.keys() == set(addresses)
    return mails


def _find_links(text: str) -> dict[str, str]:
    """Returns the tokens of the links, by decision."""
    found = {}
    for url in re.findall(r"^https?://\S+/approval\?\S+$", text, re.MULTILINE):
        values: dict[str, Any] = parse_qs(urlsplit(url).query)
        found[values["decision"][0]] = values["token"][0]
    return found


async def _start_refund(owner: Client, **config: Any) -> str:
    details = {"Amount": "{{ input.amount }}", "API key": "{{ input.amount }}"}
    fields = {"title": "Refund <b>order</b> 4711?", "message": "It came back.", "details": details}
    nodes = [build_node("approval", {**fields, **config}), transform("yes", "{{ input.amount }}")]
    workflow = await create_workflow(owner, nodes, [edge("one", "yes", when=True)], name="Refunds")
    return await start(owner, workflow["id"], input={"amount": "49.90 EUR"})


async def test_a_mail_says_what_is_asked_and_its_link_decides(
    inbox: Inbox, world: World, anonymous: Client, services: Services
) -> None:
    owner = await world.user("agent_developer")
    user = await world.user("agent_user", owner.tenant_id)
    # Links pass no channel of the tenant: the owner could read them there, and decide for the user.
    await create_channel(owner, "sendgrid")
    execution_id = await _start_refund(owner, role="agent_user", timeout_seconds=3600)
    content = (await _receive(inbox, user.email))[user.email]
    text, html = read_part(content), read_part(content, "html")
    assert parse(content)["Subject"] == "Your decision is needed: Refund <b>order</b> 4711?"
    for part in (
        "The workflow Refunds, started by Test User, waits for your",
        "It came back.",
        "Amount: 49.90 EUR",
        "API key: ********",
        "The decision is due by 20",
    ):
        assert part in text
    assert "Refund &lt;b&gt;order&lt;/b&gt; 4711?" in html
    tokens = _find_links(text)
    assert tokens.keys() == {"approved", "rejected"}

    seen = (await anonymous.post(LOOK_UP, {"token": tokens["approved"]})).json()["data"]
    assert (seen["status"], seen["title"]) == ("pending", "Refund <b>order</b> 4711?")
    body = {"token": tokens["approved"], "decision": "approved", "comment": "Fine"}
    assert (await anonymous.post(DECIDE, body)).status_code == 200
    record = await read_end(owner, execution_id)
    assert (record["status"], record["output"]) == ("completed", "49.90 EUR")
    other = {"token": tokens["rejected"], "decision": "rejected"}
    refused(await anonymous.post(DECIDE, other), 409, "already_decided")
    events = await load_events(services, owner.tenant_id)
    assert tokens["approved"] not in str(events)


async def test_each_of_those_who_are_asked_gets_links_of_their_own_unless_switched_off(
    inbox: Inbox, world: World, services: Services
) -> None:
    first = await world.user("agent_user")
    tenant_id = first.tenant_id
    second, silent = [await world.user("agent_user", tenant_id) for _ in range(2)]
    stranger = await world.user("agent_user", tenant_id, is_verified=False)
    await set_preferences(silent, approval_requested={"email": False})
    users = (first, second, silent, stranger)
    await request(services, tenant_id, user_ids=[user.user_id for user in users])
    mails = await _receive(inbox, first.email, second.email)
    tokens = [_find_links(read_part(content))["approved"] for content in mails.values()]
    assert len(set(tokens)) == 2

    async def are_all_notified() -> bool:
        sql = "SELECT user_id FROM notifications WHERE tenant_id = $1"
        return len(await fetch_rows(services, sql, tenant_id)) == len(users)

    await wait_until(are_all_notified)
