from typing import Any, ClassVar

import msgspec


class UploadedFile(msgspec.Struct):
    """`file_id` is the answer to the field. `mime_type` is detected from the content."""

    example: ClassVar[dict[str, Any]] = {
        "file_id": "fil_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "filename": "invoice.pdf",
        "size_bytes": 12345,
        "mime_type": "application/pdf",
    }

    file_id: str
    filename: str
    size_bytes: int
    mime_type: str
