from typing import Any, ClassVar

from app.domain.area import Event

_FILE: dict[str, Any] = {
    "file_id": "fil_01k9x3m7e8c0v2q4r6t8w0y2a4",
    "filename": "report.pdf",
    "mime_type": "application/pdf",
    "size_bytes": 48213,
    "purpose": "upload",
}


class FileCreated(Event):
    type: ClassVar[str] = "system.file.created"
    description: ClassVar[str] = "A file was uploaded"
    example: ClassVar[dict[str, Any]] = _FILE

    file_id: str
    filename: str
    mime_type: str
    size_bytes: int
    purpose: str


class FileDeleted(Event):
    """`filename` is empty for a file that a visitor uploaded to a form."""

    type: ClassVar[str] = "system.file.deleted"
    description: ClassVar[str] = "A file was deleted"
    example: ClassVar[dict[str, Any]] = _FILE

    file_id: str
    filename: str
    mime_type: str
    size_bytes: int
    purpose: str
