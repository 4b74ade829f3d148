"""What a client of OpenAI's wire formats sends along with its question."""

import re
from typing import Any

import msgspec

from app.domain.agents.llm.api import Function, Image, Message, ModelOptions, ToolChoice

_CALL_ID = re.compile(r"call_([0-9a-z]{26})_[0-9]{1,2}")


class FunctionResult(msgspec.Struct, frozen=True):
    """What a function returned that the client has run."""

    call_id: str
    output: str


class ClientInput(msgspec.Struct, frozen=True, kw_only=True):
    # The client's own history, which is sent to the model as it is; None means the conversation's.
    history: list[Message] | None = None
    # System messages that the model sees after the agent's own prompt.
    instructions: list[Message] = []
    # What the client says before its question; the conversation keeps it with the question.
    before: list[Message] = []
    # Whether the conversation keeps the history, because the client will not send it again.
    keeps_history: bool = False
    # The answer that must be the last one of the conversation.
    follows: str | None = None
    # The question where it has images.
    parts: tuple[str | Image, ...] = ()
    # False when the model goes on after the results alone.
    has_question: bool = True
    results: list[FunctionResult] = []
    functions: tuple[Function, ...] = ()
    tool_choice: ToolChoice = "auto"
    # Whether the client can take only one call of its functions at a time.
    takes_one_call: bool = False
    temperature: float | None = None
    max_tokens: int | None = None
    response_format: dict[str, Any] | None = None
    options: ModelOptions = ModelOptions()
    # Whether question and answer stay in the conversation.
    is_stored: bool = True
    # What is stored with the answer, for the client to read again.
    kept: dict[str, Any] = {}

    def field_names(self) -> set[str]:
        """Returns the fields by which the client changes the request to the model."""
        names = set(self.options.fields())
        if self.functions:
            names.add("tools")
        if self.tool_choice != "auto":
            names.add("tool_choice")
        if self.response_format is not None:
            names.add("response_format")
        if self.temperature not in {None, 1}:
            names.add("temperature")
        return names

    def without_images(self) -> "ClientInput":
        """Leaves out what is too large to be stored."""
        history = None if self.history is None else list(map(without_images, self.history))
        before = list(map(without_images, self.before))
        return msgspec.structs.replace(self, history=history, before=before, parts=())


def without_images(message: Message) -> Message:
    """A message has a mark in the place of each image."""
    return msgspec.structs.replace(message, parts=()) if message.parts else message


def message_id_of(other_id: str) -> str:
    """The answer of a job, or of a response in OpenAI's wire format, has the same id but for its
    prefix.
    """
    return f"msg_{other_id.partition('_')[2]}"


def job_id_of(message_id: str) -> str:
    return f"job_{message_id.partition('_')[2]}"


def id_prefix_of(message_id: str) -> str:
    """Returns how the ids of the calls begin with which this answer ends."""
    return f"call_{message_id.removeprefix('msg_')}_"


def answer_of(call_id: str) -> str | None:
    """Returns the answer that made the call; None for a call that is not from here."""
    match = _CALL_ID.fullmatch(call_id)
    return f"msg_{match.group(1)}" if match else None
