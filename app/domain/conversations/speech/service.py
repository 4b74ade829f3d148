"""Chat by voice, and texts as speech."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager

import msgspec

from app.domain.agents.definition import api as agents
from app.domain.agents.definition.api import AgentRuntime
from app.domain.agents.llm.api import Models, SpeechOptions, TranscriptionOptions
from app.domain.agents.llm.errors import ModelNotConfigured
from app.domain.conversations.chat import api as chat
from app.domain.conversations.chat.api import AgentReference, Question, Speaker
from app.kit import files, logs
from app.kit.errors import Invalid, ProviderError, Unavailable
from app.kit.files import Upload
from app.security.principal import Principal
from app.services import Services

from . import parameters, speech_jobs
from .audio import MAX_MB
from .cancellation import run_unless
from .conversion import AudioFormat
from .errors import RecordingTooLarge
from .schemas import AudioReply, SpeakText
from .speech_jobs import SpeechRequest, Transcript

# Waits until the client has closed its connection.
ClientGone = Callable[[], Awaitable[object]]
_MEGABYTE = 1024 * 1024
_NO_VOICE = "The agent cannot listen or speak right now; try again later"

log = logs.get("speech")


class SpeechOwner(msgspec.Struct, frozen=True):
    """Whose keys and workers a request uses, and for which agent, if for one."""

    tenant_id: str
    agent_id: str | None = None


class Utterance(msgspec.Struct, frozen=True):
    """A text, and how it is spoken."""

    model: str
    text: str
    voice: str | None = None
    format: AudioFormat = "mp3"
    options: SpeechOptions = SpeechOptions()


async def answer_recording(
    services: Services,
    principal: Principal,
    agent_id: str,
    upload: Upload,
    conversation_id: str | None,
    client_gone: ClientGone,
    connection: AbstractAsyncContextManager[None],
) -> AudioReply:
    """Transcribes a recording and runs one turn with the text. A client that goes away before the
    turn starts ends the request; afterwards `connection` decides, as in a chat by text.
    """
    speaker = Speaker(principal.user_id)
    async with services.db.tx(principal.scope, autocommit=True) as tx:
        runtime = await agents.load_runtime(tx, services.keyring, agent_id)
        if conversation_id:
            await chat.require_conversation(tx, runtime, speaker, conversation_id)
    transcript = await transcribe(services, runtime, upload, client_gone)
    question = Question(
        speaker=speaker,
        source="audio",
        text=transcript,
        conversation_id=conversation_id or None,
    )
    agent = AgentReference(principal.scope, agent_id)
    reply = await chat.answer(services, agent, question, connection)
    return AudioReply(**msgspec.structs.asdict(reply), transcript=transcript)


async def transcribe(
    services: Services, runtime: AgentRuntime, upload: Upload, client_gone: ClientGone
) -> str:
    """Returns the text of a recording. Raises first when the agent could not answer it, and Invalid
    when nobody speaks.
    """
    await services.get(Models).check(runtime.target)
    owner = SpeechOwner(runtime.tenant_id, runtime.agent_id)
    model, options = services.settings.transcription_model, TranscriptionOptions()
    transcript = await transcribe_upload(services, owner, upload, model, options, client_gone)
    if not transcript.text:
        raise Invalid.field("audio", "has no speech that could be recognised")
    return transcript.text


async def transcribe_upload(
    services: Services,
    owner: SpeechOwner,
    upload: Upload,
    model: str,
    options: TranscriptionOptions,
    client_gone: ClientGone,
) -> Transcript:
    """Transcribes a recording with any model. Raises Invalid for options that it lacks."""
    await parameters.check(services, owner.tenant_id, model, options)
    request = SpeechRequest(
        tenant_id=owner.tenant_id,
        agent_id=owner.agent_id,
        kind="transcribe",
        model=model,
        options=options,
    )
    blocks = _read_recording(services, upload)
    return await run_unless(client_gone(), speech_jobs.transcribe(services, request, blocks))


async def speak(
    services: Services,
    principal: Principal,
    agent_id: str,
    data: SpeakText,
    client_gone: ClientGone,
) -> bytes:
    """Returns the text as speech, an MP3 file."""
    async with services.db.tx(principal.scope, autocommit=True) as tx:
        runtime = await agents.load_runtime(tx, services.keyring, agent_id)
    return await synthesize(services, runtime, data, client_gone)


async def synthesize(
    services: Services, runtime: AgentRuntime, data: SpeakText, client_gone: ClientGone
) -> bytes:
    owner = SpeechOwner(runtime.tenant_id, runtime.agent_id)
    utterance = Utterance(services.settings.speech_model, data.text, data.voice)
    return await synthesize_text(services, owner, utterance, client_gone)


async def synthesize_text(
    services: Services, owner: SpeechOwner, utterance: Utterance, client_gone: ClientGone
) -> bytes:
    """Speaks a text with any model. Raises Invalid for options that it lacks."""
    await parameters.check(services, owner.tenant_id, utterance.model, utterance.options)
    request = SpeechRequest(
        tenant_id=owner.tenant_id,
        agent_id=owner.agent_id,
        kind="synthesize",
        model=utterance.model,
        text=utterance.text,
        voice=utterance.voice,
        options=utterance.options,
        format=utterance.format,
    )
    return await run_unless(client_gone(), speech_jobs.synthesize(services, request))


@contextmanager
def hide_provider_errors(agent_id: str) -> Iterator[None]:
    """A provider's error may name keys, accounts and models: visitors do not see it."""
    try:
        yield
    except ProviderError as error:
        log.warning("a visitor got no speech", agent_id=agent_id, reason=error.message)
        raise ProviderError(_NO_VOICE) from error
    except (ModelNotConfigured, Unavailable) as error:
        log.warning("a visitor got no speech", agent_id=agent_id, reason=error.message)
        raise Unavailable(_NO_VOICE, 60) from error


async def _read_recording(services: Services, upload: Upload) -> AsyncIterator[bytes]:
    """Closes the upload at its end, so that the disk has it once."""
    max_mb = min(MAX_MB, services.settings.max_body_mb)

    def too_large() -> RecordingTooLarge:
        return RecordingTooLarge(
            f"audio is larger than {max_mb} MB", details={"field": "audio", "max_size_mb": max_mb}
        )

    async for block in files.read_blocks(upload, max_mb * _MEGABYTE, too_large):
        yield block
    await upload.close()
