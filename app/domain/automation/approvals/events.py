from datetime import datetime
from typing import Any, ClassVar

from app.domain.area import Event


class _ApprovalEvent(Event):
    example: ClassVar[dict[str, Any]] = {
        "approval_id": "apr_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "workflow_execution_id": "wfx_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "node_id": "review",
        "title": "Refund order 4711",
    }

    approval_id: str
    workflow_execution_id: str | None
    node_id: str | None
    title: str


class ApprovalRequested(_ApprovalEvent):
    """The rule of notifications reads who is asked, the title and the message."""

    type: ClassVar[str] = "approval.requested"
    description: ClassVar[str] = "Users or a role were asked for a decision"
    example: ClassVar[dict[str, Any]] = {
        **_ApprovalEvent.example,
        "message": "The customer returned the lamp and wants 49.90 back.",
        "user_ids": ["usr_01k9x3m7e8c0v2q4r6t8w0y2a4"],
        "role": None,
        "expires_at": "2026-01-02T12:00:00Z",
    }

    message: str
    user_ids: list[str] | None
    role: str | None
    expires_at: datetime | None


class _DecisionEvent(_ApprovalEvent):
    example: ClassVar[dict[str, Any]] = {
        **_ApprovalEvent.example,
        "decided_by": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "comment": "The customer is right",
    }

    decided_by: str
    comment: str | None


class ApprovalApproved(_DecisionEvent):
    type: ClassVar[str] = "approval.approved"
    description: ClassVar[str] = "Somebody who was asked has approved"


class ApprovalRejected(_DecisionEvent):
    type: ClassVar[str] = "approval.rejected"
    description: ClassVar[str] = "Somebody who was asked has rejected"


class ApprovalTimeout(_ApprovalEvent):
    type: ClassVar[str] = "approval.timeout"
    description: ClassVar[str] = "Nobody decided in time"
    example: ClassVar[dict[str, Any]] = {
        **_ApprovalEvent.example,
        "expires_at": "2026-01-02T12:00:00Z",
    }

    expires_at: datetime
