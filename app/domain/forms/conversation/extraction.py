"""Lets a model read answers in a message, as JSON of a given schema."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from app.domain.agents.llm.api import (
    LOCAL,
    LOCAL_MODEL,
    Message,
    ModelRequest,
    Models,
    QueueLimits,
    Target,
    Text,
    UsedTokens,
    cost_usd,
    load_target,
)
from app.domain.agents.llm.errors import ModelFailed, ModelNotConfigured
from app.domain.agents.usage import api as usage
from app.domain.agents.usage.api import ModelCall
from app.domain.forms.definition.api import NO_MODEL, InputField, LiveForm, language_tables, links
from app.kit import clock, logs
from app.kit.errors import Unavailable
from app.kit.languages import ENGLISH
from app.services import Services

from .interpreting import Extract, Question

log = logs.get("forms")

# The name of no model: the form asks for one answer at a time.
_TIMEOUT_SECONDS = 30
# The local model reads little better than no model: nobody waits long for it.
_LOCAL_TIMEOUT_SECONDS = 20
_LOCAL_QUEUE: Final = QueueLimits(seconds=2)
_MAX_FIELDS = 30
_MAX_TOKENS = 1000
_MAX_LOCAL_TOKENS = 100
_MAX_SCHEMA_CHARS = 500


async def find_model(services: Services, form: LiveForm) -> Target | None:
    """Returns the model of a form, or the local one if it runs. None to do without."""
    name = form.settings.conversation.model
    if name == NO_MODEL:
        return None
    models = services.get(Models)
    if name is None or name == LOCAL_MODEL:
        is_running = await models.local_address() is not None
        return Target(LOCAL_MODEL, LOCAL) if is_running else None
    async with services.db.tx(form.tenant_id, autocommit=True) as tx:
        return await load_target(tx, services.keyring, form.tenant_id, name)


def is_trusted(target: Target) -> bool:
    """The local model is so small that it invents answers."""
    return target.provider != LOCAL


async def extract(
    services: Services, form: LiveForm, target: Target, question: Question, text: str
) -> Extract:
    """Returns nothing when the model fails: the message is then read without it."""
    fields = _select_fields(question, is_local=not is_trusted(target))
    with language_tables.speak(ENGLISH):
        request = _build_request(form, target, fields, question, text)
    seconds = _TIMEOUT_SECONDS if is_trusted(target) else _LOCAL_TIMEOUT_SECONDS
    try:
        async with asyncio.timeout(seconds):
            answer = await _ask(services, form, target, request)
        found = msgspec.json.decode(answer)
    except (ModelFailed, ModelNotConfigured, Unavailable, TimeoutError) as error:
        log.warning("a model read no answers", model=target.model, reason=str(error)[:200])
        return Extract()
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return Extract()
    known = {field.id for field in fields}
    values = found if isinstance(found, dict) else {}
    return Extract(
        {key: value for key, value in values.items() if key in known}, is_trusted(target)
    )


def _select_fields(question: Question, *, is_local: bool) -> list[InputField[Any]]:
    """The question first. The local model reads the answer to it alone."""
    if is_local:
        return [question.current]
    others = [
        field
        for field in question.fields
        if field.id != question.current.id and field.type.is_verbal
    ]
    return [question.current, *others][:_MAX_FIELDS]


def _build_request(
    form: LiveForm,
    target: Target,
    fields: list[InputField[Any]],
    question: Question,
    text: str,
) -> ModelRequest:
    lines = describe_fields(fields)
    instructions = (
        "You read the answers to a form in the message of a person. Answer with JSON. Use only what"
        " the message says; a field that it does not answer is null.\n"
        f"Today is {clock.now():%A, %Y-%m-%d}. The person was asked for {question.current.id}.\n"
        "The fields:\n" + "\n".join(lines)
    )
    properties = {field.id: {"anyOf": [_shorten(field), {"type": "null"}]} for field in fields}
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return ModelRequest(
        messages=[Message("system", instructions), Message("user", text)],
        temperature=0.0,
        max_tokens=_MAX_TOKENS if is_trusted(target) else _MAX_LOCAL_TOKENS,
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "answers", "schema": schema},
        },
        is_streamed=False,
        tenant_id=form.tenant_id,
        queue=_LOCAL_QUEUE,
    )


def describe_fields(fields: Sequence[InputField[Any]]) -> list[str]:
    """Returns a line for each field."""
    return [
        links.to_plain_text(f"- {field.id}: {field.label} ({field.type.describe(field)})")
        for field in fields
    ]


def _shorten(field: InputField[Any]) -> dict[str, Any]:
    """A small model repeats itself up to the longest text that it may write."""
    schema = dict(field.type.to_json_schema(field))
    if "maxLength" in schema:
        schema["maxLength"] = min(schema["maxLength"], _MAX_SCHEMA_CHARS)
    return schema


async def _ask(services: Services, form: LiveForm, target: Target, request: ModelRequest) -> str:
    parts: list[str] = []
    used: UsedTokens | None = None
    async for part in services.get(Models).answer(target, request):
        if isinstance(part, Text):
            parts.append(part.text)
        elif isinstance(part, UsedTokens):
            used = part
    if used is not None and is_trusted(target):
        tokens = (used.prompt_tokens, used.completion_tokens)
        call = ModelCall("form", target.model, *tokens, await cost_usd(target.model, *tokens))
        await usage.add_call(services.db, form.tenant_id, form.id, call)
    return "".join(parts)
