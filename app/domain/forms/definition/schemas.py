"""Request and response bodies of forms."""

from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from app.kit import validation
from app.kit.languages import Language
from app.kit.validation import ONE_LINE

from .fields.definition import Field

Status = Literal["draft", "published", "archived"]
COLOR = r"^(?![\s\S]*\n)#[0-9A-Fa-f]{6}$"
WEB_ADDRESS = r"""^(?![\s\S]*\n)https?://[^\s<>"'\\/?#]+[^\s<>"'\\]*$"""
validation.describe_pattern(COLOR, "must be a color like #1a73e8")
validation.describe_pattern(WEB_ADDRESS, "must be a web address, like https://example.com")

_TAIL = "01k9x3m7e8c0v2q4r6t8w0y2a4"
_ID = f"frm_{_TAIL}"
_TIME = "2026-01-01T12:00:00Z"
_FIELDS: list[dict[str, Any]] = [
    {"id": "name", "type": "text", "label": "Your name", "required": True},
    {"id": "email", "type": "email", "label": "Your e-mail address", "required": True},
    {
        "id": "topic",
        "type": "select",
        "label": "What is it about?",
        "options": [
            {"value": "sales", "label": "Sales"},
            {"value": "support", "label": "Support"},
        ],
    },
    {
        "id": "budget",
        "type": "number",
        "label": "Your budget",
        "validation": {"min": 0},
        "conditional": {"field": "topic", "operator": "equals", "value": "sales"},
    },
    {"id": "consent", "type": "page_break", "label": "Your consent"},
    {
        "id": "privacy",
        "type": "checkbox",
        "label": "I accept the [privacy notice](https://example.com/privacy)",
        "required": True,
    },
]
_SETTINGS: dict[str, Any] = {
    "submit_button_text": "Send",
    "success_message": "Thank you. We will reply within a day.",
    "redirect_url": None,
    "notifications": {"email": "team@example.com"},
}
_BRANDING: dict[str, Any] = {
    "logo_url": "https://example.com/logo.png",
    "primary_color": "#1a73e8",
    "background_color": "#ffffff",
}

Name = Annotated[str, Meta(min_length=1, max_length=100, pattern=ONE_LINE)]
Description = Annotated[str, Meta(max_length=2000)]
# Their number, and what depends on their types, is checked with them.
Fields = Annotated[list[Field], Meta(max_length=1000)]
WebAddress = Annotated[str, Meta(max_length=2000, pattern=WEB_ADDRESS)]
Color = Annotated[str, Meta(pattern=COLOR)]
Text = Annotated[str, Meta(min_length=1, max_length=100, pattern=ONE_LINE)]


class FormNotifications(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Each submission is mailed to this address, at most 30 within an hour; a digest counts the
    others. An address that is not that of a verified member of the tenant must be confirmed once,
    by a link that is mailed to it.
    """

    example: ClassVar[dict[str, Any]] = {"email": "team@example.com"}

    email: Annotated[str, Meta(max_length=254)] | None = None


class ConversationSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the form is filled in by chat. `model` reads the answers in messages; without one, the
    local model does if it runs, and `none` asks for one answer at a time.
    """

    example: ClassVar[dict[str, Any]] = {"model": "local/smollm2", "greeting": "Hello!"}

    model: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    greeting: Annotated[str, Meta(max_length=500)] = ""


class FormSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """After `max_submissions` or from `closes_at` on, submissions get 409 `form_closed`. The page
    and the chat speak `language`; without one, that of the page around or of the browser.
    """

    example: ClassVar[dict[str, Any]] = _SETTINGS

    submit_button_text: Text = "Submit"
    success_message: Annotated[str, Meta(min_length=1, max_length=1000)] = (
        "Thank you. Your answers have been received."
    )
    redirect_url: WebAddress | None = None
    notifications: FormNotifications = FormNotifications()
    max_submissions: Annotated[int, Meta(ge=1, le=1_000_000_000)] | None = None
    closes_at: Annotated[datetime, Meta(tz=True)] | None = None
    conversation: ConversationSettings = ConversationSettings()
    language: Language | None = None


class Branding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    example: ClassVar[dict[str, Any]] = _BRANDING

    logo_url: WebAddress | None = None
    primary_color: Color | None = None
    background_color: Color | None = None


class DataTableConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """With `auto_save`, each submission becomes a row: `field_mapping` has columns by field ids."""

    example: ClassVar[dict[str, Any]] = {
        "table_id": f"tbl_{_TAIL}",
        "auto_save": True,
        "field_mapping": {"email": "email_address"},
    }

    table_id: Annotated[str, Meta(min_length=1, max_length=64)]
    auto_save: bool = False
    field_mapping: Annotated[
        dict[str, Annotated[str, Meta(min_length=1, max_length=100)]], Meta(max_length=200)
    ] = {}


class CreateForm(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {
        "name": "Contact",
        "description": "Questions of visitors",
        "fields": _FIELDS,
        "settings": _SETTINGS,
        "branding": _BRANDING,
    }

    name: Name
    fields: Fields
    description: Description = ""
    settings: FormSettings = FormSettings()
    workflow_id: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    data_table_config: DataTableConfig | None = None
    branding: Branding = Branding()


class UpdateForm(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"name": "Contact us"}

    name: Name | UnsetType = UNSET
    fields: Fields | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    settings: FormSettings | UnsetType = UNSET
    workflow_id: Annotated[str, Meta(min_length=1, max_length=64)] | UnsetType | None = UNSET
    data_table_config: DataTableConfig | UnsetType | None = UNSET
    branding: Branding | UnsetType = UNSET


class FormStats(msgspec.Struct):
    """`conversion_rate` is the share of views that became submissions, in percent."""

    example: ClassVar[dict[str, Any]] = {
        "submissions": 12,
        "views": 48,
        "conversion_rate": 25.0,
    }

    submissions: int
    views: int
    conversion_rate: float


class _Form(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "id": _ID,
        "name": "Contact",
        "slug": "contact-8k2m4q6t",
        "description": "Questions of visitors",
        "status": "published",
        "version": 1,
        "created_at": _TIME,
        "updated_at": _TIME,
        "published_at": _TIME,
    }

    id: str
    name: str
    slug: str
    description: str
    status: Status
    version: int
    created_at: datetime
    updated_at: datetime
    published_at: datetime | None


class FormSummary(_Form):
    example: ClassVar[dict[str, Any]] = {**_Form.example, "field_count": 6, "submission_count": 12}

    field_count: int
    submission_count: int | None


class FormView(_Form):
    """`version` is the version of `fields`, the newest one. `unconfirmed_emails` has the address of
    `settings.notifications` until it is confirmed: nothing is mailed to it before.
    """

    example: ClassVar[dict[str, Any]] = {
        **_Form.example,
        "fields": _FIELDS,
        "settings": _SETTINGS,
        "unconfirmed_emails": [],
        "workflow_id": None,
        "data_table_config": None,
        "branding": _BRANDING,
        "stats": FormStats.example,
        "created_by": f"usr_{_TAIL}",
    }

    fields: list[Field]
    settings: FormSettings
    unconfirmed_emails: list[str]
    workflow_id: str | None
    data_table_config: DataTableConfig | None
    branding: Branding
    stats: FormStats | None
    created_by: str | None


class PublishedForm(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "id": _ID,
        "status": "published",
        "slug": "contact-8k2m4q6t",
        "published_at": _TIME,
    }

    id: str
    status: Status
    slug: str
    published_at: datetime | None


class DuplicatedForm(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "id": _ID,
        "name": "Contact (copy)",
        "slug": "contact-copy-8k2m4q6t",
        "status": "draft",
        "field_count": 6,
        "created_at": _TIME,
    }

    id: str
    name: str
    slug: str
    status: Status
    field_count: int
    created_at: datetime


class FormVersionSummary(msgspec.Struct):
    """`published_at` is when it could be submitted for the first time."""

    example: ClassVar[dict[str, Any]] = {
        "version": 1,
        "created_by": f"usr_{_TAIL}",
        "created_at": _TIME,
        "published_at": _TIME,
    }

    version: int
    created_by: str | None
    created_at: datetime
    published_at: datetime | None


class FormVersionView(FormVersionSummary):
    example: ClassVar[dict[str, Any]] = {**FormVersionSummary.example, "fields": _FIELDS}

    fields: list[Field]


class FieldTypeView(msgspec.Struct):
    """`validation_schema` is the JSON Schema of the field's `validation`."""

    example: ClassVar[dict[str, Any]] = {
        "type": "rating",
        "description": "A number of stars",
        "has_value": True,
        "has_options": False,
        "validation_schema": {"type": "object"},
    }

    type: str
    description: str
    has_value: bool
    has_options: bool
    validation_schema: dict[str, Any]


class FormOption(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"value": "sales", "label": "Sales"}

    value: str
    label: str
