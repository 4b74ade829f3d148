"""Builds the question of a request: of whom, in which conversation, with which wishes."""

from collections.abc import Callable
from functools import partial

import msgspec

from app.domain.agents.definition import api as agents
from app.domain.agents.definition.api import AgentRuntime
from app.domain.agents.llm.api import Message, Models
from app.domain.conversations.chat import api as chat
from app.domain.conversations.chat.api import ClientInput, Question, Speaker
from app.domain.conversations.embed import api as embed
from app.http import refunds
from app.http.authorization import principal_of
from app.http.dependencies import HttpRequest
from app.services import Services

from .images import ImageLoader
from .messages import Conversation, check_length

MAX_TOKENS_HEADER = "X-Parley-Max-Tokens"


class Caller(msgspec.Struct, frozen=True):
    """Who asks which agent."""

    runtime: AgentRuntime
    speaker: Speaker
    # To be called when work begins: the request then costs its units even if it is refused.
    keep_charges: Callable[[], None]
    on_tokens: chat.OnTokens | None = None

    def max_tokens_headers(self, wanted: int | None) -> dict[str, str]:
        """Says so when the agent's limit is lower than what the client asks for."""
        limit = chat.max_tokens_of(self.runtime, self.speaker, wanted)
        return {} if wanted is None or limit >= wanted else {MAX_TOKENS_HEADER: str(limit)}


async def load_caller(services: Services, request: HttpRequest, agent_id: str) -> Caller:
    keep_charges = partial(refunds.keep_charges, request.scope["state"])
    if embed.has_key(request):
        agent = embed.agent_of(request, agent_id)
        speaker = Speaker(embed_key_id=agent.embed_key_id)
        on_tokens = await embed.start_use(services, agent)
        return Caller(agent.runtime, speaker, keep_charges, on_tokens)
    principal = principal_of(request)
    principal.require_agent(agent_id)
    async with services.db.tx(principal.scope, autocommit=True) as tx:
        runtime = await agents.load_runtime(tx, services.keyring, agent_id)
    return Caller(runtime, Speaker(principal.user_id), keep_charges)


async def build(
    services: Services,
    caller: Caller,
    conversation: Conversation,
    client: ClientInput,
    conversation_id: str | None = None,
) -> Question:
    """Without a conversation to go on with, the client's history is the model's. With one, all of
    `conversation` is new.
    """
    question, is_visitor = conversation.question, caller.speaker.is_visitor
    history = conversation.history
    messages = [*history, *([question] if question else [])]
    texts = [*client.instructions, *messages]
    check_length(conversation.field, texts, client, is_visitor=is_visitor)
    if any(message.parts for message in messages):
        messages = await _load_images(services, caller, messages)
    client = msgspec.structs.replace(
        client,
        parts=messages[-1].parts if question else (),
        has_question=question is not None,
        results=conversation.results,
    )
    history = messages[:-1] if question else messages
    if conversation_id is None:
        client = msgspec.structs.replace(client, history=history)
    else:
        client = _with_new(client, history)
    return Question(
        speaker=caller.speaker,
        source="openai",
        text=question.content if question else "",
        conversation_id=conversation_id,
        client=client,
        on_tokens=caller.on_tokens,
    )


async def _load_images(
    services: Services, caller: Caller, messages: list[Message]
) -> list[Message]:
    await services.get(Models).check_images(caller.runtime.target)
    loader, tenant_id = ImageLoader(services, caller.keep_charges), caller.runtime.tenant_id
    return await loader.resolve(messages, tenant_id, may_fetch=not caller.speaker.is_visitor)


def _with_new(client: ClientInput, messages: list[Message]) -> ClientInput:
    """Where a client sends its whole history each time, the conversation must not collect its
    system messages.
    """
    if client.keeps_history:
        return msgspec.structs.replace(client, before=messages)
    instructions = [message for message in messages if message.role == "system"]
    before = [message for message in messages if message.role != "system"]
    return msgspec.structs.replace(
        client, before=before, instructions=[*client.instructions, *instructions]
    )
