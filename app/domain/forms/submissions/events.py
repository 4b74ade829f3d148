from typing import Any, ClassVar

from app.domain.area import Event

_TAIL = "01k9x3m7e8c0v2q4r6t8w0y2a4"


class _SubmissionEvent(Event):
    example: ClassVar[dict[str, Any]] = {
        "submission_id": f"sbm_{_TAIL}",
        "form_id": f"frm_{_TAIL}",
        "form_name": "Contact",
        "status": "received",
    }

    submission_id: str
    form_id: str
    form_name: str
    status: str


class SubmissionCreated(_SubmissionEvent):
    """`data` is null for answers of more than 32 KiB, which the API returns. `owner_id` is the user
    who created the form.
    """

    type: ClassVar[str] = "form.submission.created"
    description: ClassVar[str] = "A form was submitted"
    example: ClassVar[dict[str, Any]] = {
        **_SubmissionEvent.example,
        "version": 1,
        "data": {"email": "ada@example.com"},
        "source": "public",
        "flags": [],
        "owner_id": f"usr_{_TAIL}",
        "submitted_by": None,
    }

    version: int
    data: dict[str, Any] | None
    source: str
    flags: list[str]
    owner_id: str | None
    submitted_by: str | None


class SubmissionUpdated(_SubmissionEvent):
    type: ClassVar[str] = "form.submission.updated"
    description: ClassVar[str] = "A submission was processed or archived"
    example: ClassVar[dict[str, Any]] = {
        **_SubmissionEvent.example,
        "status": "processed",
        "errors": [],
    }

    errors: list[dict[str, str]]
