"""Collects an answer of a model within its limits, for every adapter."""

from app.kit.texts import storable

from .protocol import Target, ToolCall
from .provider_failures import MAX_TOOL_CALLS, answer_too_long, too_many_calls

_MAX_CHARS = 1_000_000


class _ToolCallFragments:
    """The fragments of one streamed tool call."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []


class AnswerBuilder:
    """Limits the length of an answer, because it is stored and sent to the model again at every
    turn, and joins the fragments of its tool calls.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._chars = 0
        self._calls: dict[int, _ToolCallFragments] = {}

    def count_chars(self, text: str) -> None:
        self._chars += len(text)
        if self._chars > _MAX_CHARS:
            raise answer_too_long(self._target)

    def add_call(
        self, index: int, call_id: str | None, name: str | None, arguments: str | None
    ) -> None:
        self.count_chars(arguments or "")
        call = self._calls.setdefault(index, _ToolCallFragments())
        if len(self._calls) > MAX_TOOL_CALLS:
            raise too_many_calls(self._target)
        call.id = call_id or call.id
        call.name = name or call.name
        call.arguments.append(arguments or "")

    @property
    def last_index(self) -> int:
        """The index of the last tool call, -1 without one."""
        return max(self._calls, default=-1)

    def tool_calls(self) -> list[ToolCall]:
        return [
            ToolCall(
                call.id or f"call_{index}", storable(call.name), storable("".join(call.arguments))
            )
            for index, call in sorted(self._calls.items())
        ]
