"""Functions that emit the events of conversations."""

from app.domain.conversations.chat import conversations
from app.domain.platform.events.service import emit_dead
from tests.database import run_sql
from tests.model_server import Reply
from tests.platform.events.database import load_events
from tests.platform.events.emitter_context import EmitterContext
from tests.platform.events.responses import post_json
from tests.platform.events.user_emitters import Emitter
from workers.runner import Runner


async def emit_agent_chat_message(context: EmitterContext) -> None:
    await (await context.create_talker()).say("Hello")


async def emit_agent_chat_failed(context: EmitterContext) -> None:
    """By a request and by a job."""
    talker = await context.create_talker()
    talker.script(Reply(status=401))
    answer = await context.admin.post(f"{talker.path}/chat", {"message": "Hi"})
    assert answer.status_code == 409
    job = await post_json(context.admin, f"{talker.path}/chat/async", {"message": "Hi"}, 202)
    await _run_job(context, job["job_id"])
    rows = await load_events(context.services, context.tenant_id, "agent.chat.failed")
    assert {row["data"]["source"] for row in rows} == {"console", "async"}


async def emit_agent_chat_completed(context: EmitterContext) -> None:
    """For each reason: ended by a request, idle, and a job that succeeds or fails."""
    talker = await context.create_talker()
    ended_id = (await talker.say("Hello"))["conversation_id"]
    await post_json(context.admin, f"/api/v1/conversations/{ended_id}/end", {}, 200)
    idle_id = (await talker.say("Hello"))["conversation_id"]
    make_idle = "UPDATE conversations SET last_message_at = now() - interval '1 hour' WHERE id = $1"
    await run_sql(context.services, make_idle, idle_id)
    await conversations.end_idle(context.services)
    talker.script(Reply(), Reply(status=401))
    for _ in range(2):
        job = await post_json(context.admin, f"{talker.path}/chat/async", {"message": "Hi"}, 202)
        await _run_job(context, job["job_id"])
    outcomes = {
        (row["data"]["reason"], row["data"]["status"])
        for row in await load_events(context.services, context.tenant_id, "agent.chat.completed")
    }
    expected = {("ended", None), ("idle", None), ("job", "completed"), ("job", "failed")}
    assert outcomes == expected


async def emit_agent_chat_rated(context: EmitterContext) -> None:
    """A rating with a comment, and its withdrawal."""
    reply = await (await context.create_talker()).say("Hello")
    messages = f"/api/v1/conversations/{reply['conversation_id']}/messages"
    path = f"{messages}/{reply['message']['id']}/feedback"
    for body in ({"rating": "down", "comment": "Wrong."}, {"rating": None}):
        await post_json(context.admin, path, body, 200)


async def _run_job(context: EmitterContext, job_id: str) -> None:
    async with context.services.db.tx(context.tenant_id, autocommit=True) as tx:
        raw = await tx.raw()
        work_id = await raw.fetchval("SELECT work_id FROM chat_jobs WHERE id = $1", job_id)
    await Runner(context.services, on_any_dead=emit_dead).run(work_id)


EMITTERS: dict[str, Emitter] = {
    "agent.chat.started": emit_agent_chat_message,
    "agent.chat.message": emit_agent_chat_message,
    "agent.chat.failed": emit_agent_chat_failed,
    "agent.chat.completed": emit_agent_chat_completed,
    "agent.chat.rated": emit_agent_chat_rated,
}
