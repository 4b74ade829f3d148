from typing import Any, ClassVar

from app.domain.area import Event


class _FileEvent(Event):
    example: ClassVar[dict[str, Any]] = {
        "file_id": "fil_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "filename": "report.pdf",
        "mime_type": "application/pdf",
        "size_bytes": 48213,
        "purpose": "upload",
    }

    file_id: str
    filename: str
    mime_type: str
    size_bytes: int
    purpose: str


class FileCreated(_FileEvent):
    type: ClassVar[str] = "system.file.created"
    description: ClassVar[str] = "A file was uploaded"


class FileDeleted(_FileEvent):
    """`filename` is empty for a file that a visitor uploaded to a form."""

    type: ClassVar[str] = "system.file.deleted"
    description: ClassVar[str] = "A file was deleted"
