"""What speech models take, checked before a request waits for a worker."""

from collections.abc import Iterator

from app.domain.agents.llm.api import Models, SpeechOptions, TranscriptionOptions
from app.kit.errors import Invalid, Problem
from app.services import Services

from . import engines, espeak, moonshine

_ENGLISH = ("en", "english")


async def check(
    services: Services,
    tenant_id: str,
    model: str,
    options: TranscriptionOptions | SpeechOptions,
) -> None:
    """Raises Invalid for options that the model lacks, and ModelNotConfigured when the tenant has
    no key for a provider's model.
    """
    if model in engines.EMBEDDED:
        Invalid.check(_list_problems(model, options))
        return
    target = await engines.load_target(services, tenant_id, model)
    services.get(Models).check_parameters(target, options.fields())


def _list_problems(model: str, options: TranscriptionOptions | SpeechOptions) -> Iterator[Problem]:
    wanted = options.fields()
    for name in ("instructions", "prompt", "timestamp_granularities"):
        if name in wanted:
            yield name, f"{model} has no such parameter; leave it out"
    speed, language = wanted.get("speed", 1.0), wanted.get("language", "en")
    if not espeak.MIN_SPEED <= speed <= espeak.MAX_SPEED:
        yield "speed", f"must be from {espeak.MIN_SPEED} to {espeak.MAX_SPEED} for {model}"
    if language.lower().partition("-")[0] not in _ENGLISH:
        yield "language", f"must be en: {moonshine.MODEL} recognises English alone"
    if wanted.get("temperature"):
        yield "temperature", f"must be 0 for {model}, which always writes the same"
