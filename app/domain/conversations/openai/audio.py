"""Speech and transcription for OpenAI clients, by the same workers as the voices of agents."""

import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Final

import msgspec

from app.domain.agents.llm.api import LOCAL, SpeechOptions, TranscriptionOptions, provider_of
from app.domain.agents.llm.errors import ModelNotConfigured
from app.domain.conversations.speech import api as speech
from app.domain.conversations.speech.api import (
    AudioFormat,
    ClientGone,
    SpeechOwner,
    Transcript,
    Utterance,
)
from app.domain.conversations.speech.errors import RecordingTooLarge
from app.kit.errors import ApiError, Invalid, UnsupportedFileType
from app.kit.files import Upload
from app.services import Services

from . import model_names
from .audio_schemas import AudioUsage, CreateSpeech, TranscriptionReply

# The names of fields in errors of the speech engines, and here.
_FIELDS: Final = {"audio": "file", "text": "input"}
_FIRST_FIELD = re.compile(rf"^({'|'.join(_FIELDS)})\b")


class AudioCaller(msgspec.Struct, frozen=True):
    """`may_choose` any model of a provider for which the tenant has a key."""

    owner: SpeechOwner
    may_choose: bool = False

    @property
    def is_visitor(self) -> bool:
        return self.owner.agent_id is not None


async def speak(
    services: Services, caller: AudioCaller, data: CreateSpeech, client_gone: ClientGone
) -> tuple[bytes, str]:
    """Returns the speech and its media type."""
    if data.stream_format == "sse":
        raise Invalid.field("stream_format", "must be audio: the speech is sent as a whole")
    own, embedded = services.settings.speech_model, speech.espeak.MODEL
    audio_format: AudioFormat = data.response_format or "mp3"
    options = SpeechOptions(speed=data.speed, instructions=data.instructions or None)
    model = _choose_model(caller, data.model, own, embedded)
    utterance = Utterance(model, data.input, data.voice, audio_format, options)
    with _adapt_errors(caller, embedded):
        content = await speech.synthesize_text(services, caller.owner, utterance, client_gone)
    return content, speech.MEDIA_TYPES[audio_format]


async def transcribe(
    services: Services,
    caller: AudioCaller,
    upload: Upload,
    model: str,
    options: TranscriptionOptions,
    client_gone: ClientGone,
) -> Transcript:
    own, embedded = services.settings.transcription_model, speech.moonshine.MODEL
    model = _choose_model(caller, model, own, embedded)
    with _adapt_errors(caller, embedded):
        return await speech.transcribe_upload(
            services, caller.owner, upload, model, options, client_gone
        )


def build_reply(transcript: Transcript, *, is_verbose: bool) -> TranscriptionReply:
    details, used = transcript.details, transcript.details.used
    usage = None
    if used is not None:
        tokens = (used.prompt_tokens, used.completion_tokens)
        usage = AudioUsage("tokens", None, *tokens, sum(tokens))
    elif details.seconds is not None:
        usage = AudioUsage("duration", details.seconds)
    if not is_verbose:
        return TranscriptionReply(text=transcript.text, usage=usage)
    return TranscriptionReply(
        text=transcript.text,
        task="transcribe",
        language=details.language,
        duration=details.seconds,
        segments=details.segments,
        words=details.words,
        usage=usage,
    )


def _choose_model(caller: AudioCaller, name: str, own: str, embedded: str) -> str:
    """Returns the model of this instance or its embedded one, or any model of a provider for those
    who may choose. Raises ModelNotFound, which does not tell visitors the model of this instance.
    """
    model = model_names.find([own, embedded], name)
    if model is not None:
        return model
    if caller.may_choose and provider_of(name) != LOCAL:
        return name
    raise model_names.build_refusal([embedded] if caller.is_visitor else [own, embedded], name)


@contextmanager
def _adapt_errors(caller: AudioCaller, embedded: str) -> Iterator[None]:
    """Names the fields of OpenAI's wire format in errors of the speech engines, and a model that
    needs no key. Visitors do not see what a provider says.
    """
    agent_id = caller.owner.agent_id
    with speech.hide_provider_errors(agent_id) if agent_id is not None else nullcontext():
        try:
            yield
        except ModelNotConfigured as error:
            message = f"{error.message}; or use {embedded}"
            raise ModelNotConfigured(message, details=error.details) from error
        except (Invalid, UnsupportedFileType, RecordingTooLarge) as error:
            raise _rename_fields(error) from error


def _rename_fields(error: ApiError) -> ApiError:
    details = {
        _FIELDS.get(name, name): _FIELDS.get(value, value) if name == "field" else value
        for name, value in (error.details or {}).items()
    }
    message = _FIRST_FIELD.sub(lambda match: _FIELDS[match[1]], error.message)
    return type(error)(message, details=details or None, headers=error.headers)
