from typing import Any, ClassVar

from app.domain.area import Event

_TAIL = "01k9x3m7e8c0v2q4r6t8w0y2a4"


class _FormEvent(Event):
    example: ClassVar[dict[str, Any]] = {
        "form_id": f"frm_{_TAIL}",
        "name": "Contact",
        "slug": "contact-8k2m4q6t",
    }

    form_id: str
    name: str
    slug: str


class FormCreated(_FormEvent):
    type: ClassVar[str] = "form.created"
    description: ClassVar[str] = "A form was created"


class FormUpdated(_FormEvent):
    type: ClassVar[str] = "form.updated"
    description: ClassVar[str] = "A form was changed, unpublished or archived"
    example: ClassVar[dict[str, Any]] = {**_FormEvent.example, "version": 2, "changed": ["fields"]}

    version: int
    changed: list[str]


class FormDeleted(_FormEvent):
    type: ClassVar[str] = "form.deleted"
    description: ClassVar[str] = "A form was deleted, with all submissions"


class FormPublished(_FormEvent):
    type: ClassVar[str] = "form.published"
    description: ClassVar[str] = "A form was published"
    example: ClassVar[dict[str, Any]] = {**_FormEvent.example, "version": 1}

    version: int
