"""What other areas may call."""

from . import espeak, moonshine
from .conversion import MEDIA_TYPES, AudioFormat
from .recording_options import RECORDING
from .service import (
    ClientGone,
    SpeechOwner,
    Utterance,
    hide_provider_errors,
    synthesize_text,
    transcribe_upload,
)
from .speech_jobs import Transcript
