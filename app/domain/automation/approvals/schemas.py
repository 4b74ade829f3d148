from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

Status = Literal["pending", "approved", "rejected", "timed_out", "cancelled"]
Via = Literal["api", "mail"]
TriggerType = Literal["manual", "schedule", "event", "webhook", "form", "workflow"]

_APPROVAL: dict[str, Any] = {
    "id": "apr_01k9x3m7e8c0v2q4r6t8w0y2a4",
    "workflow_execution_id": "wfx_01k9x3m7e8c0v2q4r6t8w0y2a4",
    "node_id": "review",
    "title": "Refund order 4711",
    "message": "The customer returned the lamp and wants 49.90 back.",
    "origin": {"workflow_name": "Refunds", "trigger_type": "form", "trigger_name": "Returns"},
    "details": [{"name": "Amount", "value": "49.90"}, {"name": "Customer", "value": "Ada"}],
    "status": "approved",
    "user_ids": ["usr_01k9x3m7e8c0v2q4r6t8w0y2a4"],
    "role": None,
    "comment": "The customer is right",
    "decided_by": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4",
    "decided_via": "mail",
    "decided_at": "2026-01-01T13:00:00Z",
    "expires_at": "2026-01-02T12:00:00Z",
    "created_at": "2026-01-01T12:00:00Z",
}


class Origin(msgspec.Struct, frozen=True):
    """The workflow that asks, and the name of what started it: of a user, a form, an incoming
    webhook or another workflow, or the type of an event.
    """

    workflow_name: str
    trigger_type: TriggerType
    trigger_name: str | None = None


class Detail(msgspec.Struct, frozen=True):
    """A value that those who are asked see."""

    name: str
    value: str


class ApprovalView(msgspec.Struct):
    """Asks the users in `user_ids`, or all users with `role`. `decided_at` is also the time at
    which it timed out or was cancelled. `decided_via` is `mail` for a decision by the link of a
    mail.
    """

    example: ClassVar[dict[str, Any]] = _APPROVAL

    id: str
    workflow_execution_id: str | None
    node_id: str | None
    title: str
    message: str
    origin: Origin | None
    details: list[Detail]
    status: Status
    user_ids: list[str] | None
    role: str | None
    comment: str | None
    decided_by: str | None
    decided_via: Via | None
    decided_at: datetime | None
    expires_at: datetime | None
    created_at: datetime


class Decision(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"comment": "The customer is right"}

    comment: Annotated[str, Meta(max_length=2000)] | None = None


# The token of a link in a mail.
LinkToken = Annotated[str, Meta(min_length=1, max_length=1024)]
_TOKEN = "apl_eyJhbGciOiJIUzI1NiJ9.e30.c2ln"  # noqa: S105  # an example


class LookUp(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"token": _TOKEN}

    token: LinkToken


class LinkDecision(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {
        "token": _TOKEN,
        "decision": "approved",
        "comment": "The customer is right",
    }

    token: LinkToken
    decision: Literal["approved", "rejected"]
    comment: Annotated[str, Meta(max_length=2000)] | None = None


class LinkedApproval(msgspec.Struct, kw_only=True):
    """What the page of a link shows. `user_name` is the user to whom the mail was sent, and
    `decided_by` the name of the user who has decided.
    """

    example: ClassVar[dict[str, Any]] = {
        "title": "Refund order 4711",
        "message": "The customer returned the lamp and wants 49.90 back.",
        "workflow_name": "Refunds",
        "started_by": "the form Returns",
        "details": [{"name": "Amount", "value": "49.90"}],
        "status": "approved",
        "user_name": "Ada Lovelace",
        "comment": "The customer is right",
        "decided_by": "Ada Lovelace",
        "decided_at": "2026-01-01T13:00:00Z",
        "expires_at": "2026-01-02T12:00:00Z",
    }

    title: str
    message: str
    workflow_name: str | None
    started_by: str | None
    details: list[Detail]
    status: Status
    user_name: str
    comment: str | None
    decided_by: str | None
    decided_at: datetime | None
    expires_at: datetime | None
