"""How each event about things is brought about: over HTTP, and by workers where they emit it."""

from typing import Any

from aiohttp import web

from app.domain.chat import conversations
from app.domain.events.service import emit_dead
from tests.events import people_factories
from tests.events.people_factories import Deed
from tests.events.scene import Scene, done, made
from tests.events.watching import eventually, log_of, run_sql, settled
from tests.model_server import Reply
from tests.peer import answering
from tests.vault.making import create as create_credential
from tests.vault.making import tried
from tests.vault.servers import TokenServer, denied
from workers.main import JOBS, ON_DEAD
from workers.runner import Runner

AGENT = {"name": "Agent", "primary_model": "x/y", "system_prompt": "Be."}
TOOL = {
    "name": "Tool",
    "category": "custom",
    "tool_type": "webhook",
    "config": {"url": "https://example.com/hook", "method": "POST"},
    "auth_type": "none",
}


# Agents and chat


async def _agent(scene: Scene, **fields: Any) -> str:
    agent = await made(scene.admin, "/api/v1/agents", AGENT | fields)
    return f"/api/v1/agents/{agent['id']}"


async def create_agent(scene: Scene) -> None:
    await _agent(scene)


async def update_agent(scene: Scene) -> None:
    path = await _agent(scene)
    await done(await scene.admin.put(path, {"name": "Renamed", "system_prompt": "Do."}))


async def publish_agent(scene: Scene) -> None:
    path = await _agent(scene)
    await done(await scene.admin.put(path, {"status": "published"}))


async def delete_agent(scene: Scene) -> None:
    answer = await scene.admin.delete(await _agent(scene))
    assert answer.status_code in {200, 204}, answer.text


async def chat(scene: Scene) -> None:
    await (await scene.talker()).say("Hello")


async def complete_chat(scene: Scene) -> None:
    """In each of the ways: ended by hand, silent for long, an asynchronous job well and badly."""
    talk = await scene.talker()
    ended = (await talk.say("Hello"))["conversation_id"]
    await made(scene.admin, f"/api/v1/conversations/{ended}/end", {}, 200)
    idle = (await talk.say("Hello"))["conversation_id"]
    silent = "UPDATE conversations SET last_message_at = now() - interval '1 hour' WHERE id = $1"
    await run_sql(scene.services, silent, idle)
    await conversations.end_idle(scene.services)
    talk.script(Reply(), Reply(status=401))
    for _ in range(2):
        job = await made(scene.admin, f"{talk.path}/chat/async", {"message": "Hi"}, 202)
        await _run_job(scene, job["job_id"])
    kinds = {
        (row["data"]["reason"], row["data"]["status"])
        for row in await log_of(scene.services, scene.tenant_id, "agent.chat.completed")
    }
    wanted = {("ended", None), ("idle", None), ("job", "completed"), ("job", "failed")}
    assert kinds == wanted


async def _run_job(scene: Scene, job_id: str) -> None:
    async with scene.services.db.tx(scene.tenant_id, autocommit=True) as tx:
        raw = await tx.raw()
        work_id = await raw.fetchval("SELECT work_id FROM chat_jobs WHERE id = $1", job_id)
    await Runner(scene.services, JOBS, on_dead=ON_DEAD, on_any_dead=emit_dead).run(work_id)


# Keys, credentials, tools


async def create_embed_key(scene: Scene) -> None:
    await _embed_key(scene)


async def _embed_key(scene: Scene) -> str:
    agent_id = (await _agent(scene, status="published")).rpartition("/")[2]
    body = {"agent_id": agent_id, "name": "Shop", "allowed_domains": ["shop.example.com"]}
    key_id: str = (await made(scene.admin, "/api/v1/embed/api-keys", body))["id"]
    return key_id


async def revoke_embed_key(scene: Scene) -> None:
    path = f"/api/v1/embed/api-keys?id={await _embed_key(scene)}"
    await done(await scene.admin.delete(path), 204)


async def _provider_key(scene: Scene) -> str:
    body = {"provider": "openai", "name": "Ours", "api_key": "sk-0123456789abcdef"}
    key_id: str = (await made(scene.admin, "/api/v1/api-keys", body))["id"]
    return key_id


async def create_provider_key(scene: Scene) -> None:
    await _provider_key(scene)


async def delete_provider_key(scene: Scene) -> None:
    await done(await scene.admin.delete(f"/api/v1/api-keys/{await _provider_key(scene)}"), 204)


async def create_vaulted(scene: Scene) -> None:
    await create_credential(scene.admin)


async def update_credential(scene: Scene) -> None:
    path = f"/v1/credentials/{(await create_credential(scene.admin))['id']}"
    await done(await scene.admin.put(path, {"name": "Renamed"}))
    await done(await scene.admin.put(f"{path}/secrets", {"secrets": {"token": "another"}}))


async def delete_credential(scene: Scene) -> None:
    path = f"/v1/credentials/{(await create_credential(scene.admin))['id']}"
    answer = await scene.admin.delete(path)
    assert answer.status_code in {200, 204}, answer.text


async def spoil_credential(scene: Scene) -> None:
    """A trial that is refused, and a token server that gives none."""

    async def refuse(_: web.Request) -> web.Response:
        return web.Response(status=401)

    async with answering(refuse) as url:
        made_one = await create_credential(scene.admin, metadata={"test_url": url})
        assert not (await tried(scene.admin, made_one["id"]))["success"]
    tokens = TokenServer()
    tokens.answer = lambda _asked: denied(400, "invalid_grant")
    await tokens.start()
    try:
        other = await create_credential(scene.admin, "oauth2", tokens.secrets())
        assert not (await tried(scene.admin, other["id"]))["success"]
    finally:
        await tokens.close()
    found = await log_of(scene.services, scene.tenant_id, "system.credential.invalid")
    assert {row["data"]["credential_id"] for row in found} == {made_one["id"], other["id"]}


async def _tool(scene: Scene) -> str:
    return f"/v1/tools/{(await made(scene.admin, '/v1/tools', TOOL))['data']['id']}"


async def create_tool(scene: Scene) -> None:
    await _tool(scene)


async def update_tool(scene: Scene) -> None:
    await done(await scene.admin.put(await _tool(scene), {"name": "Renamed"}))


async def delete_tool(scene: Scene) -> None:
    answer = await scene.admin.delete(await _tool(scene))
    assert answer.status_code in {200, 204}, answer.text


# Webhooks, both ways


async def webhook(scene: Scene, path: str = "/200", *events: str) -> str:
    body = {
        "url": f"{scene.receiver.url}{path}",
        "events": list(events) or ["system.test"],
        "headers": {"Authorization": "planted"},
    }
    webhook_id: str = (await made(scene.admin, "/api/v1/webhooks", body))["id"]
    return f"/api/v1/webhooks/{webhook_id}"


async def create_webhook(scene: Scene) -> None:
    await webhook(scene)


async def update_webhook(scene: Scene) -> None:
    path = await webhook(scene)
    await done(await scene.admin.put(path, {"active": False, "headers": {}}))
    await made(scene.admin, f"{path}/rotate-secret", {}, 200)


async def delete_webhook(scene: Scene) -> None:
    await done(await scene.admin.delete(await webhook(scene)), 204)


async def lose_endpoint(scene: Scene) -> None:
    """A webhook and a subscription's own address, both gone for good."""
    await webhook(scene, "/410", "agent.created")
    await subscription(scene, url=f"{scene.receiver.url}/410")
    await create_agent(scene)
    await settled(scene.services, scene.tenant_id)
    found = await log_of(scene.services, scene.tenant_id, "system.webhook.disabled")
    assert [bool(row["data"]["subscription_id"]) for row in found].count(True) == 1
    assert {row["data"]["reason"] for row in found} == {"gone"}


async def _incoming(scene: Scene) -> dict[str, Any]:
    found: dict[str, Any] = await made(scene.admin, "/api/v1/incoming-webhooks", {"name": "In"})
    return found


async def create_incoming(scene: Scene) -> None:
    await _incoming(scene)


async def update_incoming(scene: Scene) -> None:
    path = f"/api/v1/incoming-webhooks/{(await _incoming(scene))['id']}"
    await done(await scene.admin.put(path, {"active": False, "name": "Renamed"}))


async def delete_incoming(scene: Scene) -> None:
    path = f"/api/v1/incoming-webhooks/{(await _incoming(scene))['id']}"
    await done(await scene.admin.delete(path), 204)


async def receive(scene: Scene) -> None:
    """Objects, lists, texts, what is too long to be told, and one that is replayed."""
    incoming, caller = await _incoming(scene), scene.world.anonymous()
    path = f"/webhooks/in/{incoming['slug']}"
    for payload in ({"order": 4711}, [1, "two"], "text", 7, {"long": "x" * 40_000}):
        received = await made(caller, path, payload, 202)  # type: ignore[arg-type]  # any JSON
    again = f"/api/v1/incoming-webhooks/{incoming['id']}/events/{received['event_id']}/replay"
    await made(scene.admin, again, {}, 202)


# Subscriptions and the rest


async def subscription(scene: Scene, event_type: str = "agent.created", **config: Any) -> str:
    body = {
        "event_type": event_type,
        "action_type": "webhook" if "url" in config else "workflow",
        "action_config": config or {"workflow_id": "wfl_nothing"},
    }
    made_one = await made(scene.admin, "/api/v1/event-subscriptions", body)
    return f"/api/v1/event-subscriptions/{made_one['id']}"


async def subscribe(scene: Scene) -> None:
    await subscription(scene)


async def update_subscription(scene: Scene) -> None:
    await done(await scene.admin.put(await subscription(scene), {"active": False}))
    await made(scene.admin, "/api/v1/workflows/wfl_nothing/subscriptions/activate", {}, 200)


async def unsubscribe(scene: Scene) -> None:
    await done(await scene.admin.delete(await subscription(scene)), 204)


async def try_out(scene: Scene) -> None:
    """Something that only somebody who tries it out brings about."""
    await made(scene.admin, "/api/v1/events/test", {"event_type": "system.test"}, 202)


async def fail_work(scene: Scene) -> None:
    """An action that nothing runs, and a delivery to an endpoint that is gone."""
    await subscription(scene)
    await webhook(scene, "/410", "agent.created")
    await create_agent(scene)
    await settled(scene.services, scene.tenant_id)
    found = await log_of(scene.services, scene.tenant_id, "system.work.dead")
    assert {row["data"]["kind"] for row in found} == {"events.act", "webhooks.deliver"}


async def chase_own_tail(scene: Scene) -> None:
    await subscription(scene, "system.work.dead")
    await subscription(scene)
    await create_agent(scene)
    await settled(scene.services, scene.tenant_id)


async def ask_too_much(scene: Scene) -> None:
    """As a tenant with a small plan; the scene moves there."""
    plan = {"requests_per_minute": 2, "burst_multiplier": 1}
    scene.admin = await scene.world.user("tenant_admin", await scene.world.tenant(limits=plan))
    answers = [(await scene.admin.get("/auth/me")).status_code for _ in range(3)]
    assert answers == [200, 200, 429]

    async def is_told() -> object:
        return await log_of(scene.services, scene.tenant_id, "system.rate_limit.exceeded")

    await eventually(is_told)


DEEDS: dict[str, Deed] = people_factories.DEEDS | {
    "agent.created": create_agent,
    "agent.updated": update_agent,
    "agent.published": publish_agent,
    "agent.deleted": delete_agent,
    "agent.chat.started": chat,
    "agent.chat.message": chat,
    "agent.chat.completed": complete_chat,
    "system.embed_key.created": create_embed_key,
    "system.embed_key.revoked": revoke_embed_key,
    "system.provider_key.created": create_provider_key,
    "system.provider_key.deleted": delete_provider_key,
    "system.credential.created": create_vaulted,
    "system.credential.updated": update_credential,
    "system.credential.deleted": delete_credential,
    "system.credential.invalid": spoil_credential,
    "system.tool.created": create_tool,
    "system.tool.updated": update_tool,
    "system.tool.deleted": delete_tool,
    "system.webhook.created": create_webhook,
    "system.webhook.updated": update_webhook,
    "system.webhook.deleted": delete_webhook,
    "system.webhook.disabled": lose_endpoint,
    "system.incoming_webhook.created": create_incoming,
    "system.incoming_webhook.updated": update_incoming,
    "system.incoming_webhook.deleted": delete_incoming,
    "system.incoming_webhook.received": receive,
    "system.subscription.created": subscribe,
    "system.subscription.updated": update_subscription,
    "system.subscription.deleted": unsubscribe,
    "system.test": try_out,
    "system.work.dead": fail_work,
    "system.event.chain_stopped": chase_own_tail,
    "system.rate_limit.exceeded": ask_too_much,
}
