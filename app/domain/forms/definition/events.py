from typing import Annotated

from app.domain.area import Event, example


class _FormEvent(Event):
    form_id: Annotated[str, example("frm_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    name: Annotated[str, example("Contact")]
    slug: Annotated[str, example("contact-8k2m4q6t")]


class FormCreated(_FormEvent):
    """A form was created."""

    type = "form.created"


class FormUpdated(_FormEvent):
    """A form was changed, unpublished or archived."""

    type = "form.updated"

    version: Annotated[int, example(2)]
    changed: Annotated[list[str], example(["fields"])]


class FormDeleted(_FormEvent):
    """A form was deleted, with all submissions."""

    type = "form.deleted"


class FormPublished(_FormEvent):
    """A form was published."""

    type = "form.published"

    version: Annotated[int, example(1)]
