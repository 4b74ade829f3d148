"""Chat by voice, and texts as speech."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager

import msgspec

from app.domain.agents.definition import api as agents
from app.domain.agents.definition.api import AgentRuntime
from app.domain.agents.llm.api import Models
from app.domain.agents.llm.errors import ModelNotConfigured
from app.domain.conversations.chat import api as chat
from app.domain.conversations.chat.api import AgentReference, Question, Speaker
from app.kit import files, logs
from app.kit.errors import ProviderError, Unavailable
from app.kit.files import Upload
from app.security.principal import Principal
from app.services import Services

from . import engines, speech_jobs
from .audio import MAX_MB
from .cancellation import run_unless
from .errors import RecordingTooLarge
from .schemas import AudioReply, SpeakText
from .speech_jobs import SpeechRequest

# Waits until the client has closed its connection.
ClientGone = Callable[[], Awaitable[object]]
_MEGABYTE = 1024 * 1024
_NO_VOICE = "The agent cannot listen or speak right now; try again later"

log = logs.get("speech")


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
    """Returns the text of a recording. Raises first when the agent could not answer it."""
    await services.get(Models).check(runtime.target)
    model = services.settings.transcription_model
    await _check_model(services, runtime, model)
    request = SpeechRequest(
        tenant_id=runtime.tenant_id,
        agent_id=runtime.agent_id,
        kind="transcribe",
        model=model,
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
    model = services.settings.speech_model
    await _check_model(services, runtime, model)
    request = SpeechRequest(
        tenant_id=runtime.tenant_id,
        agent_id=runtime.agent_id,
        kind="synthesize",
        model=model,
        text=data.text,
        voice=data.voice,
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


async def _check_model(services: Services, runtime: AgentRuntime, model: str) -> None:
    """Raises ModelNotConfigured when the tenant has no key for a provider's model."""
    if model not in engines.EMBEDDED:
        await engines.load_target(services, runtime.tenant_id, model)
