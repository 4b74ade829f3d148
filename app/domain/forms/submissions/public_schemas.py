"""What visitors see of a form."""

from datetime import datetime
from typing import Any, ClassVar

import msgspec

from app.domain.forms.definition.api import Conditional, Field, FieldTypeName, LiveForm, Option
from app.domain.forms.definition.schemas import Branding, CreateForm
from app.kit.languages import Language


class PublicField(msgspec.Struct):
    """With `has_data_source`, the options are read from the field's own address."""

    example: ClassVar[dict[str, Any]] = {
        **Field.example,
        "placeholder": "",
        "validation": {},
        "options": [],
        "has_data_source": False,
        "help_text": "",
        "conditional": None,
    }

    id: str
    type: FieldTypeName
    label: str
    placeholder: str
    required: bool
    validation: dict[str, Any]
    options: list[Option]
    has_data_source: bool
    help_text: str
    conditional: Conditional | None


class PublicSettings(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "submit_button_text": "Send",
        "success_message": "Thank you. We will reply within a day.",
        "redirect_url": None,
        "closes_at": None,
        "language": None,
    }

    submit_button_text: str
    success_message: str
    redirect_url: str | None
    closes_at: datetime | None
    language: Language | None


class PublicForm(msgspec.Struct):
    """`version` is to be sent with the answers, so that they are checked by these fields."""

    example: ClassVar[dict[str, Any]] = {
        "name": "Contact",
        "slug": "contact-8k2m4q6t",
        "description": "Questions of visitors",
        "version": 1,
        "fields": [PublicField.example],
        "branding": CreateForm.example["branding"],
        "settings": PublicSettings.example,
    }

    name: str
    slug: str
    description: str
    version: int
    fields: list[PublicField]
    branding: Branding
    settings: PublicSettings


class FormEmbed(msgspec.Struct):
    """HTML for a page: a script that adds the form where it stands, or a frame."""

    example: ClassVar[dict[str, Any]] = {
        "script_embed": '<script async src="https://parley.example.com/embed/form.js" '
        'data-form="contact-8k2m4q6t"></script>',
        "iframe_embed": '<iframe src="https://parley.example.com/f/contact-8k2m4q6t" '
        'title="Contact" width="100%" height="600" style="border:0"></iframe>',
    }

    script_embed: str
    iframe_embed: str


def build_field(field: Field) -> PublicField:
    """Leaves out which data table has the options."""
    return PublicField(
        field.id,
        field.type,
        field.label,
        field.placeholder,
        field.required,
        field.validation,
        field.options,
        field.data_source is not None,
        field.help_text,
        field.conditional,
    )


def build_form(form: LiveForm, fields: list[Field]) -> PublicForm:
    """Leaves out what is the tenant's own: who is notified, and what happens with the answers."""
    settings = form.settings
    return PublicForm(
        form.name,
        form.slug,
        form.description,
        form.version,
        [build_field(field) for field in fields],
        form.branding,
        PublicSettings(
            settings.submit_button_text,
            settings.success_message,
            settings.redirect_url,
            settings.closes_at,
            settings.language,
        ),
    )
