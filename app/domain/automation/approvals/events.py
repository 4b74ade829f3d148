from datetime import datetime
from typing import Annotated, Literal

from app.domain.area import Event, example


class _ApprovalEvent(Event):
    approval_id: Annotated[str, example("apr_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    workflow_execution_id: Annotated[str | None, example("wfx_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    node_id: Annotated[str | None, example("review")]
    title: Annotated[str, example("Refund order 4711")]


class ApprovalRequested(_ApprovalEvent):
    """Users or a role were asked for a decision.

    The rule of notifications reads who is asked, the title and the message.
    """

    type = "approval.requested"

    message: Annotated[str, example("The customer returned the lamp and wants 49.90 back.")]
    user_ids: Annotated[list[str] | None, example(["usr_01k9x3m7e8c0v2q4r6t8w0y2a4"])]
    role: Annotated[str | None, example(None)]
    expires_at: Annotated[datetime | None, example("2026-01-02T12:00:00Z")]


class _DecisionEvent(_ApprovalEvent):
    decided_by: Annotated[str, example("usr_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    comment: Annotated[str | None, example("The customer is right")]
    via: Annotated[Literal["api", "mail"], example("mail")]


class ApprovalApproved(_DecisionEvent):
    """Somebody who was asked has approved."""

    type = "approval.approved"


class ApprovalRejected(_DecisionEvent):
    """Somebody who was asked has rejected."""

    type = "approval.rejected"


class ApprovalTimeout(_ApprovalEvent):
    """Nobody decided in time."""

    type = "approval.timeout"

    expires_at: Annotated[datetime, example("2026-01-02T12:00:00Z")]
