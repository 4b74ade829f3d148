"""What the product asks of a language model, whoever serves it.

A model is asked once and answers with a stream of pieces: text as it comes, whole tool calls, and
at the end what it used. Everything else (retries, keys, addresses) is hidden behind `Models`.
"""

import re
from collections.abc import AsyncGenerator
from typing import Any, Literal, Protocol

import msgspec

Role = Literal["system", "user", "assistant", "tool"]
_MOST_TOKENS = 10_000_000


class ToolCall(msgspec.Struct, frozen=True):
    """`arguments` is the model's own JSON text; nobody has checked it."""

    id: str
    name: str
    arguments: str


class Message(msgspec.Struct, frozen=True):
    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


class Function(msgspec.Struct, frozen=True):
    """A tool as the model sees it."""

    name: str
    description: str
    parameters: dict[str, Any]


class Target(msgspec.Struct, frozen=True):
    """Which model, by its full name, and how to reach it. Holds a secret: never log it."""

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


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    messages: list[Message]
    temperature: float = 0.7
    max_tokens: int = 2048
    functions: tuple[Function, ...] = ()
    # False where the history has calls, but there may be no more of them.
    may_call: bool = True
    response_format: dict[str, Any] | None = None
    # Whether somebody reads along; otherwise one whole answer is cheaper.
    live: bool = True


class Text(msgspec.Struct, frozen=True):
    text: str


class Used(msgspec.Struct, frozen=True):
    prompt_tokens: int
    completion_tokens: int

    @classmethod
    def reported(cls, prompt_tokens: int, completion_tokens: int) -> "Used":
        """What a provider says, within reason: whatever stands there is added up and stored."""
        bounded = (min(max(0, count), _MOST_TOKENS) for count in (prompt_tokens, completion_tokens))
        return cls(*bounded)


Piece = Text | ToolCall | Used


class Embeddings(msgspec.Struct, frozen=True):
    vectors: list[list[float]]
    prompt_tokens: int


class Adapter(Protocol):
    """One way to reach models."""

    def answer(self, target: Target, ask: Ask) -> AsyncGenerator[Piece, None]: ...

    async def embed(self, target: Target, texts: list[str]) -> Embeddings: ...

    async def close(self) -> None: ...


_LONE_SPACE = re.compile(rb" (?![A-Za-z])")
_WORDS = bytes(code for code in range(128) if chr(code).isalpha() or chr(code) == " ")


def most_tokens(text: str) -> int:
    """How many tokens a text has at the most, for what must fit: every digit, sign, byte beyond
    ASCII and space before one of them may be one.
    """
    raw = text.encode()
    others = len(raw.translate(None, _WORDS)) + len(_LONE_SPACE.findall(raw))
    return (len(raw) - others) * 2 // 7 + others + 1


def estimated_tokens(text: str) -> int:
    """About how many tokens a text has; on the high side for plain English."""
    return len(text.encode()) * 2 // 7 + 1
