"""Decodes chat completions in OpenAI's wire format, whole ones and streamed chunks."""

from typing import Any

import msgspec

from app.domain.models.errors import ModelFailed
from app.domain.models.protocol import AnswerPart, Target, Text, ToolCall, UsedTokens
from app.domain.models.provider_failures import (
    MAX_TOOL_CALLS,
    answer_too_long,
    error_message,
    reason_of,
    too_many_calls,
)
from app.kit.texts import storable

_MAX_ANSWER_CHARS = 1_000_000


class _FunctionDelta(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _CallDelta(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _FunctionDelta = msgspec.field(default_factory=_FunctionDelta)


class _Content(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_CallDelta] | None = None


class _Choice(msgspec.Struct):
    delta: _Content | None = None
    message: _Content | None = None
    finish_reason: str | None = None


class Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Completion(msgspec.Struct):
    """A whole answer, which has `message`, or a chunk of a streamed one, which has `delta`."""

    choices: list[_Choice] = []
    usage: Usage | None = None
    error: Any = None


_completion_decoder = msgspec.json.Decoder(_Completion)


def decode(decoder: msgspec.json.Decoder[Any], target: Target, raw: bytes) -> Any:
    """Raises ModelFailed when the bytes do not have the decoder's form."""
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ModelFailed(
            target.model, "broken", f"{target.model} does not speak OpenAI's wire format"
        ) from error


class ToolCallBuilder:
    """Joins the fragments of one streamed tool call."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []

    def build(self, index: int) -> ToolCall:
        name, arguments = self.name, "".join(self.arguments)
        call_id = self.id or f"call_{index}"
        return ToolCall(call_id, storable(name), storable(arguments))


class CompletionParser:
    """Turns the chunks of one answer into parts. Tool calls are complete after the last chunk."""

    def __init__(self, target: Target) -> None:
        self.is_finished = False
        self._target = target
        self._chars = 0
        self._calls: dict[int, ToolCallBuilder] = {}

    def parse_packet(self, events: list[bytes]) -> tuple[list[AnswerPart], ModelFailed | None]:
        """Returns the parts of one packet with adjacent texts joined, and the failure that ended
        it. The parts before the failure are returned as well.
        """
        parts: list[AnswerPart] = []
        try:
            for event in events:
                for part in self.parse(event):
                    last = parts[-1] if parts else None
                    if isinstance(part, Text) and isinstance(last, Text):
                        parts[-1] = Text(last.text + part.text)
                    else:
                        parts.append(part)
        except ModelFailed as failure:
            return parts, failure
        return parts, None

    def parse(self, raw: bytes) -> list[AnswerPart]:
        """Returns the parts of one chunk or whole answer; keeps its tool calls."""
        completion = decode(_completion_decoder, self._target, raw)
        if completion.error is not None:
            raise self._failure(completion.error)
        parts: list[AnswerPart] = []
        for choice in completion.choices[:1]:
            content = choice.delta or choice.message or _Content()
            text = content.content or content.refusal
            if text:
                # Postgres cannot store NUL characters.
                parts.append(Text(text.replace("\0", "")))
                self._count_chars(text)
            for position, delta in enumerate(content.tool_calls or ()):
                self._add_call(delta, position if choice.message else self._call_index(delta))
            if choice.finish_reason:
                self.is_finished = True
        usage = completion.usage
        if usage is not None:
            parts.append(UsedTokens.from_provider(usage.prompt_tokens, usage.completion_tokens))
        return parts

    def tool_calls(self) -> list[ToolCall]:
        return [call.build(index) for index, call in sorted(self._calls.items())]

    def _failure(self, error: Any) -> ModelFailed:
        code = error.get("code") if isinstance(error, dict) else None
        reason = reason_of(code) if isinstance(code, int) else "refused"
        return ModelFailed(self._target.model, reason, error_message(self._target, error))

    def _count_chars(self, text: str) -> None:
        """Limits the answer, because it is stored and sent to the model again at every turn."""
        self._chars += len(text)
        if self._chars > _MAX_ANSWER_CHARS:
            raise answer_too_long(self._target)

    def _add_call(self, delta: _CallDelta, index: int) -> None:
        self._count_chars(delta.function.arguments or "")
        call = self._calls.setdefault(index, ToolCallBuilder())
        if len(self._calls) > MAX_TOOL_CALLS:
            raise too_many_calls(self._target)
        call.id = delta.id or call.id
        call.name = delta.function.name or call.name
        call.arguments.append(delta.function.arguments or "")

    def _call_index(self, delta: _CallDelta) -> int:
        """Without an index, a delta with an id starts a new call; others continue the last."""
        if delta.index is not None:
            return delta.index
        last = max(self._calls, default=-1)
        return last + 1 if delta.id or last < 0 else last
