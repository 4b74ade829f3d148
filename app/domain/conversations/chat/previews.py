"""Turns with a state of an agent that is not stored."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager

import msgspec

from app.context import RequestContext
from app.domain.agents.definition import api as agents
from app.domain.agents.definition.api import AgentRuntime
from app.kit.errors import Invalid

from . import replays, service
from .preview_schemas import PreviewRequest
from .schemas import PREVIEW
from .start_turn import Question
from .stream_events import StreamEvent
from .turn import Replay, Speaker


async def stream(
    context: RequestContext,
    agent_id: str,
    data: PreviewRequest,
    connection: AbstractAsyncContextManager[None],
) -> AsyncGenerator[StreamEvent, None]:
    """Returns the events of a turn, as `service.stream` does."""
    if data.message is None and data.replay_of is None:
        raise Invalid.field("message", "is required, unless there is a replay_of")
    if data.replay_of is not None and data.conversation_id is not None:
        raise Invalid.field("replay_of", "begins a new conversation; leave out conversation_id")
    runtime, replay = await _load(context, agent_id, data)
    question = Question(
        speaker=Speaker(context.principal.user_id),
        source=PREVIEW,
        text=data.message or (replay.text if replay is not None else ""),
        conversation_id=data.conversation_id,
        replaces=data.replaces,
        attachments=data.attachments,
        context=data.context,
        replay=replay,
    )
    return await service.stream(context.services, runtime, question, connection)


async def _load(
    context: RequestContext, agent_id: str, data: PreviewRequest
) -> tuple[AgentRuntime, Replay | None]:
    services, principal = context.services, context.principal
    async with services.db.tx(principal.scope, autocommit=True) as tx:
        ids = (tx, services.keyring, agent_id)
        runtime = await agents.load_draft_runtime(*ids, data.draft)
        if data.replay_of is None:
            return runtime, None
        replay = await replays.find(tx, principal, runtime, data.replay_of)
    if data.message is not None:
        # Another question, without the files of that one.
        replay = msgspec.structs.replace(replay, attachments=[])
    return runtime, replay
