"""Request and response bodies of forms that are filled in by chat."""

from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from app.kit.languages import Language
from app.kit.validation import NOT_BLANK

ConversationStatus = Literal["active", "completed", "abandoned"]

_TIME = "2026-01-01T12:00:00Z"
_ID = "fcv_8kq2m4t6v8x0z2b4d6f8h0k2m4"
# A drawn signature is the longest answer.
MAX_CONTENT_CHARS = 250_000


class StartFormConversation(msgspec.Struct, kw_only=True):
    """`data` has answers that are known already, such as those of hidden fields. `language` is a
    tag like `de` or `pt-BR`, and takes precedence over the form's setting and Accept-Language; a
    language that is not known here counts as none.
    """

    example: ClassVar[dict[str, Any]] = {"data": {"campaign": "spring"}, "language": "de"}

    data: dict[str, Any] = {}
    language: Annotated[str, Meta(max_length=35)] | None = None


class FormConversationView(msgspec.Struct):
    """`fields_total` counts the fields that are shown now, which depends on the answers."""

    example: ClassVar[dict[str, Any]] = {
        "id": _ID,
        "form_slug": "contact-8k2m4q6t",
        "status": "active",
        "fields_completed": 1,
        "fields_total": 3,
        "collected_data": {"name": "Ada"},
        "submission_id": None,
        "created_at": _TIME,
        "language": "en",
    }

    id: str
    form_slug: str
    status: ConversationStatus
    fields_completed: int
    fields_total: int
    collected_data: dict[str, Any]
    submission_id: str | None
    created_at: datetime
    language: Language


class FormMessageView(msgspec.Struct, omit_defaults=True):
    """`field_id` is the field that the assistant asks for."""

    example: ClassVar[dict[str, Any]] = {
        "id": "fms_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "role": "assistant",
        "content": "Your e-mail address: please enter an e-mail address, like name@example.com.",
        "field_id": "email",
        "created_at": _TIME,
    }

    id: str
    role: Literal["assistant", "user"]
    content: str
    created_at: datetime
    field_id: str | None = None


class StartedFormConversation(msgspec.Struct):
    """`message` is the first question."""

    example: ClassVar[dict[str, Any]] = {
        "data": FormConversationView.example,
        "message": FormMessageView.example,
    }

    data: FormConversationView
    message: FormMessageView


class SendFormMessage(msgspec.Struct, kw_only=True):
    """The answer to a file field is the id of an uploaded file; to a signature, also the image."""

    example: ClassVar[dict[str, Any]] = {"content": "My e-mail is ada@example.com"}

    content: Annotated[str, Meta(min_length=1, max_length=MAX_CONTENT_CHARS, pattern=NOT_BLANK)]


class FormTurn(msgspec.Struct, omit_defaults=True):
    """`submission_id` is there once `form_completed` is true."""

    example: ClassVar[dict[str, Any]] = {
        "user_message": {
            "id": "fms_01k9x3m7e8c0v2q4r6t8w0y2a4",
            "role": "user",
            "content": "Ada",
            "created_at": _TIME,
        },
        "assistant_message": FormMessageView.example,
        "fields_completed": 1,
        "fields_total": 3,
        "form_completed": False,
    }

    user_message: FormMessageView
    assistant_message: FormMessageView
    fields_completed: int
    fields_total: int
    form_completed: bool
    submission_id: str | None = None


class FormProgress(msgspec.Struct):
    """`field_id` is the field that the assistant asks for next; null once `form_completed` is true.
    `submission_id` is there from then on.
    """

    example: ClassVar[dict[str, Any]] = {
        "fields_completed": 1,
        "fields_total": 3,
        "form_completed": False,
        "submission_id": None,
        "field_id": "email",
    }

    fields_completed: int
    fields_total: int
    form_completed: bool
    submission_id: str | None
    field_id: str | None


class FormMessageStop(msgspec.Struct):
    """The message is complete."""

    example: ClassVar[dict[str, Any]] = {"message_id": "fms_01k9x3m7e8c0v2q4r6t8w0y2a4"}

    message_id: str
