"""Makes the question of a turn whole before it is searched, by rules or by a model."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import Final

from app.domain.agents.definition.api import KnowledgeInfo
from app.domain.agents.llm.api import (
    LOCAL,
    Finished,
    Message,
    ModelRequest,
    Models,
    Target,
    Text,
    UsedTokens,
    cost_usd,
    load_target,
)
from app.domain.agents.llm.errors import ModelFailed, ModelNotConfigured
from app.domain.agents.usage import api as usage
from app.domain.agents.usage.api import ModelCall
from app.kit import logs
from app.services import Services

from . import follow_ups

log = logs.get("knowledge")

MODEL_SECONDS: Final = 4.0
# A model that thinks before it answers needs more tokens than the question has.
_MAX_TOKENS = 300
_MAX_QUESTION_CHARS = 500
_PROMPT = """\
You get the last questions of a user, the newest at the end. Write the newest one anew, so that it \
can be understood without the others: put in what it refers to. Keep its language. Do not answer \
it. Write the question alone."""


async def complete(
    services: Services,
    tenant_id: str,
    base: KnowledgeInfo,
    question: str,
    earlier: Sequence[str],
    target: Target | None,
) -> str:
    """Returns what to search for. `earlier` has the user's messages before the question, the newest
    last; `target` is the agent's model, which is called for a question that goes on from them, if
    the settings say so.
    """
    mode = base.settings.complete_questions
    if mode == "off":
        return question
    if mode == "model" and follow_ups.is_follow_up(question, earlier):
        if base.settings.question_model is not None:
            target = await _load_target(services, tenant_id, base.settings.question_model)
        # The local model is too slow, and other turns wait for it.
        if target is not None and target.provider != LOCAL:
            messages = _build_messages(question, earlier)
            whole = await _ask_model(services, tenant_id, base.agent_id, target, messages)
            if whole is not None:
                return whole
    return follow_ups.add_subject(question, earlier)


async def _load_target(services: Services, tenant_id: str, model: str) -> Target:
    async with services.db.tx(tenant_id, autocommit=True) as tx:
        return await load_target(tx, services.keyring, tenant_id, model)


def _build_messages(question: str, earlier: Sequence[str]) -> list[Message]:
    known = [text[: follow_ups.MAX_EARLIER_CHARS] for text in earlier[-follow_ups.MAX_EARLIER :]]
    listed = "\n".join(f"- {' '.join(text.split())}" for text in [*known, question])
    return [Message("system", _PROMPT), Message("user", listed)]


async def _ask_model(
    services: Services, tenant_id: str, agent_id: str, target: Target, messages: list[Message]
) -> str | None:
    """Returns None when the model fails, takes too long or writes more than a question."""
    texts: list[str] = []
    used = UsedTokens(0, 0)
    is_whole = False
    request = ModelRequest(
        messages=messages,
        temperature=0.0,
        max_tokens=_MAX_TOKENS,
        is_streamed=False,
        may_retry=False,
        tenant_id=tenant_id,
        seconds=MODEL_SECONDS,
    )
    try:
        async with (
            asyncio.timeout(MODEL_SECONDS),
            aclosing(services.get(Models).answer(target, request)) as parts,
        ):
            async for part in parts:
                match part:
                    case Text(text):
                        texts.append(text)
                    case UsedTokens():
                        used = part
                    case Finished(reason):
                        is_whole = reason == "stop"
    except (ModelFailed, ModelNotConfigured, TimeoutError) as error:
        problem = str(error)[:200] or "timeout"
        log.warning("a question was not rewritten", model=target.model, reason=problem)
    await _count_usage(services, tenant_id, agent_id, target.model, used)
    whole = " ".join("".join(texts).split())
    return whole if is_whole and 0 < len(whole) <= _MAX_QUESTION_CHARS else None


async def _count_usage(
    services: Services, tenant_id: str, agent_id: str, model: str, used: UsedTokens
) -> None:
    tokens = (used.prompt_tokens, used.completion_tokens)
    if any(tokens):
        call = ModelCall("question", model, *tokens, await cost_usd(model, *tokens))
        await usage.add_call(services.db, tenant_id, agent_id, call)
