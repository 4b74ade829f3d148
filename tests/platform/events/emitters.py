"""A function for each event type that emits it, over HTTP or through a worker."""

from typing import Any

from tests.agents.knowledge.librarian import Librarian
from tests.agents.vault.api import run_connection_test
from tests.agents.vault.factories import create_credential
from tests.agents.vault.servers import TokenServer, error_response, serve_response
from tests.assertions import wait_until
from tests.automation.subscriptions.factories import create_subscription, find_draft, subscribe_url
from tests.platform.events import (
    approval_emitters,
    chat_emitters,
    embed_emitters,
    file_emitters,
    form_emitters,
    source_emitters,
    table_emitters,
    user_emitters,
    workflow_emitters,
)
from tests.platform.events.database import load_events, wait_until_idle
from tests.platform.events.emitter_context import EmitterContext
from tests.platform.events.responses import post_json, read_json
from tests.platform.events.user_emitters import Emitter
from tests.running_worker import run_worker

AGENT = {"name": "Agent", "primary_model": "openai/gpt-4o", "system_prompt": "Be."}
TOOL = {
    "name": "Tool",
    "category": "custom",
    "tool_type": "webhook",
    "config": {"url": "https://example.com/hook", "method": "POST"},
    "auth_type": "none",
}


# Agents and chat


async def _create_agent(context: EmitterContext, **fields: Any) -> str:
    agent = await post_json(context.admin, "/api/v1/agents", AGENT | fields)
    return f"/api/v1/agents/{agent['id']}"


async def emit_agent_created(context: EmitterContext) -> None:
    await _create_agent(context)


async def emit_agent_updated(context: EmitterContext) -> None:
    path = await _create_agent(context)
    read_json(await context.admin.put(path, {"name": "Renamed", "system_prompt": "Do."}))


async def emit_agent_published(context: EmitterContext) -> None:
    path = await _create_agent(context)
    read_json(await context.admin.put(path, {"status": "published"}))


async def emit_agent_deleted(context: EmitterContext) -> None:
    read_json(await context.admin.delete(await _create_agent(context)), 204)


async def emit_document_processed(context: EmitterContext) -> None:
    path = await _create_agent(context)
    librarian = Librarian(context.admin, path.rpartition("/")[2])
    async with run_worker(context.services.settings, "ingest", slots=1):
        # Nothing is embedded, which would load the vector database.
        await librarian.add(hours_pdf="no PDF")


async def emit_document_deleted(context: EmitterContext) -> None:
    path = await _create_agent(context)
    librarian = Librarian(context.admin, path.rpartition("/")[2])
    accepted = await librarian.upload(hours_txt="The shop opens at nine.")
    document_path = f"{path}/documents/{accepted['documents'][0]['id']}"
    read_json(await context.admin.delete(document_path), 204)


# Keys, credentials, tools


async def _create_provider_key(context: EmitterContext) -> str:
    body = {"provider": "openai", "name": "Ours", "api_key": "sk-0123456789abcdef"}
    key_id: str = (await post_json(context.admin, "/api/v1/api-keys", body))["id"]
    return key_id


async def emit_provider_key_created(context: EmitterContext) -> None:
    await _create_provider_key(context)


async def emit_provider_key_deleted(context: EmitterContext) -> None:
    path = f"/api/v1/api-keys/{await _create_provider_key(context)}"
    read_json(await context.admin.delete(path), 204)


async def emit_credential_created(context: EmitterContext) -> None:
    await create_credential(context.admin)


async def emit_credential_updated(context: EmitterContext) -> None:
    path = f"/v1/credentials/{(await create_credential(context.admin))['id']}"
    read_json(await context.admin.put(path, {"name": "Renamed"}))
    read_json(await context.admin.put(f"{path}/secrets", {"secrets": {"token": "another"}}))


async def emit_credential_deleted(context: EmitterContext) -> None:
    path = f"/v1/credentials/{(await create_credential(context.admin))['id']}"
    read_json(await context.admin.delete(path), 204)


async def emit_credential_invalid(context: EmitterContext) -> None:
    """A test that is refused, and a token server that issues no token."""
    async with serve_response(401) as url:
        bearer = await create_credential(context.admin, metadata={"test_url": url})
        assert not (await run_connection_test(context.admin, bearer["id"]))["success"]
    token_server = TokenServer()
    token_server.respond = lambda _request: error_response(400, "invalid_grant")
    await token_server.start()
    try:
        oauth2 = await create_credential(context.admin, "oauth2", token_server.secrets())
        assert not (await run_connection_test(context.admin, oauth2["id"]))["success"]
    finally:
        await token_server.close()
    events = await load_events(context.services, context.tenant_id, "system.credential.invalid")
    assert {row["data"]["credential_id"] for row in events} == {bearer["id"], oauth2["id"]}


async def _create_tool(context: EmitterContext) -> str:
    return f"/v1/tools/{(await post_json(context.admin, '/v1/tools', TOOL))['data']['id']}"


async def emit_tool_created(context: EmitterContext) -> None:
    await _create_tool(context)


async def emit_tool_updated(context: EmitterContext) -> None:
    read_json(await context.admin.put(await _create_tool(context), {"name": "Renamed"}))


async def emit_tool_deleted(context: EmitterContext) -> None:
    read_json(await context.admin.delete(await _create_tool(context)), 204)


# Outgoing and incoming webhooks


async def _create_webhook(context: EmitterContext, path: str = "/200", *events: str) -> str:
    body = {
        "url": f"{context.receiver.url}{path}",
        "events": list(events) or ["system.test"],
        "headers": {"Authorization": "planted"},
    }
    webhook_id: str = (await post_json(context.admin, "/api/v1/webhooks", body))["id"]
    return f"/api/v1/webhooks/{webhook_id}"


async def emit_webhook_created(context: EmitterContext) -> None:
    await _create_webhook(context)


async def emit_webhook_updated(context: EmitterContext) -> None:
    path = await _create_webhook(context)
    read_json(await context.admin.put(path, {"active": False, "headers": {}}))
    await post_json(context.admin, f"{path}/rotate-secret", {}, 200)


async def emit_webhook_deleted(context: EmitterContext) -> None:
    read_json(await context.admin.delete(await _create_webhook(context)), 204)


async def emit_webhook_disabled(context: EmitterContext) -> None:
    """For a webhook and for a subscription's own address, which both answer 410."""
    await _create_webhook(context, "/410", "agent.created")
    await subscribe_url(context.admin, f"{context.receiver.url}/410")
    await emit_agent_created(context)
    await wait_until_idle(context.services, context.tenant_id)
    events = await load_events(context.services, context.tenant_id, "system.webhook.disabled")
    assert [bool(row["data"]["subscription_id"]) for row in events].count(True) == 1
    assert {row["data"]["reason"] for row in events} == {"gone"}


async def _create_incoming(context: EmitterContext) -> dict[str, Any]:
    path = "/api/v1/incoming-webhooks"
    incoming: dict[str, Any] = await post_json(context.admin, path, {"name": "In"})
    return incoming


async def emit_incoming_webhook_created(context: EmitterContext) -> None:
    await _create_incoming(context)


async def emit_incoming_webhook_updated(context: EmitterContext) -> None:
    path = f"/api/v1/incoming-webhooks/{(await _create_incoming(context))['id']}"
    read_json(await context.admin.put(path, {"active": False, "name": "Renamed"}))


async def emit_incoming_webhook_deleted(context: EmitterContext) -> None:
    path = f"/api/v1/incoming-webhooks/{(await _create_incoming(context))['id']}"
    read_json(await context.admin.delete(path), 204)


async def emit_incoming_webhook_received(context: EmitterContext) -> None:
    """With each JSON type, with a payload too long for the event, and replayed."""
    incoming, caller = await _create_incoming(context), context.world.anonymous()
    path = f"/webhooks/in/{incoming['slug']}"
    for payload in ({"order": 4711}, [1, "two"], "text", 7, {"long": "x" * 40_000}):
        payload_event = await post_json(caller, path, payload, 202)  # type: ignore[arg-type]  # any JSON
    events_path = f"/api/v1/incoming-webhooks/{incoming['id']}/events"
    await post_json(context.admin, f"{events_path}/{payload_event['event_id']}/replay", {}, 202)


# Notifications


async def _create_channel(context: EmitterContext) -> str:
    body = {"name": "Center", "type": "in_app", "config": {}}
    channel = await post_json(context.admin, "/api/v1/notification-channels", body)
    return f"/api/v1/notification-channels/{channel['id']}"


async def emit_channel_created(context: EmitterContext) -> None:
    await _create_channel(context)


async def emit_channel_updated(context: EmitterContext) -> None:
    read_json(await context.admin.put(await _create_channel(context), {"active": False}))


async def emit_channel_deleted(context: EmitterContext) -> None:
    read_json(await context.admin.delete(await _create_channel(context)), 204)


async def emit_channel_revealed(context: EmitterContext) -> None:
    read_json(await context.admin.get(f"{await _create_channel(context)}/reveal"))


async def emit_notification_sent(context: EmitterContext) -> None:
    body = {"role": "tenant_admin", "title": "Hello", "message": "There"}
    await post_json(context.admin, "/api/v1/notifications", body, 202)


# Subscriptions and the rest


async def _create_subscription(context: EmitterContext, event_type: str = "agent.created") -> str:
    """Returns its path."""
    subscription = await create_subscription(context.admin, event_type=event_type)
    return f"/api/v1/event-subscriptions/{subscription['id']}"


async def emit_subscription_created(context: EmitterContext) -> None:
    await _create_subscription(context)


async def emit_subscription_updated(context: EmitterContext) -> None:
    read_json(await context.admin.put(await _create_subscription(context), {"active": False}))
    workflow_id = await find_draft(context.admin)
    path = f"/api/v1/workflows/{workflow_id}/subscriptions/activate"
    await post_json(context.admin, path, {}, 200)


async def emit_subscription_deleted(context: EmitterContext) -> None:
    read_json(await context.admin.delete(await _create_subscription(context)), 204)


async def emit_test(context: EmitterContext) -> None:
    await post_json(context.admin, "/api/v1/events/test", {"event_type": "system.test"}, 202)


async def emit_work_dead(context: EmitterContext) -> None:
    """For the action of a draft, and for a delivery to an endpoint that answers 410."""
    await _create_subscription(context)
    await _create_webhook(context, "/410", "agent.created")
    await emit_agent_created(context)
    await wait_until_idle(context.services, context.tenant_id)
    events = await load_events(context.services, context.tenant_id, "system.work.dead")
    assert {row["data"]["kind"] for row in events} == {"events.act", "webhooks.deliver"}


async def _fail_work(context: EmitterContext) -> str:
    """Returns the path of work that has failed for good."""
    await _create_subscription(context)
    await emit_agent_created(context)
    await wait_until_idle(context.services, context.tenant_id)
    [work, *_] = read_json(await context.admin.get("/api/v1/work"))["data"]
    return f"/api/v1/work/{work['id']}"


async def emit_work_retried(context: EmitterContext) -> None:
    await post_json(context.admin, f"{await _fail_work(context)}/retry", {}, 200)


async def emit_work_dismissed(context: EmitterContext) -> None:
    read_json(await context.admin.delete(await _fail_work(context)), 204)


async def emit_event_chain_stopped(context: EmitterContext) -> None:
    await _create_subscription(context, "system.work.dead")
    await _create_subscription(context)
    await emit_agent_created(context)
    await wait_until_idle(context.services, context.tenant_id)


async def emit_rate_limit_exceeded(context: EmitterContext) -> None:
    """Sets `context.admin` to a user of a tenant with a small plan."""
    plan = {"requests_per_minute": 2, "burst_multiplier": 1}
    tenant_id = await context.world.tenant(limits=plan)
    context.admin = await context.world.user("tenant_admin", tenant_id)
    statuses = [(await context.admin.get("/auth/me")).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]

    async def find_events() -> object:
        return await load_events(context.services, context.tenant_id, "system.rate_limit.exceeded")

    await wait_until(find_events)


EMITTERS: dict[str, Emitter] = {
    **user_emitters.EMITTERS,
    **approval_emitters.EMITTERS,
    **chat_emitters.EMITTERS,
    **embed_emitters.EMITTERS,
    **file_emitters.EMITTERS,
    **form_emitters.EMITTERS,
    **source_emitters.EMITTERS,
    **table_emitters.EMITTERS,
    **workflow_emitters.EMITTERS,
    "agent.created": emit_agent_created,
    "agent.updated": emit_agent_updated,
    "agent.published": emit_agent_published,
    "agent.deleted": emit_agent_deleted,
    "system.document.processed": emit_document_processed,
    "system.document.deleted": emit_document_deleted,
    "system.provider_key.created": emit_provider_key_created,
    "system.provider_key.deleted": emit_provider_key_deleted,
    "system.credential.created": emit_credential_created,
    "system.credential.updated": emit_credential_updated,
    "system.credential.deleted": emit_credential_deleted,
    "system.credential.invalid": emit_credential_invalid,
    "system.tool.created": emit_tool_created,
    "system.tool.updated": emit_tool_updated,
    "system.tool.deleted": emit_tool_deleted,
    "system.notification.sent": emit_notification_sent,
    "system.notification_channel.created": emit_channel_created,
    "system.notification_channel.updated": emit_channel_updated,
    "system.notification_channel.deleted": emit_channel_deleted,
    "system.notification_channel.revealed": emit_channel_revealed,
    "system.webhook.created": emit_webhook_created,
    "system.webhook.updated": emit_webhook_updated,
    "system.webhook.deleted": emit_webhook_deleted,
    "system.webhook.disabled": emit_webhook_disabled,
    "system.incoming_webhook.created": emit_incoming_webhook_created,
    "system.incoming_webhook.updated": emit_incoming_webhook_updated,
    "system.incoming_webhook.deleted": emit_incoming_webhook_deleted,
    "system.incoming_webhook.received": emit_incoming_webhook_received,
    "system.subscription.created": emit_subscription_created,
    "system.subscription.updated": emit_subscription_updated,
    "system.subscription.deleted": emit_subscription_deleted,
    "system.test": emit_test,
    "system.work.dead": emit_work_dead,
    "system.work.retried": emit_work_retried,
    "system.work.dismissed": emit_work_dismissed,
    "system.event.chain_stopped": emit_event_chain_stopped,
    "system.rate_limit.exceeded": emit_rate_limit_exceeded,
}
