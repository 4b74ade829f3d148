"""The end and the error of a Gemini stream, which litellm does not report."""

from contextlib import suppress
from typing import Any, Self

import msgspec


class _GeminiCandidate(msgspec.Struct):
    finish_reason: str | None = msgspec.field(default=None, name="finishReason")


class _GeminiError(msgspec.Struct):
    code: int = 500
    message: str = ""


class _GeminiEvent(msgspec.Struct):
    candidates: list[_GeminiCandidate] = []
    prompt_feedback: Any = msgspec.field(default=None, name="promptFeedback")
    error: _GeminiError | None = None


_event_decoder = msgspec.json.Decoder(_GeminiEvent)


class WatchedLines:
    """Passes on the lines of a Gemini stream and notes its end and its error, which litellm does
    not report.
    """

    def __init__(self, lines: Any) -> None:
        self.is_finished = False
        self.error: _GeminiError | None = None
        self._lines = lines

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        line = str(await anext(self._lines))
        with suppress(msgspec.DecodeError):
            event = _event_decoder.decode(line.removeprefix("data:"))
            has_reason = any(candidate.finish_reason for candidate in event.candidates)
            self.is_finished |= bool(event.prompt_feedback) or has_reason
            self.error = event.error or self.error
        return line

    async def aclose(self) -> None:
        await self._lines.aclose()


async def watch_lines(answer: Any) -> WatchedLines:
    stream = await answer.fetch_stream()
    stream.streaming_response = lines = WatchedLines(stream.streaming_response)
    return lines
