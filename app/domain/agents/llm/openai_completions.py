"""Decodes chat completions in OpenAI's wire format, whole ones and streamed chunks."""

from typing import Any

import msgspec

from .answer_builder import AnswerBuilder
from .errors import ModelFailed, refused_by_provider
from .protocol import (
    AnswerPart,
    Finished,
    FinishReason,
    Refusal,
    Target,
    Text,
    ToolCall,
    UsedTokens,
)
from .provider_failures import error_message

# Other words mean that the model said all that it had to say.
_FINISH_REASONS: dict[str, FinishReason] = {
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
}


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


def finished(reason: str, *, has_calls: bool) -> Finished:
    """Some providers report "stop" for an answer that consists of calls."""
    known = _FINISH_REASONS.get(reason)
    return Finished(known or ("tool_calls" if has_calls else "stop"))


class CompletionParser:
    """Turns the chunks of one answer into parts. Tool calls are complete after the last chunk."""

    def __init__(self, target: Target) -> None:
        self.is_finished = False
        self._target = target
        self._answer = AnswerBuilder(target)
        self._finish_reason = ""

    def parse_packet(self, events: list[bytes]) -> tuple[list[AnswerPart], ModelFailed | None]:
        """Returns the parts of one packet with adjacent texts joined, and the failure that ended
        it. The parts before the failure are returned as well.
        """
        parts: list[AnswerPart] = []
        try:
            for event in events:
                for part in self.parse(event):
                    last = parts[-1] if parts else None
                    if (
                        isinstance(part, Text)
                        and isinstance(last, Text)
                        and type(part) is type(last)
                    ):
                        parts[-1] = type(part)(last.text + part.text)
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
            for kind, text in ((Text, content.content), (Refusal, content.refusal)):
                if text:
                    # Postgres cannot store NUL characters.
                    parts.append(kind(text.replace("\0", "")))
                    self._answer.count_chars(text)
            for position, delta in enumerate(content.tool_calls or ()):
                index = position if choice.message else self._call_index(delta)
                function = delta.function
                self._answer.add_call(index, delta.id, function.name, function.arguments)
            if choice.finish_reason:
                self.is_finished, self._finish_reason = True, choice.finish_reason
        usage = completion.usage
        if usage is not None:
            parts.append(UsedTokens.from_provider(usage.prompt_tokens, usage.completion_tokens))
        return parts

    def tool_calls(self) -> list[ToolCall]:
        return self._answer.tool_calls()

    def finished(self) -> Finished:
        return finished(self._finish_reason, has_calls=self._answer.last_index >= 0)

    def _failure(self, error: Any) -> ModelFailed:
        code = error.get("code") if isinstance(error, dict) else None
        message = error_message(self._target, error)
        if isinstance(code, int):
            return refused_by_provider(self._target.model, code, message)
        return ModelFailed(self._target.model, "refused", message)

    def _call_index(self, delta: _CallDelta) -> int:
        """Without an index, a delta with an id starts a new call; others continue the last."""
        if delta.index is not None:
            return delta.index
        last = self._answer.last_index
        return last + 1 if delta.id or last < 0 else last
