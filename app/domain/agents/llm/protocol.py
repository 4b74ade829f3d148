"""The provider-independent interface of a language model.

One request yields a stream of answer parts: text as it arrives, complete tool calls, and the used
tokens at the end. `Models` hides retries, keys and addresses.
"""

import re
from collections.abc import AsyncGenerator
from typing import Any, Literal, Protocol

import msgspec

Role = Literal["system", "user", "assistant", "tool"]
_MAX_REPORTED_TOKENS = 10_000_000


class ToolCall(msgspec.Struct, frozen=True):
    """A call as the model wrote it: `arguments` is JSON text that is not validated."""

    id: str
    name: str
    arguments: str


class Message(msgspec.Struct, frozen=True):
    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


class Function(msgspec.Struct, frozen=True):
    """The description of a tool that is sent to the model."""

    name: str
    description: str
    parameters: dict[str, Any]


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
    # False when the history contains calls, but the model must not make new ones.
    may_call: bool = True
    response_format: dict[str, Any] | None = None
    # False when no client reads the stream: a whole answer costs less to process.
    is_streamed: bool = True
    # Both for the local model alone, which few requests can use at a time.
    tenant_id: str = ""
    queue: QueueLimits = QueueLimits()
    # The time for the whole answer; None means that of the adapter.
    seconds: float | None = None


class Text(msgspec.Struct, frozen=True):
    text: str


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


AnswerPart = Text | ToolCall | UsedTokens | QueuePosition | Waiting


class Embeddings(msgspec.Struct, frozen=True):
    vectors: list[list[float]]
    prompt_tokens: int


class Transcription(msgspec.Struct, frozen=True):
    """The text of a recording. Providers count either tokens or seconds, or report neither."""

    text: str
    used: UsedTokens | None = None
    seconds: float | None = None


class Adapter(Protocol):
    """Calls models through one wire format or library."""

    def answer(self, target: Target, request: ModelRequest) -> AsyncGenerator[AnswerPart, None]: ...

    async def embed(self, target: Target, texts: list[str]) -> Embeddings: ...

    async def transcribe(self, target: Target, audio: bytes, media_type: str) -> Transcription: ...

    async def speak(self, target: Target, text: str, voice: str | None) -> bytes: ...

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
