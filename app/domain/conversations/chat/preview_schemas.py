from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from app.domain.agents.definition.schemas import UpdateAgent

from .schemas import AttachmentIds, MessageText, Replaces


class PreviewRequest(msgspec.Struct, kw_only=True):
    """`message` may be left out with `replay_of` alone."""

    example: ClassVar[dict[str, Any]] = {
        "message": "When does the shop open?",
        "draft": {"system_prompt": "You help in a shop. Answer in one sentence."},
    }

    message: MessageText | None = None
    draft: Annotated[
        UpdateAgent,
        Meta(
            description="Fields of the agent that differ from the stored ones in this turn; "
            "description and status change nothing in it"
        ),
    ] = msgspec.field(default_factory=UpdateAgent)
    conversation_id: Annotated[
        str | None,
        Meta(description="Continues one of your previews; without it, a new conversation begins"),
    ] = None
    replay_of: Annotated[
        Annotated[str, Meta(max_length=64)] | None,
        Meta(
            description="The id of an answer of this agent, in a conversation that you may read: a "
            "new conversation begins with what that one had before the question, which is asked "
            "again unless there is a `message`",
        ),
    ] = None
    context: Annotated[
        dict[str, Any] | None,
        Meta(description="Facts for this turn alone; the model sees them beside the prompt"),
    ] = None
    replaces: Replaces = None
    attachments: AttachmentIds = []
