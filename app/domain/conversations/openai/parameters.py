"""The parameters of a completion: those that the model gets, and those that cannot be honoured."""

from collections.abc import Iterator

from app.domain.agents.llm.api import ModelOptions
from app.kit.errors import Invalid, Problem

from .schemas import CompletionRequest


def check(data: CompletionRequest) -> None:
    """Raises Invalid for what would change the answer, but is not supported. Values that ask for
    the usual answer are accepted: some clients always send them.
    """
    Invalid.check(_list_problems(data))


def _list_problems(data: CompletionRequest) -> Iterator[Problem]:
    if data.n not in {None, 1}:
        yield "n", "must be 1: there is one answer at a time"
    for name in ("logprobs", "top_logprobs"):
        if getattr(data, name):
            yield name, "is not supported; leave it out"
    if data.service_tier not in {None, "auto", "default"}:
        yield "service_tier", "must be auto or default"
    if data.modalities not in (None, [], ["text"]):
        yield "modalities", "must be text alone; POST /v1/audio/speech speaks a text"
    for name in ("audio", "prediction", "web_search_options"):
        if getattr(data, name) is not None:
            yield name, "is not supported; leave it out"


def read_options(data: CompletionRequest) -> ModelOptions:
    return ModelOptions(
        top_p=data.top_p,
        stop=[data.stop] if isinstance(data.stop, str) else data.stop or None,
        seed=data.seed,
        presence_penalty=data.presence_penalty,
        frequency_penalty=data.frequency_penalty,
        logit_bias=data.logit_bias or None,
        reasoning_effort=data.reasoning_effort,
        verbosity=data.verbosity,
        user=data.user,
        metadata=data.metadata or None,
        parallel_tool_calls=data.parallel_tool_calls if data.tools else None,
    )
