"""The multipart body of an upload; only the web tier imports the class of uploads."""

from typing import Annotated

import msgspec
from litestar.datastructures import UploadFile
from msgspec import Meta

from .schemas import Visibility

_Labels = Annotated[list[str], Meta(max_length=20)]


class TrainingUpload(msgspec.Struct):
    """At most 50 PDF, DOCX, XLSX, PPTX, EPUB, HTML, MD, TXT, CSV, JSON or JSONL files. Unless
    configured otherwise, each has at most 25 MB, and all together have at most 100 MB.

    The other fields are those of all files. Without one, a new document has its default, and a
    replaced one keeps its own; an empty one clears it. `tags` and `groups` stand once for each
    name, the times are dates or dates with times, and `fields` is a JSON object.
    """

    files: list[UploadFile]
    visibility: Visibility | None = None
    tags: _Labels | None = None
    language: str | None = None
    groups: _Labels | None = None
    valid_from: str | None = None
    valid_until: str | None = None
    fields: str | None = None
