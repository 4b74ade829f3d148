"""Fills in a form by chat: each message is read, checked by the fields, and answered by the next
question. The last answer submits the form.

A turn is stored once, after the model was asked: of two messages at the same time, one is refused.
"""

import secrets
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, Final

import msgspec

from app.domain.forms.definition.api import (
    FormDefinition,
    InputField,
    LiveForm,
    language_tables,
    live,
    options,
    patterns,
    say,
)
from app.domain.forms.definition.errors import InvalidFormState
from app.domain.forms.submissions.api import (
    AcceptedSubmission,
    Answers,
    Origin,
    Progress,
    answer_threads,
    progress,
    submitting,
    uploads,
)
from app.domain.forms.submissions.errors import InvalidAnswers
from app.jobs import background
from app.kit import clock
from app.kit.errors import Invalid
from app.kit.ids import new_id
from app.kit.languages import Language
from app.services import Services
from db.session import ALL_TENANTS, Tx

from . import conversation_queries as queries
from . import dialogue, extraction, interpreting
from .conversation_queries import Conversation
from .conversation_schemas import (
    FormConversationView,
    FormMessageView,
    FormTurn,
    StartedFormConversation,
)
from .errors import FormConversationNotFound, MessageConflict
from .interpreting import Extract, Question, Reading

_LIFETIME = timedelta(days=30)
_MAX_TURNS: Final = 500
_MAX_MESSAGES: Final = 2 * _MAX_TURNS + 1
_MAX_CHARS = 4000
_ID_CHARS = "0123456789abcdefghjkmnpqrstvwxyz"
_SECRET_CHARS = 26
_BATCH = 500

StoreTurn = Callable[[Tx, FormTurn], Awaitable[None]]
StoreStart = Callable[[Tx, StartedFormConversation], Awaitable[None]]


# Starting and reading


async def start(
    services: Services, form: LiveForm, data: dict[str, Any], language: Language, store: StoreStart
) -> StartedFormConversation:
    """Raises InvalidAnswers for answers that are known and wrong, or that chat cannot ask for."""
    form.require_open()
    definition = await _load_definition(services, form, form.version)
    state = await _compute(services, form, definition, data)
    problems = list(state.problems.items()) + _find_unaskable(definition, state)
    expires_at = clock.now() + _LIFETIME
    problems += await options.find_problems(services, form.tenant_id, definition, state.values)
    problems += await uploads.keep(services, form, definition, state.values, expires_at)
    field = state.next_field
    if problems or field is None:
        raise InvalidAnswers.of(problems or [("data", "answers all fields; submit it instead")])
    async with services.db.tx(form.tenant_id) as tx:
        conversation = await queries.insert(
            tx,
            form.tenant_id,
            _new_secret_id(),
            form.id,
            form.version,
            msgspec.json.encode(state.values).decode(),
            [text.id for text in state.next_texts],
            field.id,
            expires_at,
            language,
        )
        with language_tables.speak(language):
            greeting = dialogue.greet(form, field, state.next_texts)
        message = await _add_message(tx, conversation, 0, greeting, field.id)
        started = StartedFormConversation(_build_view(form, conversation, state), message)
        await store(tx, started)
    return started


async def _load_definition(services: Services, form: LiveForm, version: int) -> FormDefinition:
    definition = await live.load_definition(services, form, version)
    return await options.fill(services, form.tenant_id, definition)


async def _compute(
    services: Services,
    form: LiveForm,
    definition: FormDefinition,
    data: dict[str, Any],
    skipped: Sequence[str] = (),
) -> Progress:
    return await answer_threads.run(
        services, form.tenant_id, definition, progress.compute, definition, data, skipped
    )


def _new_secret_id() -> str:
    """Anyone who knows it can continue the conversation, so it must be impossible to guess."""
    return "fcv_" + "".join(secrets.choice(_ID_CHARS) for _ in range(_SECRET_CHARS))


def _find_unaskable(definition: FormDefinition, state: Progress) -> list[tuple[str, str]]:
    """Returns the fields that must have been answered before: nobody is asked for them."""
    return [
        (field.id, say("required"))
        for field in definition.inputs
        if not field.type.is_asked
        and field.definition.required
        and field.definition.conditional is None
        and field.id not in state.values
    ]


async def find(services: Services, form: LiveForm, conversation_id: str) -> Conversation:
    async with services.db.tx(form.tenant_id, autocommit=True) as tx:
        conversation = await queries.find(tx, form.tenant_id, form.id, conversation_id)
    if conversation is None:
        raise FormConversationNotFound("This conversation does not exist")
    return conversation


async def get(services: Services, form: LiveForm, conversation_id: str) -> FormConversationView:
    conversation = await find(services, form, conversation_id)
    definition = await live.load_definition(services, form, conversation.version)
    state = await _compute(services, form, definition, conversation.data, conversation.skipped)
    return _build_view(form, conversation, state)


def _build_view(form: LiveForm, row: Conversation, state: Progress) -> FormConversationView:
    return FormConversationView(
        row.id,
        form.slug,
        row.status,
        state.completed,
        len(state.asked),
        row.data,
        row.submission_id,
        row.created_at,
        row.language,
    )


async def list_messages(
    services: Services, form: LiveForm, conversation_id: str
) -> list[FormMessageView]:
    """The oldest first."""
    conversation = await find(services, form, conversation_id)
    async with services.db.tx(form.tenant_id, autocommit=True) as tx:
        return await queries.list_messages(tx, form.tenant_id, conversation.id, _MAX_MESSAGES)


# Turns


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """A message that is being answered."""

    services: Services
    form: LiveForm
    definition: FormDefinition
    conversation: Conversation
    content: str
    origin: Origin
    store: StoreTurn

    async def compute(self, data: dict[str, Any], skipped: Sequence[str]) -> Progress:
        return await _compute(self.services, self.form, self.definition, data, skipped)

    async def read(self, question: Question, extract: Extract | None = None) -> Reading:
        run, tenant_id = answer_threads.run, self.form.tenant_id
        args = (interpreting.read, question, self.content, extract)
        return await run(self.services, tenant_id, self.definition, *args)


async def open_turn(
    services: Services,
    form: LiveForm,
    conversation_id: str,
    content: str,
    origin: Origin,
    store: StoreTurn,
) -> Turn:
    """Raises what refuses the message, before anything is streamed."""
    form.require_open()
    conversation = await find(services, form, conversation_id)
    if conversation.status == "completed":
        raise InvalidFormState("This conversation is completed; the form was submitted")
    if conversation.turn >= _MAX_TURNS:
        raise InvalidFormState(f"A conversation has at most {_MAX_TURNS} messages")
    definition = await _load_definition(services, form, conversation.version)
    field = definition.by_id.get(conversation.current_field or "")
    is_long = field is not None and field.type.is_long
    if len(content) > _MAX_CHARS and not is_long:
        raise Invalid.field("content", f"must have at most {_MAX_CHARS:,} characters")
    return Turn(
        services=services,
        form=form,
        definition=definition,
        conversation=conversation,
        content=content,
        origin=msgspec.structs.replace(
            origin, source="conversation", conversation_id=conversation.id
        ),
        store=store,
    )


async def take(turn: Turn) -> FormTurn:
    """Reads the message, stores what it answers, and asks the next question or submits. A cancelled
    caller ends the call of a model, and then nothing is stored; what is being stored is completed.
    """
    with patterns.share_budget(), language_tables.speak(turn.conversation.language):
        return await _take(turn)


async def _take(turn: Turn) -> FormTurn:
    before = turn.conversation
    state = await turn.compute(before.data, before.skipped)
    current = _find_current(turn, state)
    if current is None:
        return await background.run_to_end(_submit(turn, state, ""))
    question = Question(fields=state.asked, answers=state.values, current=current)
    reading = await _read(turn, question)
    return await background.run_to_end(_answer(turn, state, question, reading))


async def _answer(turn: Turn, state: Progress, question: Question, reading: Reading) -> FormTurn:
    current = question.current
    state, problems = await _apply(turn, state, reading)
    reply = _describe(turn, question, reading, problems)
    if reading.is_skip and not current.definition.required:
        state = await turn.compute(state.values, [*state.skipped, current.id])
    if state.next_field is None:
        return await _submit(turn, state, reply)
    return await _store(turn, state, _go_on(turn, state, reply, problems))


def _go_on(turn: Turn, state: Progress, reply: str, problems: dict[str, str]) -> str:
    if (field := state.next_field) is None:
        raise LookupError("all questions are answered")
    return dialogue.go_on(turn.definition, field, state.next_texts, reply, problems)


def _find_current(turn: Turn, state: Progress) -> InputField[Any] | None:
    """The field that was asked for, unless another one has to be asked for now."""
    last = turn.conversation.current_field
    return next((field for field in state.asked if field.id == last), state.next_field)


async def _read(turn: Turn, question: Question) -> Reading:
    reading = await turn.read(question)
    target = await extraction.find_model(turn.services, turn.form)
    if target is None or not interpreting.needs_model(
        question, turn.content, reading, is_trusted=extraction.is_trusted(target)
    ):
        return reading
    found = await extraction.extract(turn.services, turn.form, target, question, turn.content)
    return await turn.read(question, found)


async def _apply(turn: Turn, state: Progress, reading: Reading) -> tuple[Progress, dict[str, str]]:
    """Returns the new state and what is wrong. Answers of the model are checked like all others."""
    problems = dict(reading.problems)
    data = {**state.values, **reading.values}
    services, form, until = turn.services, turn.form, clock.now() + _LIFETIME
    found = [
        *await options.find_problems(services, form.tenant_id, turn.definition, reading.values),
        *await uploads.keep(services, form, turn.definition, reading.values, until),
    ]
    for field_id, message in found:
        problems[field_id] = message
        # An earlier answer is kept, if there is one.
        data[field_id] = state.values.get(field_id)
    new_state = await turn.compute(data, state.skipped)
    return new_state, {**problems, **new_state.problems}


def _describe(turn: Turn, question: Question, reading: Reading, problems: dict[str, str]) -> str:
    current = question.current
    if reading.is_skip and current.definition.required:
        return dialogue.refuse_skip(current)
    accepted = {key: value for key, value in reading.values.items() if key not in problems}
    return dialogue.acknowledge(turn.definition, question.answers, accepted, current.id)


async def _submit(turn: Turn, state: Progress, reply: str) -> FormTurn:
    """Submits the form by the same code as any submission. What only it finds wrong, such as a
    file whose time is up, is asked for again.
    """
    finished: list[FormTurn] = []

    async def finish(tx: Tx, accepted: AcceptedSubmission) -> None:
        content = dialogue.join([reply, dialogue.thank(turn.form)])
        finished.append(await _save(tx, turn, state, content, accepted.submission_id))

    sent = Answers(
        data=state.values,
        version=turn.conversation.version,
        started_at=turn.conversation.created_at,
    )
    try:
        await submitting.submit(turn.services, turn.form, sent, turn.origin, finish)
    except InvalidAnswers as error:
        wrong = {item["field"]: item["message"] for item in (error.details or {})["errors"]}
        rest = {key: value for key, value in state.values.items() if key not in wrong}
        again = await turn.compute(rest, [name for name in state.skipped if name not in wrong])
        if again.next_field is None:
            raise
        return await _store(turn, again, _go_on(turn, again, reply, wrong))
    return finished[0]


async def _store(turn: Turn, state: Progress, reply: str) -> FormTurn:
    async with turn.services.db.tx(turn.form.tenant_id) as tx:
        return await _save(tx, turn, state, reply, None)


async def _save(
    tx: Tx, turn: Turn, state: Progress, reply: str, submission_id: str | None
) -> FormTurn:
    """Stores the turn with both messages. Raises MessageConflict."""
    before, field = turn.conversation, state.next_field
    conversation = msgspec.structs.replace(
        before,
        status="active" if submission_id is None else "completed",
        data=state.values,
        skipped=[*state.skipped, *(text.id for text in state.next_texts)],
        current_field=None if field is None else field.id,
        submission_id=submission_id,
        expires_at=clock.now() + _LIFETIME,
    )
    if not await queries.save_turn(tx, conversation):
        raise MessageConflict("Another message of this conversation was answered meanwhile")
    position = 2 * before.turn + 1
    asked = conversation.current_field
    user_message = await _add_message(tx, before, position, turn.content, None, role="user")
    assistant_message = await _add_message(tx, before, position + 1, reply, asked)
    answer = FormTurn(
        user_message,
        assistant_message,
        state.completed,
        len(state.asked),
        submission_id is not None,
        submission_id,
    )
    await turn.store(tx, answer)
    return answer


async def _add_message(
    tx: Tx,
    conversation: Conversation,
    position: int,
    content: str,
    field_id: str | None,
    *,
    role: str = "assistant",
) -> FormMessageView:
    return await queries.insert_message(
        tx,
        conversation.tenant_id,
        new_id("fms"),
        conversation.id,
        position,
        role,
        content,
        field_id,
    )


async def abandon_old(services: Services) -> bool:
    """Marks conversations without a message for a day. Returns True when there may be more."""
    async with services.db.tx(ALL_TENANTS) as tx:
        return await queries.abandon(tx, _BATCH) == _BATCH
