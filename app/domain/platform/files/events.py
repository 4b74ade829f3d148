from typing import Annotated

from app.domain.area import Event, example


class _FileEvent(Event):
    file_id: Annotated[str, example("fil_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    filename: Annotated[str, example("report.pdf")]
    mime_type: Annotated[str, example("application/pdf")]
    size_bytes: Annotated[int, example(48213)]
    purpose: Annotated[str, example("upload")]


class FileCreated(_FileEvent):
    """A file was uploaded."""

    type = "system.file.created"


class FileDeleted(_FileEvent):
    """A file was deleted.

    `filename` is empty for a file that a visitor uploaded to a form.
    """

    type = "system.file.deleted"
