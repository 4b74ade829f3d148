"""The provider-independent interface of a language model.

One request yields a stream of answer parts: that the provider accepted it, text as it arrives,
complete tool calls, and at the end why it ended and the used tokens. `Models` hides retries, keys
and addresses.
"""

import re
from collections.abc import AsyncGenerator
from typing import Any, Literal, Protocol

import msgspec

Role = Literal["system", "user", "assistant", "tool"]
FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]
_MAX_REPORTED_TOKENS = 10_000_000


class ToolCall(msgspec.Struct, frozen=True):
    """A call as the model wrote it: `arguments` is JSON text that is not validated."""

    id: str
    name: str
    arguments: str


class Image(msgspec.Struct, frozen=True):
    """A picture as a data URL, for models that take images."""

    url: str
    detail: Literal["auto", "low", "high"] | None = None


class Message(msgspec.Struct, frozen=True):
    """`parts` are sent instead of `content` where the message has images."""

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    parts: tuple[str | Image, ...] = ()
    # Of the participant who wrote it.
    name: str | None = None


class Function(msgspec.Struct, frozen=True):
    """The description of a tool that is sent to the model."""

    name: str
    description: str
    parameters: dict[str, Any]
    # Whether the arguments must match the parameters exactly; None leaves it to the provider.
    strict: bool | None = None


class NamedFunction(msgspec.Struct, frozen=True):
    """The function that the model has to call."""

    name: str


ToolChoice = Literal["auto", "none", "required"] | NamedFunction


class ModelOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Parameters that are passed to the provider under these names. A provider that lacks one
    refuses the request.
    """

    top_p: float | None = None
    stop: list[str] | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    logit_bias: dict[str, float] | None = None
    reasoning_effort: str | None = None
    verbosity: str | None = None
    user: str | None = None
    metadata: dict[str, str] | None = None
    parallel_tool_calls: bool | None = None

    def fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields


class Target(msgspec.Struct, frozen=True):
    """A model's full name with the provider's key and URL. Contains a secret: never log it."""

    model: str
    provider: str
    api_key: str = ""
    base_url: str | None = None

    @property
    def name_at_provider(self) -> str:
        provider, slash, name = self.model.partition("/")
        return name if slash and provider.lower() == self.provider else self.model

    def __repr__(self) -> str:
        return f"Target({self.model!r})"


class QueueLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How a request waits for a slot of the local model: for how long, and while how many of its
    tenant wait. Without a place it is refused at once, or else waits for one, too.
    """

    seconds: float = 30.0
    places: int = 8
    waits_for_place: bool = False


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    messages: list[Message]
    temperature: float = 0.7
    max_tokens: int = 2048
    functions: tuple[Function, ...] = ()
    # "none" when the history contains calls, but the model must not make new ones.
    tool_choice: ToolChoice = "auto"
    options: ModelOptions = ModelOptions()
    response_format: dict[str, Any] | None = None
    # False when no client reads the stream: a whole answer costs less to process.
    is_streamed: bool = True
    # False for clients that repeat a failed request themselves.
    may_retry: bool = True
    # Both for the local model alone, which few requests can use at a time.
    tenant_id: str = ""
    queue: QueueLimits = QueueLimits()
    # The time for the whole answer; None means that of the adapter.
    seconds: float | None = None


class Accepted(msgspec.Struct, frozen=True):
    """The provider has answered with a status that means success."""


class Text(msgspec.Struct, frozen=True):
    text: str


class Refusal(Text, frozen=True):
    """Text in which the model refuses to answer."""


class Finished(msgspec.Struct, frozen=True):
    """Why the answer ended."""

    reason: FinishReason


class UsedTokens(msgspec.Struct, frozen=True):
    prompt_tokens: int
    completion_tokens: int

    @classmethod
    def from_provider(cls, prompt_tokens: int, completion_tokens: int) -> "UsedTokens":
        """Limits a provider's counts to a plausible range, because they are summed and stored."""
        counts = (prompt_tokens, completion_tokens)
        return cls(*(min(max(0, count), _MAX_REPORTED_TOKENS) for count in counts))


class QueuePosition(msgspec.Struct, frozen=True):
    """Where the request waits for the local model: 1 is next, 0 means that its turn has come."""

    position: int


class Waiting(msgspec.Struct, frozen=True):
    """For how many seconds the local model has worked without a first word."""

    seconds: int


AnswerPart = Accepted | Text | ToolCall | Finished | UsedTokens | QueuePosition | Waiting


# Texts, or texts as the numbers of their tokens.
EmbeddingInputs = list[str] | list[list[int]]


class Embeddings(msgspec.Struct, frozen=True):
    vectors: list[list[float]]
    prompt_tokens: int


class TranscriptionOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Parameters that are passed to the provider under these names. `verbose_json` asks for the
    language, and for the times of segments or words.
    """

    language: str | None = None
    prompt: str | None = None
    temperature: float | None = None
    response_format: Literal["json", "verbose_json"] = "json"
    timestamp_granularities: list[str] | None = None

    def fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields


class SpeechOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Parameters that are passed to the provider under these names."""

    speed: float | None = None
    instructions: str | None = None

    def fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields


class Transcription(msgspec.Struct, frozen=True):
    """The text of a recording. Providers count either tokens or seconds, or report neither."""

    text: str
    used: UsedTokens | None = None
    seconds: float | None = None
    # Only of an answer that was asked for as `verbose_json`.
    language: str | None = None
    segments: list[Any] | None = None
    words: list[Any] | None = None


class RerankRequest(msgspec.Struct, frozen=True):
    """A question and the passages to rate, with the seconds that a reranker has for it."""

    query: str
    texts: list[str]
    seconds: float


class Ranking(msgspec.Struct, frozen=True):
    """A score from 0 to 1 for each passage, in their order. Providers charge either for tokens or
    for searches.
    """

    scores: list[float]
    prompt_tokens: int
    searches: int = 0


class Adapter(Protocol):
    """Calls models through one wire format or library."""

    def answer(self, target: Target, request: ModelRequest) -> AsyncGenerator[AnswerPart, None]: ...

    async def embed(
        self, target: Target, inputs: EmbeddingInputs, dimensions: int | None
    ) -> Embeddings: ...

    async def transcribe(
        self, target: Target, audio: bytes, media_type: str, options: TranscriptionOptions
    ) -> Transcription: ...

    async def speak(
        self, target: Target, text: str, voice: str | None, options: SpeechOptions
    ) -> bytes: ...

    async def close(self) -> None: ...


_SPACE_BEFORE_NON_LETTER = re.compile(rb" (?![A-Za-z])")
_LETTERS_AND_SPACE = bytes(code for code in range(128) if chr(code).isalpha() or chr(code) == " ")


def upper_bound_tokens(text: str) -> int:
    """Returns an upper bound of the text's tokens: each digit, sign, non-ASCII byte, and space
    before one of these counts as one token.
    """
    raw = text.encode()
    non_letters = len(raw.translate(None, _LETTERS_AND_SPACE))
    single_tokens = non_letters + len(_SPACE_BEFORE_NON_LETTER.findall(raw))
    return (len(raw) - single_tokens) * 2 // 7 + single_tokens + 1


def estimate_tokens(text: str) -> int:
    """Estimates the text's tokens; slightly too high for plain English."""
    return len(text.encode()) * 2 // 7 + 1
