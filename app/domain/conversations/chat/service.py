"""Chatting with an agent: `answer` waits for the reply, `stream` yields it, `accept` queues it.

The console, web sites and the OpenAI-compatible endpoint use these functions.
"""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from functools import partial
from typing import NamedTuple

from app.domain.agents.definition.api import AgentRuntime
from app.domain.agents.llm.api import Models, NamedFunction
from app.domain.agents.llm.errors import ModelKeyRefused, ModelNotConfigured, ModelRateLimited
from app.kit import logs
from app.kit.errors import ApiError, Invalid, ProviderError, Unavailable
from app.services import Services
from db.session import Scope

from . import turn as turns
from .agent_loop import TokenBudget
from .client_input import ClientInput
from .delegation import toolboxes_for
from .errors import CANNOT_ANSWER
from .persistence import TurnWriter
from .schemas import ChatReply
from .start_turn import Question, load_usable_runtime, resume_many, start_turn
from .stream_events import StreamEvent
from .tool_calls import collect_offers
from .turn import Speaker, Turn

log = logs.get("chat")

_NOT_CONFIGURED_SECONDS = 60


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
    services: Services,
    agent: AgentRuntime | AgentReference,
    question: Question,
    connection: AbstractAsyncContextManager[None] | None = None,
) -> AsyncGenerator[StreamEvent, None]:
    """Returns the events of one turn once the model has begun to answer, or the turn waits for it.
    Raises what happens before, so that the response has a status of its own. `connection`, the
    caller's, cancels the turn until then.
    """
    turn = await _start(services, agent, question)
    events = _run(services, turn, live=True)
    async with connection or nullcontext():
        first = [await anext(events), await anext(events)]
    turn.is_announced = True
    return _continue(first, events)


async def _continue(
    first: list[StreamEvent], events: AsyncGenerator[StreamEvent, None]
) -> AsyncGenerator[StreamEvent, None]:
    async with aclosing(events):
        for event in first:
            yield event
        async for event in events:
            yield event


def _run(services: Services, turn: Turn, *, live: bool) -> AsyncGenerator[StreamEvent, None]:
    events = turns.run(services, turn, TurnWriter(services, turn), live=live)
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
    if question.client is not None:
        await check_client(services, runtime, question.speaker, question.client)
    async with services.db.tx(runtime.tenant_id, autocommit=True) as tx:
        return await start_turn(tx, runtime, question)


async def _check_model(services: Services, runtime: AgentRuntime, speaker: Speaker) -> None:
    try:
        await services.get(Models).check(runtime.target)
    except ModelNotConfigured as error:
        if not speaker.is_visitor:
            raise
        log.warning("a visitor got no answer", agent_id=runtime.agent_id, reason=error.message)
        raise Unavailable(CANNOT_ANSWER, _NOT_CONFIGURED_SECONDS) from error


async def check_client(
    services: Services, runtime: AgentRuntime, speaker: Speaker, client: ClientInput
) -> None:
    """Raises Invalid for functions that the agent has as well, and for what its model lacks."""
    boxes = toolboxes_for(services, runtime, TokenBudget(), 0, speaker.reader)
    own = collect_offers(boxes)
    names = [function.name for function in client.functions]
    for name in names:
        if name in own:
            raise Invalid.field("tools", f"the agent has a tool {name}; rename your function")
    # A visitor neither sees nor calls the tools of the agent.
    choice, callable_names = client.tool_choice, {*names, *(() if speaker.is_visitor else own)}
    if isinstance(choice, NamedFunction) and choice.name not in callable_names:
        raise Invalid.field("tool_choice", f"there is no function {choice.name[:64]} in tools")
    if choice == "required" and not callable_names:
        raise Invalid.field("tool_choice", "needs a function in tools")
    await services.get(Models).check_request(runtime.target, client.field_names())


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
        raise _hide(error) from error


def _hide(error: ProviderError) -> ApiError:
    details = error.details or {}
    hidden: ApiError = ProviderError(CANNOT_ANSWER)
    if isinstance(error, ModelRateLimited | ModelKeyRefused):
        seconds = details.get("retry_after", _NOT_CONFIGURED_SECONDS)
        hidden = Unavailable(CANNOT_ANSWER, seconds)
    # A visitor can ask for another answer instead of the one that failed.
    hidden.details = {"message_id": details["message_id"]} if "message_id" in details else None
    return hidden
