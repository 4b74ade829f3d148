"""Builds the question of a request for a response."""

from typing import Any

import msgspec

from app.domain.agents.llm.api import Message, Role, ToolCall
from app.domain.conversations.chat import api as chat
from app.domain.conversations.chat.api import ClientAnswer, ClientInput, Question
from app.kit.errors import Invalid
from app.services import Services

from . import functions, questions, response_items, responses
from . import response_parameters as parameters
from .completions import encode_arguments
from .messages import Conversation
from .questions import Caller
from .response_items import MESSAGE_PREFIX, Known
from .response_schemas import (
    ReasoningOptions,
    ResponseConversation,
    ResponseRequest,
    ResponseSettings,
)


def settings_of(caller: Caller, data: ResponseRequest) -> ResponseSettings:
    wanted = data.max_output_tokens
    limit = chat.max_tokens_of(caller.runtime, caller.speaker, wanted)
    temperature = caller.runtime.temperature if data.temperature is None else data.temperature
    return ResponseSettings(
        background=bool(data.background),
        instructions=data.instructions,
        max_output_tokens=None if wanted is None else limit,
        metadata=data.metadata or {},
        parallel_tool_calls=data.parallel_tool_calls is not False,
        previous_response_id=data.previous_response_id,
        reasoning=data.reasoning or ReasoningOptions(),
        store=data.store is not False,
        temperature=temperature,
        text={"format": {"type": "text"}, **_without_none(data.text)},
        tool_choice=data.tool_choice or "auto",
        tools=[_without_none(tool) for tool in data.tools or []],
        top_p=data.top_p,
        user=data.user,
    )


def _without_none(struct: msgspec.Struct | None) -> dict[str, Any]:
    fields = msgspec.to_builtins(struct) if struct is not None else {}
    return {name: value for name, value in fields.items() if value is not None}


async def build_question(
    services: Services, caller: Caller, data: ResponseRequest, settings: ResponseSettings
) -> Question:
    is_visitor = caller.speaker.is_visitor
    parameters.check(data, is_visitor=is_visitor)
    known, previous = await _load(services, caller, data)
    conversation = response_items.convert(data.input, known, is_trusted=not is_visitor)
    if previous is not None:
        conversation_id: str | None = previous.conversation_id
    elif isinstance(data.conversation, ResponseConversation):
        conversation_id = data.conversation.id
    else:
        conversation_id = data.conversation
    if conversation_id is None:
        _check_outputs(conversation)
    client = _build_input(data, settings, is_trusted=not is_visitor)
    if previous is not None:
        client = msgspec.structs.replace(client, follows=previous.message_id)
    return await questions.build(services, caller, conversation, client, conversation_id)


def _build_input(
    data: ResponseRequest, settings: ResponseSettings, *, is_trusted: bool
) -> ClientInput:
    role: Role = "system" if is_trusted else "user"
    is_stored = data.store is not False
    return ClientInput(
        instructions=[Message(role, data.instructions)] if data.instructions else [],
        keeps_history=is_stored,
        functions=functions.build_functions(parameters.read_definitions(data.tools or [])),
        tool_choice=functions.read_choice("tool_choice", data.tool_choice),
        temperature=data.temperature,
        max_tokens=data.max_output_tokens,
        response_format=parameters.read_format(data.text),
        options=parameters.read_options(data),
        is_stored=is_stored,
        kept={"response": msgspec.to_builtins(settings)},
    )


async def _load(
    services: Services, caller: Caller, data: ResponseRequest
) -> tuple[Known, ClientAnswer | None]:
    """Returns the items that the request only names, and the answer that it continues."""
    references, previous_id = response_items.list_references(data.input), data.previous_response_id
    if not references and previous_id is None:
        return {}, None
    runtime, speaker, previous = caller.runtime, caller.speaker, None
    async with services.db.tx(runtime.tenant_id, autocommit=True) as tx:
        if previous_id is not None:
            message_id = responses.message_id_of(previous_id)
            previous = await chat.find_answer(tx, speaker, message_id)
            if previous is None or previous.agent_id != runtime.agent_id:
                raise responses.not_found(previous_id)
        answer_ids = _answers_of(references)
        known = await chat.find_earlier_answers(tx, runtime, speaker, answer_ids)
    return _to_items(known), previous


def _answers_of(references: list[str]) -> list[str]:
    """An item's id has the id of its answer, and a call's a number as well."""
    parts = (reference.split("_") for reference in references)
    return [f"{MESSAGE_PREFIX}{part[1]}" for part in parts if len(part) > 1]


def _to_items(known: dict[str, chat.EarlierAnswer]) -> Known:
    items: dict[str, Message] = {}
    for message_id, answer in known.items():
        items[message_id] = Message("assistant", answer.content)
        for call in answer.client_calls:
            name, arguments = call["function"], encode_arguments(call["input"])
            made = ToolCall(call["id"], name, arguments)
            items[responses.item_id(call["id"])] = Message("assistant", "", (made,))
    return items


def _check_outputs(conversation: Conversation) -> None:
    known = {call.id for message in conversation.history for call in message.tool_calls}
    for message in conversation.history:
        if message.tool_call_id is not None and message.tool_call_id not in known:
            call_id = message.tool_call_id[:64]
            raise Invalid.field("input", f"has an output of the call {call_id}, but not the call")
