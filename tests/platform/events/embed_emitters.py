"""Emits the events of embed keys."""

from typing import Final

from tests.conversations.embed.factories import KEYS_PATH, create_agent, create_embed_key
from tests.platform.events.emitter_context import EmitterContext
from tests.platform.events.responses import read_json
from tests.platform.events.user_emitters import Emitter


async def _create_key(context: EmitterContext) -> str:
    agent_id = await create_agent(context.admin)
    key = await create_embed_key(context.admin, agent_id, allowed_domains=["shop.example.com"])
    return str(key["id"])


async def emit_embed_key_created(context: EmitterContext) -> None:
    await _create_key(context)


async def emit_embed_key_updated(context: EmitterContext) -> None:
    path = f"{KEYS_PATH}/{await _create_key(context)}"
    read_json(await context.admin.put(path, {"require_session_token": True}))


async def emit_embed_key_revoked(context: EmitterContext) -> None:
    read_json(await context.admin.delete(f"{KEYS_PATH}?id={await _create_key(context)}"), 204)


EMITTERS: Final[dict[str, Emitter]] = {
    "system.embed_key.created": emit_embed_key_created,
    "system.embed_key.updated": emit_embed_key_updated,
    "system.embed_key.revoked": emit_embed_key_revoked,
}
