"""One message to an agent that calls a tool, with webhooks and subscriptions behind it."""

from typing import Any

import msgspec

from app.kit.ids import new_id
from app.services import Services
from tests.automation.subscriptions.factories import (
    create_subscription,
    create_webhook_for,
    subscribe_url,
)
from tests.messaging.deliveries.receiver import Receiver
from tests.model_server import Reply
from tests.platform.events.api import read_trace
from tests.platform.events.database import wait_until_idle
from tests.platform.events.responses import post_json, read_json
from tests.scripted_agents import Talker


class TracedChat(msgspec.Struct):
    """One message to an agent, and the trace of everything that it causes."""

    talker: Talker
    receiver: Receiver
    correlation_id: str
    request_id: str
    trace: dict[str, Any]

    @property
    def entries(self) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = self.trace["data"]
        return entries

    def spans(self, kind: str | None = None) -> list[dict[str, Any]]:
        return [span for span in self.trace["spans"] if kind in {None, span["kind"]}]

    def types(self) -> list[str]:
        return [entry["type"] for entry in self.entries]


async def _attach_tool(talker: Talker, url: str) -> None:
    tool = {
        "name": "Look up",
        "description": "Looks things up",
        "category": "custom",
        "tool_type": "webhook",
        "config": {"url": url, "method": "POST"},
        "auth_type": "none",
    }
    tool_id = (await post_json(talker.client, "/v1/tools", tool))["data"]["id"]
    await post_json(talker.client, f"/v1/agents/{talker.agent_id}/tools", {"tool_id": tool_id})


async def send_traced_message(talker: Talker, receiver: Receiver, services: Services) -> TracedChat:
    event_types = ("agent.chat.started", "system.work.dead")
    await create_webhook_for(talker.client, f"{receiver.url}/200/hook", *event_types)
    # Its workflow is not published, so the action ends dead.
    await create_subscription(talker.client, event_type="agent.chat.started")
    await subscribe_url(talker.client, f"{receiver.url}/200/own", event_type="agent.chat.message")
    await _attach_tool(talker, f"{receiver.url}/200/tool")
    talker.script(Reply(calls=[("look_up", {"what": "it"})]), Reply())
    ids = {"X-Correlation-ID": new_id("cor"), "X-Request-ID": new_id("req")}
    answer = await talker.client.post(f"{talker.path}/chat", {"message": "Hi"}, headers=ids)
    assert answer.headers["X-Correlation-ID"] == ids["X-Correlation-ID"]
    read_json(answer)
    await wait_until_idle(services, talker.client.tenant_id)
    trace = await read_trace(talker.client, ids["X-Correlation-ID"])
    return TracedChat(talker, receiver, ids["X-Correlation-ID"], ids["X-Request-ID"], trace)
