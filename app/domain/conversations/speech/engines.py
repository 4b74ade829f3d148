"""Runs speech jobs on a worker: with the embedded engines, or with a provider's models."""

import msgspec

from app.domain.agents.llm import api as models
from app.domain.agents.llm.api import Models, Target, UsedTokens
from app.domain.agents.usage import api as usage
from app.domain.agents.usage.api import ModelCall
from app.kit.errors import ApiError, Invalid
from app.kit.texts import as_json, storable
from app.services import Services
from db.fast import Row

from . import audio, espeak, moonshine
from .audio import Recording
from .moonshine import Recogniser
from .speech_jobs import StoredError

EMBEDDED = frozenset({moonshine.MODEL, espeak.MODEL})
# The longest question to an agent.
_MAX_CHARS = 200_000


class Outcome(msgspec.Struct, frozen=True):
    """`error` is a StoredError as JSON."""

    transcript: str | None = None
    mp3: bytes | None = None
    error: str | None = None


async def run_job(services: Services, tenant_id: str, row: Row) -> Outcome:
    """Runs a job of `queries.start_job`. A recording that cannot be used is an outcome as well."""
    try:
        if row["kind"] == "transcribe":
            content = await services.files.read(row["input_key"])
            return Outcome(transcript=await _transcribe(services, tenant_id, row, content))
        return Outcome(mp3=await _speak(services, tenant_id, row))
    except ApiError as error:
        return Outcome(error=as_json(StoredError(error.code, error.message, error.details)))


async def _transcribe(services: Services, tenant_id: str, row: Row, content: bytes) -> str:
    recording = await audio.decode(content)
    if not recording.pieces:
        text = ""
    elif row["model"] == moonshine.MODEL:
        text = await services.get(Recogniser).transcribe(recording.pieces)
    else:
        text = await _transcribe_hosted(services, tenant_id, row, content, recording)
    text = storable(text).strip()[:_MAX_CHARS]
    if not text:
        raise Invalid.field("audio", "has no speech that could be recognised")
    return text


async def _transcribe_hosted(
    services: Services, tenant_id: str, row: Row, content: bytes, recording: Recording
) -> str:
    model = row["model"]
    target = await load_target(services, tenant_id, model)
    answer = await services.get(Models).transcribe(target, content, recording.media_type)
    used = answer.used or UsedTokens(0, 0)
    tokens = (used.prompt_tokens, used.completion_tokens)
    seconds = recording.seconds if answer.seconds is None else answer.seconds
    cost = await models.transcription_cost_usd(model, *tokens, seconds)
    call = ModelCall("transcription", model, *tokens, cost)
    await usage.add_call(services.db, tenant_id, row["agent_id"], call)
    return answer.text


async def _speak(services: Services, tenant_id: str, row: Row) -> bytes:
    text, voice, model = row["text"], row["voice"], row["model"]
    if model == espeak.MODEL:
        return await espeak.speak(text, voice)
    target = await load_target(services, tenant_id, model)
    mp3 = await services.get(Models).speak(target, text, voice)
    call = ModelCall("speech", model, 0, 0, await models.speech_cost_usd(model, len(text)))
    await usage.add_call(services.db, tenant_id, row["agent_id"], call)
    return mp3


async def load_target(services: Services, tenant_id: str, model: str) -> Target:
    """Returns a provider's model with the tenant's key. Raises ModelNotConfigured without one."""
    async with services.db.tx(tenant_id, autocommit=True) as tx:
        target = await models.load_target(tx, services.keyring, tenant_id, model)
    services.get(Models).check_key(target)
    return target
