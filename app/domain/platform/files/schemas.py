from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

# Documents and avatars are managed by their own areas.
Purpose = Literal["upload", "document", "avatar", "form"]
ListedPurpose = Literal["upload", "form"]


class FileView(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {
        "id": "fil_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "filename": "report.pdf",
        "size_bytes": 48213,
        "mime_type": "application/pdf",
        "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "purpose": "upload",
        "created_by": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "created_at": "2026-01-01T12:00:00Z",
    }

    id: str
    filename: str
    size_bytes: int
    mime_type: Annotated[str, Meta(description="Detected from the content")]
    sha256: str
    purpose: Purpose
    created_by: str | None
    created_at: datetime
