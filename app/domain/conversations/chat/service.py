"""Chatting with an agent: `answer` waits for the reply, `stream` yields it, `accept` queues it.

The console, web sites and the OpenAI-compatible endpoint use these functions.
"""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from functools import partial
from typing import NamedTuple

from app.domain.agents.definition.api import AgentRuntime
from app.domain.agents.llm.api import Models
from app.domain.agents.llm.errors import ModelNotConfigured
from app.kit import logs
from app.kit.errors import ProviderError, Unavailable
from app.services import Services
from db.session import Scope

from . import turn as turns
from .errors import CANNOT_ANSWER
from .persistence import TurnWriter
from .schemas import ChatReply
from .start_turn import Question, load_usable_runtime, resume_many, start_turn
from .stream_events import StreamEvent
from .turn import Speaker, Turn

log = logs.get("chat")


class AgentReference(NamedTuple):
    """An agent that is not loaded yet, within the scope of the caller."""

    scope: Scope
    agent_id: str


async def answer(
    services: Services,
    agent: AgentRuntime | AgentReference,
    question: Question,
    connection: AbstractAsyncContextManager[None] | None = None,
) -> ChatReply:
    """Runs one turn to its end, or until `connection`, the caller's, cancels it."""
    turn = await _start(services, agent, question)
    async with connection or nullcontext():
        return await turns.final_reply(_run(services, turn, live=False))


async def stream(
    services: Services, agent: AgentRuntime | AgentReference, question: Question
) -> AsyncGenerator[StreamEvent, None]:
    """Returns the events of one turn. Raises before the stream starts when the turn is refused."""
    turn = await _start(services, agent, question)
    return _run(services, turn, live=True)


def _run(services: Services, turn: Turn, *, live: bool) -> AsyncGenerator[StreamEvent, None]:
    events = turns.run(services, turn, TurnWriter(services, turn, live=live), live=live)
    return _hide_provider_errors(events) if turn.speaker.is_visitor else events


async def _start(
    services: Services, agent: AgentRuntime | AgentReference, question: Question
) -> Turn:
    if isinstance(agent, AgentReference):
        is_plain = question.replaces is None and not question.attachments
        if question.conversation_id is not None and is_plain:
            together = partial(resume_many, services, agent.scope, agent.agent_id)
            turn = await services.batches.join(("resume", *agent), question, together)
            if turn is not None:
                return turn
        runtime = await load_usable_runtime(services, agent.scope, agent.agent_id)
    else:
        await _check_model(services, agent, question.speaker)
        runtime = agent
    async with services.db.tx(runtime.tenant_id, autocommit=True) as tx:
        return await start_turn(tx, runtime, question)


async def _check_model(services: Services, runtime: AgentRuntime, speaker: Speaker) -> None:
    try:
        await services.get(Models).check(runtime.target)
    except ModelNotConfigured as error:
        if not speaker.is_visitor:
            raise
        log.warning("a visitor got no answer", agent_id=runtime.agent_id, reason=error.message)
        raise Unavailable(CANNOT_ANSWER, 60) from error


async def _hide_provider_errors(
    events: AsyncGenerator[StreamEvent, None],
) -> AsyncGenerator[StreamEvent, None]:
    """Visitors read only that the agent cannot answer."""
    try:
        async with aclosing(events):
            async for event in events:
                yield event
    except ProviderError as error:
        log.warning("a visitor got no answer", reason=error.message)
        raise ProviderError(CANNOT_ANSWER) from error
