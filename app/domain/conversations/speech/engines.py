"""Runs speech jobs on a worker: with the embedded engines, or with a provider's models."""

import msgspec

from app.domain.agents.llm import api as models
from app.domain.agents.llm.api import (
    Models,
    SpeechOptions,
    Target,
    TranscriptionOptions,
    UsedTokens,
)
from app.domain.agents.usage import api as usage
from app.domain.agents.usage.api import ModelCall
from app.kit.errors import ApiError
from app.kit.texts import as_json, storable
from app.services import Services
from db.fast import Row

from . import audio, conversion, espeak, moonshine
from .audio import Recording
from .moonshine import Recogniser
from .speech_jobs import StoredError, Transcript, TranscriptDetails

EMBEDDED = frozenset({moonshine.MODEL, espeak.MODEL})
# The longest question to an agent.
_MAX_CHARS = 200_000
# As providers name the only language that the embedded recogniser knows.
_LANGUAGE = "english"


class Outcome(msgspec.Struct, frozen=True):
    """`details` are TranscriptDetails as JSON, `error` is a StoredError."""

    transcript: str | None = None
    details: str | None = None
    speech: bytes | None = None
    error: str | None = None


async def run_job(services: Services, tenant_id: str, row: Row) -> Outcome:
    """Runs a job of `queries.start_job`. A recording that cannot be used is an outcome as well."""
    try:
        if row["kind"] == "transcribe":
            content = await services.files.read(row["input_key"])
            transcript = await _transcribe(services, tenant_id, row, content)
            return Outcome(transcript.text, as_json(transcript.details))
        return Outcome(speech=await _speak(services, tenant_id, row))
    except ApiError as error:
        return Outcome(error=as_json(StoredError(error.code, error.message, error.details)))


async def _transcribe(services: Services, tenant_id: str, row: Row, content: bytes) -> Transcript:
    recording = await audio.decode(content)
    details = TranscriptDetails(seconds=round(recording.seconds, 3))
    if not recording.pieces:
        return Transcript("", details)
    if row["model"] == moonshine.MODEL:
        text = await services.get(Recogniser).transcribe(recording.pieces)
        details = msgspec.structs.replace(details, language=_LANGUAGE)
    else:
        text, details = await _transcribe_hosted(services, tenant_id, row, content, recording)
    return Transcript(storable(text).strip()[:_MAX_CHARS], details)


async def _transcribe_hosted(
    services: Services, tenant_id: str, row: Row, content: bytes, recording: Recording
) -> tuple[str, TranscriptDetails]:
    model = row["model"]
    options = msgspec.json.decode(row["options"] or "{}", type=TranscriptionOptions)
    target = await load_target(services, tenant_id, model)
    answer = await services.get(Models).transcribe(target, content, recording.media_type, options)
    used = answer.used or UsedTokens(0, 0)
    tokens = (used.prompt_tokens, used.completion_tokens)
    seconds = recording.seconds if answer.seconds is None else answer.seconds
    cost = await models.transcription_cost_usd(model, *tokens, seconds)
    call = ModelCall("transcription", model, *tokens, cost)
    await usage.add_call(services.db, tenant_id, row["agent_id"], call)
    return answer.text, TranscriptDetails(
        seconds=round(seconds, 3),
        language=answer.language,
        used=answer.used,
        segments=answer.segments,
        words=answer.words,
    )


async def _speak(services: Services, tenant_id: str, row: Row) -> bytes:
    options = msgspec.json.decode(row["options"] or "{}", type=SpeechOptions)
    text, voice = row["text"], row["voice"]
    if row["model"] == espeak.MODEL:
        mp3 = await espeak.speak(text, voice, options.speed or 1.0)
    else:
        mp3 = await _speak_hosted(services, tenant_id, row, options)
    return await conversion.convert(mp3, row["format"] or "mp3")


async def _speak_hosted(
    services: Services, tenant_id: str, row: Row, options: SpeechOptions
) -> bytes:
    text, model = row["text"], row["model"]
    target = await load_target(services, tenant_id, model)
    mp3 = await services.get(Models).speak(target, text, row["voice"], options)
    tokens, seconds = await models.estimate_speech_tokens(model, text), 0.0
    if await models.charges_speech_by_second(model):
        seconds = await conversion.measure(mp3)
    cost = await models.speech_cost_usd(model, len(text), tokens, seconds)
    call = ModelCall("speech", model, tokens, 0, cost)
    await usage.add_call(services.db, tenant_id, row["agent_id"], call)
    return mp3


async def load_target(services: Services, tenant_id: str, model: str) -> Target:
    """Returns a provider's model with the tenant's key. Raises ModelNotConfigured without one."""
    async with services.db.tx(tenant_id, autocommit=True) as tx:
        target = await models.load_target(tx, services.keyring, tenant_id, model)
    services.get(Models).check_key(target)
    return target
