from typing import Any, ClassVar

from app.domain.events.event import Event


class FormCreated(Event):
    type: ClassVar[str] = "form.created"
    description: ClassVar[str] = "A form was created"

    form_id: str
    name: str
    slug: str


class FormUpdated(Event):
    type: ClassVar[str] = "form.updated"
    description: ClassVar[str] = "A form was changed"

    form_id: str
    name: str
    slug: str
    changed: list[str]
    version: int


class FormDeleted(Event):
    type: ClassVar[str] = "form.deleted"
    description: ClassVar[str] = "A form was deleted"

    form_id: str
    name: str
    slug: str


class FormPublished(Event):
    type: ClassVar[str] = "form.published"
    description: ClassVar[str] = "A form was published"

    form_id: str
    name: str
    slug: str
    version: int


class SubmissionCreated(Event):
    type: ClassVar[str] = "form.submission.created"
    description: ClassVar[str] = "A form was submitted"

    form_id: str
    submission_id: str
    version: int
    source: str
    data: dict[str, Any]


class SubmissionUpdated(Event):
    type: ClassVar[str] = "form.submission.updated"
    description: ClassVar[str] = "A submission was changed, or moved to another status"

    form_id: str
    submission_id: str
    status: str
    changed: list[str]
