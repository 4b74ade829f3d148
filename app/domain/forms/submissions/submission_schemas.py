"""Request and response bodies of submissions."""

from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

SubmissionStatus = Literal["received", "processed", "archived"]

_TAIL = "01k9x3m7e8c0v2q4r6t8w0y2a4"
_ID = f"sbm_{_TAIL}"
_FORM_ID = f"frm_{_TAIL}"
_TIME = "2026-01-01T12:00:00Z"
_ANSWERS: dict[str, Any] = {"name": "Ada", "email": "ada@example.com", "topic": "support"}
_MESSAGE = "Thank you. Your answers have been received."

Version = Annotated[int, Meta(ge=1, le=1_000_000_000)]


class SubmitForm(msgspec.Struct, kw_only=True):
    """`version` is the version of the form that was shown, by default the newest one; `started_at`
    is when it was shown. Of `metadata`, `source` says where the answers come from.
    """

    example: ClassVar[dict[str, Any]] = {"data": _ANSWERS, "metadata": {"campaign": "spring"}}

    data: dict[str, Any]
    metadata: dict[str, Any] = {}
    version: Version | None = None
    started_at: Annotated[datetime, Meta(tz=True)] | None = None


class SubmitPublicForm(SubmitForm, kw_only=True):
    """`honeypot` is the value of an input that people do not see: a submission with one is marked.
    `draft_token` ends the draft that was continued.
    """

    example: ClassVar[dict[str, Any]] = {"data": _ANSWERS}

    honeypot: Annotated[str, Meta(max_length=10_000)] = ""
    draft_token: Annotated[str, Meta(max_length=100)] | None = None


class AcceptedSubmission(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "submission_id": _ID,
        "form_id": _FORM_ID,
        "status": "received",
        "workflow_execution_id": None,
        "created_at": _TIME,
    }

    submission_id: str
    form_id: str
    status: SubmissionStatus
    workflow_execution_id: str | None
    created_at: datetime


class AcceptedSubmissionData(msgspec.Struct):
    """`message` is the form's success message."""

    example: ClassVar[dict[str, Any]] = {"data": AcceptedSubmission.example, "message": _MESSAGE}

    data: AcceptedSubmission
    message: str


class PublicSubmission(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"submission_id": _ID, "status": "received"}

    submission_id: str
    status: SubmissionStatus


class PublicSubmissionData(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"data": PublicSubmission.example, "message": _MESSAGE}

    data: PublicSubmission
    message: str


class UploadedFile(msgspec.Struct):
    """`file_id` is the answer to the field. `mime_type` is detected from the content."""

    example: ClassVar[dict[str, Any]] = {
        "file_id": "fil_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "filename": "invoice.pdf",
        "size_bytes": 12345,
        "mime_type": "application/pdf",
    }

    file_id: str
    filename: str
    size_bytes: int
    mime_type: str


class SubmissionFile(UploadedFile):
    example: ClassVar[dict[str, Any]] = {**UploadedFile.example, "field_id": "attachment"}

    field_id: str


class ProcessingError(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "step": "data_table",
        "message": "There is no data table tbl_01k9x3m7e8c0v2q4r6t8w0y2a4",
    }

    step: str
    message: str


class SubmissionWorkflow(msgspec.Struct):
    """`output` is null for those who may not run workflows."""

    example: ClassVar[dict[str, Any]] = {
        "id": f"wfx_{_TAIL}",
        "status": "completed",
        "output": "Done",
    }

    id: str
    status: str
    output: Any


class SubmissionSummary(msgspec.Struct):
    """`data` is empty and `is_omitted` true for answers of more than 32 KiB, which are read one at
    a time. `flags` are signs of abuse, `honeypot` and `repeat`. `errors` says what failed while it
    was processed.
    """

    example: ClassVar[dict[str, Any]] = {
        "id": _ID,
        "form_id": _FORM_ID,
        "form_name": "Contact",
        "version": 1,
        "status": "processed",
        "data": _ANSWERS,
        "is_omitted": False,
        "metadata": {
            "campaign": "spring",
            "ip_address": "203.0.113.7",
            "user_agent": "Mozilla/5.0",
            "source": "embed",
            "page_url": "https://example.com/contact",
            "referrer": "",
        },
        "files": [],
        "flags": [],
        "errors": [],
        "workflow_execution_id": f"wfx_{_TAIL}",
        "row_id": None,
        "submitted_by": None,
        "conversation_id": None,
        "created_at": _TIME,
        "processed_at": _TIME,
    }

    id: str
    form_id: str
    form_name: str
    version: int
    status: SubmissionStatus
    data: dict[str, Any]
    is_omitted: bool
    metadata: dict[str, Any]
    files: list[SubmissionFile]
    flags: list[str]
    errors: list[ProcessingError]
    workflow_execution_id: str | None
    row_id: str | None
    submitted_by: str | None
    conversation_id: str | None
    created_at: datetime
    processed_at: datetime | None


class SubmissionView(SubmissionSummary, kw_only=True):
    example: ClassVar[dict[str, Any]] = {
        **SubmissionSummary.example,
        "workflow_execution": SubmissionWorkflow.example,
    }

    workflow_execution: SubmissionWorkflow | None


class UpdateSubmission(msgspec.Struct, kw_only=True):
    """`received` cannot be set: it is the state of a submission that waits for a worker."""

    example: ClassVar[dict[str, Any]] = {"status": "archived"}

    status: Literal["processed", "archived"]


# Drafts


class SaveDraft(msgspec.Struct, kw_only=True):
    """With `token`, an earlier draft is replaced. Answers may be missing, but not wrong."""

    example: ClassVar[dict[str, Any]] = {"data": {"name": "Ada"}}

    data: dict[str, Any]
    version: Version | None = None
    token: Annotated[str, Meta(min_length=1, max_length=100)] | None = None


class SavedDraftView(msgspec.Struct):
    """Anyone who has the token or the link can read and submit the draft. It is shown only here."""

    example: ClassVar[dict[str, Any]] = {
        "token": "Vx3m7e8c0v2q4r6t8w0y2a4Vx3m7e8c0v2q4r6t8w0y",
        "url": "https://parley.example.com/f/contact-8k2m4q6t#draft=Vx3m7e8c0v2q4r6t8w0y2a4V",
        "version": 1,
        "data": {"name": "Ada"},
        "expires_at": "2026-01-31T12:00:00Z",
    }

    token: str
    url: str
    version: int
    data: dict[str, Any]
    expires_at: datetime


class DraftView(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "version": 1,
        "data": {"name": "Ada"},
        "created_at": _TIME,
        "updated_at": _TIME,
        "expires_at": "2026-01-31T12:00:00Z",
    }

    version: int
    data: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    expires_at: datetime
