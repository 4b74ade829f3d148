"""Uploading, listing, reading and deleting files."""

import hashlib

from tests.files.api import (
    MEGABYTE,
    PATH,
    content_path,
    upload,
)
from tests.world import Client


async def test_an_upload_returns_the_file(developer: Client) -> None:
    content = b"%PDF-1.7\n" + bytes(range(256))
    file = await upload(developer, content, "report.pdf")
    assert file.pop("created_at").endswith("Z")
    assert file.pop("id").startswith("fil_")
    assert file == {
        "filename": "report.pdf",
        "size_bytes": len(content),
        "mime_type": "application/pdf",
        "sha256": hashlib.sha256(content).hexdigest(),
        "purpose": "upload",
        "created_by": developer.user_id,
    }


async def test_an_uploaded_file_is_read_as_it_was(developer: Client) -> None:
    for content in (b"", b"x", b"\r\n--", bytes(3 * MEGABYTE) + b"end"):
        file = await upload(developer, content)
        assert (await developer.get(content_path(file))).content == content
        assert (await developer.get(f"{PATH}/{file['id']}")).json() == {"data": file}
