"""The multipart body of an attachment; only the web tier imports the class of uploads."""

import msgspec
from litestar.datastructures import UploadFile


class AttachmentUpload(msgspec.Struct):
    """A PDF, DOCX, XLSX, PPTX, EPUB, HTML, MD, TXT, CSV, JSON or JSONL file of at most 10 MB."""

    file: UploadFile
