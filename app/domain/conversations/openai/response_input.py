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
from .messages import Conversation, max_chars_of
from .questions import Caller
from .response_items import StoredItems
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
        text=parameters.describe_text(data.text),
        tool_choice=functions.describe_choice("tool_choice", data.tool_choice),
        tools=[_without_none(tool) for tool in data.tools or []],
        top_p=data.top_p,
        user=data.user,
    )


def _without_none(struct: msgspec.Struct) -> dict[str, Any]:
    fields = msgspec.to_builtins(struct)
    return {name: value for name, value in fields.items() if value is not None}


async def build_question(
    services: Services, caller: Caller, data: ResponseRequest, settings: ResponseSettings
) -> Question:
    is_visitor = caller.speaker.is_visitor
    parameters.check(data, is_visitor=is_visitor)
    known, previous, conversation_id = await _load(services, caller, data)
    conversation = response_items.convert(data.input, known, is_trusted=not is_visitor)
    if data.background and conversation.has_images:
        raise Invalid.field("background", "cannot be combined with images")
    if conversation_id is None:
        _check_outputs(conversation)
    else:
        conversation = conversation.with_outputs_apart()
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
) -> tuple[StoredItems, ClientAnswer | None, str | None]:
    """Returns the items that the request only names, the answer that it continues, and the
    conversation.
    """
    runtime, speaker, previous_id = caller.runtime, caller.speaker, data.previous_response_id
    conversation, previous = data.conversation, None
    if isinstance(conversation, ResponseConversation):
        conversation = conversation.id
    goes_on = conversation is not None or previous_id is not None
    answer_ids = response_items.list_answers(data.input, goes_on=goes_on)
    if not answer_ids and previous_id is None:
        return StoredItems(), None, conversation
    max_chars = max_chars_of(is_visitor=speaker.is_visitor)
    async with services.db.tx(runtime.tenant_id, autocommit=True) as tx:
        if previous_id is not None:
            message_id = responses.message_id_of(previous_id)
            previous = await chat.find_answer(tx, speaker, message_id)
            if previous is None or previous.agent_id != runtime.agent_id:
                raise responses.not_found(previous_id)
            conversation = previous.conversation_id
        answers = await chat.find_items(tx, runtime, speaker, answer_ids, max_chars)
    if answers is None:
        raise Invalid.field("input", f"must have at most {max_chars} characters in total")
    return _to_items(answers, conversation), previous, conversation


def _to_items(answers: dict[str, chat.AnswerItem], conversation_id: str | None) -> StoredItems:
    items: dict[str, Message] = {}
    in_conversation: set[str] = set()
    for message_id, answer in answers.items():
        own = {message_id: Message("assistant", answer.content)}
        for call in answer.calls:
            name, arguments = call["function"], encode_arguments(call["input"])
            made = ToolCall(call["id"], name, arguments)
            own[responses.item_id(call["id"])] = Message("assistant", "", (made,))
        items |= own
        if answer.conversation_id == conversation_id:
            in_conversation.update(own)
    return StoredItems(items, frozenset(in_conversation))


def _check_outputs(conversation: Conversation) -> None:
    known = {call.id for message in conversation.history for call in message.tool_calls}
    for message in conversation.history:
        if message.tool_call_id is not None and message.tool_call_id not in known:
            call_id = message.tool_call_id[:64]
            raise Invalid.field("input", f"has an output of the call {call_id}, but not the call")
