from typing import Any, ClassVar

from app.domain.area import Event

_TAIL = "01k9x3m7e8c0v2q4r6t8w0y2a4"
_FORM: dict[str, Any] = {"form_id": f"frm_{_TAIL}", "name": "Contact", "slug": "contact-8k2m4q6t"}


class FormCreated(Event):
    type: ClassVar[str] = "form.created"
    description: ClassVar[str] = "A form was created"
    example: ClassVar[dict[str, Any]] = _FORM

    form_id: str
    name: str
    slug: str


class FormUpdated(Event):
    type: ClassVar[str] = "form.updated"
    description: ClassVar[str] = "A form was changed, unpublished or archived"
    example: ClassVar[dict[str, Any]] = {**_FORM, "version": 2, "changed": ["fields"]}

    form_id: str
    name: str
    slug: str
    version: int
    changed: list[str]


class FormDeleted(Event):
    type: ClassVar[str] = "form.deleted"
    description: ClassVar[str] = "A form was deleted, with all submissions"
    example: ClassVar[dict[str, Any]] = _FORM

    form_id: str
    name: str
    slug: str


class FormPublished(Event):
    type: ClassVar[str] = "form.published"
    description: ClassVar[str] = "A form was published"
    example: ClassVar[dict[str, Any]] = {**_FORM, "version": 1}

    form_id: str
    name: str
    slug: str
    version: int
