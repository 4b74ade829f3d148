from typing import Any, ClassVar

from app.domain.platform.drafts.schemas import DraftState

from .schemas import UpdateAgent


class AgentDraft(UpdateAgent, kw_only=True):
    """The fields of the draft; those that it does not have are the agent's. `draft` says where it
    stands.
    """

    example: ClassVar[dict[str, Any]] = {"temperature": 0.2, "draft": DraftState.example}

    draft: DraftState
