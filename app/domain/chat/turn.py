"""One turn of a conversation: an async generator of typed steps, from the question to the kept
reply. Sync, streamed, asynchronous, public and OpenAI-compatible chat are thin layers over it.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from datetime import datetime
from typing import Any, Protocol

import msgspec

from app.domain.agents.brain import Brain
from app.domain.chat import history, queries
from app.domain.chat.calls import forget_unknown
from app.domain.chat.delegation import boxes_of
from app.domain.chat.history import Past
from app.domain.chat.schemas import (
    ChatReply,
    Source,
    ToolCallView,
)
from app.domain.chat.steps import Delta, Finished, Started, Step, Thought, ToolResult, ToolUse
from app.domain.chat.think import Journal, Mind, Spend, think
from app.domain.models.protocol import Message, ModelFailed
from app.http import metrics
from app.kit import background, clock, logs
from app.kit.renewal import Renewal
from app.parts import Parts

log = logs.get("chat")

LEASE_SECONDS = 60.0
TURN_SECONDS = 900.0
_TOO_LONG = f"The turn took more than {TURN_SECONDS:g} seconds"
_RENEW_SECONDS = 20.0


class Who(msgspec.Struct, frozen=True):
    """Whose conversation it is: a user's, or a visitor's under an embed key."""

    user_id: str | None = None
    embed_key_id: str | None = None
    session_id: str | None = None


class Turn(msgspec.Struct, kw_only=True):
    brain: Brain
    who: Who
    source: Source
    conversation_id: str
    question_id: str
    message_id: str
    # Nobody was answered in it yet; and whether this very turn began it.
    is_new: bool
    is_opened: bool = False
    text: str
    context: dict[str, Any] | None = None
    past: list[Past] = []
    asked_at: datetime = msgspec.field(default_factory=clock.now)
    # An asynchronous chat keeps its question when it is accepted, and holds by its job's id.
    question_kept: bool = False
    holder: str
    # What a caller of the OpenAI-compatible endpoint may ask for, within the agent's own limits.
    temperature: float | None = None
    max_tokens: int | None = None
    response_format: dict[str, Any] | None = None
    told: list[Message] = []


class Talk:
    """What has been said and done so far; half of it is still worth keeping."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.calls: dict[str, ToolCallView] = {}
        self.functions: dict[str, str] = {}
        self.spend = Spend()
        self.started = time.perf_counter()

    def hear(self, step: Thought) -> None:
        match step:
            case Delta(delta):
                self.texts.append(delta)
            case ToolUse():
                self.functions[step.id] = step.function
                self.calls[step.id] = ToolCallView(
                    step.id, step.tool, step.tool_id, step.input, None, "failed", 0, step.parent_id
                )
            case ToolResult():
                call = self.calls[step.id]
                call.output, call.status = step.output, step.status
                call.execution_time_ms = step.execution_time_ms

    @property
    def content(self) -> str:
        return "".join(self.texts)

    @property
    def is_empty(self) -> bool:
        return not self.texts and not self.calls


class Keeper(Protocol):
    """Where a turn goes when it is over: kept whole, or as far as it came."""

    async def whole(self, talk: Talk) -> ChatReply: ...

    async def part(self, talk: Talk) -> None: ...


# Running


async def run(
    parts: Parts, turn: Turn, keeper: Keeper, *, live: bool, journal: Journal | None = None
) -> AsyncGenerator[Step, None]:
    """The steps of the turn. Whatever ends it early, what was said until then is kept."""
    talk = Talk()
    with background.busy():
        try:
            yield Started(turn.conversation_id, turn.message_id)
            async with (
                _renewed(parts, turn),
                aclosing(_thoughts(parts, turn, talk, journal, live=live)) as steps,
            ):
                async for step in steps:
                    talk.hear(step)
                    yield step
                reply = await keeper.whole(talk)
        except BaseException:
            metrics.TURNS.labels(turn.source, "interrupted").inc()
            # In a task of its own: whoever is cancelled here must not take the reply along.
            await asyncio.shield(background.spawn(keeper.part(talk)))
            raise
    metrics.TURNS.labels(turn.source, "answered").inc()
    yield Finished(reply)


async def _thoughts(
    parts: Parts, turn: Turn, talk: Talk, journal: Journal | None, *, live: bool
) -> AsyncGenerator[Thought, None]:
    mind = _mind(parts, turn, talk.spend, live=live)
    if journal is not None:
        forget_unknown(journal.rounds, mind.boxes)
    messages = await _messages(parts, turn, mind)
    async with aclosing(think(mind, messages, talk.spend, journal)) as steps:
        async for step in steps:
            yield step
            if time.perf_counter() - talk.started > TURN_SECONDS:
                raise ModelFailed(mind.target.model, "timeout", _TOO_LONG)


async def reply_of(steps: AsyncGenerator[Step, None]) -> ChatReply:
    """For callers who want the end of it only."""
    async with aclosing(steps):
        async for step in steps:
            if isinstance(step, Finished):
                return step.reply
    raise RuntimeError("a turn ended without a reply")


def _mind(parts: Parts, turn: Turn, spend: Spend, *, live: bool) -> Mind:
    brain = turn.brain
    return Mind(
        models=parts.models,
        target=brain.target,
        temperature=brain.temperature if turn.temperature is None else turn.temperature,
        max_tokens=min(brain.max_tokens, turn.max_tokens or brain.max_tokens),
        boxes=boxes_of(parts, brain, spend, 0, public=turn.who.embed_key_id is not None),
        live=live,
        response_format=turn.response_format,
    )


async def _messages(parts: Parts, turn: Turn, mind: Mind) -> list[Message]:
    first = history.system_message(turn.brain.system_prompt, turn.context)
    question = Message("user", turn.text)
    window = await parts.models.window_of(mind.target)
    budget = history.budget_for(window, mind.max_tokens, first.content, turn.text)
    if turn.told:
        return history.joined([first, *history.trimmed(turn.told, budget), question])
    with_calls = any(box.offers for box in mind.boxes)
    past = history.fitting(turn.past, budget, with_calls=with_calls)
    return history.joined([first, *past, question])


@asynccontextmanager
async def _renewed(parts: Parts, turn: Turn) -> AsyncIterator[None]:
    """Hold the conversation for as long as it takes; a job holds it anyway."""
    if turn.holder != turn.message_id:
        yield
        return
    held = (turn.brain.tenant_id, turn.conversation_id, turn.holder, LEASE_SECONDS)

    async def renew() -> None:
        async with parts.db.tx(turn.brain.tenant_id, read_only=True) as tx:
            await queries.renew(tx, *held)

    renewal = Renewal(_RENEW_SECONDS, renew)
    try:
        yield
    finally:
        renewal.stop()
