"""Stored files as the areas that use them see them."""

import msgspec

from .schemas import FileView, Purpose


class StoredUpload(msgspec.Struct, frozen=True):
    """A file in the store that no row refers to yet. It is deleted a day later, unless it is
    recorded.
    """

    id: str
    key: str
    purpose: Purpose
    owner_id: str | None
    filename: str
    size_bytes: int
    mime_type: str
    sha256: str


class FileRecord(FileView):
    """A file with what the API does not show: its key in the store, and what it belongs to."""

    key: str
    owner_id: str | None
