"""Reads uploaded files up to a limit; their name and declared type are not trusted."""

from litestar.datastructures import UploadFile

from app.kit.errors import FileTooLarge

MEGABYTE = 1024 * 1024
# The most that a route has as `full_files`.
MAX_FULL_FILES = 4


async def read(field: str, upload: UploadFile, max_mb: int) -> bytes:
    content = await upload.read(max_mb * MEGABYTE + 1)
    if len(content) > max_mb * MEGABYTE:
        raise FileTooLarge(
            f"{field} is larger than {max_mb} MB", details={"field": field, "max_size_mb": max_mb}
        )
    return content
