from typing import Any, ClassVar

from app.domain.area import Event


class StorageWarning(Event):
    type: ClassVar[str] = "system.storage.warning"
    description: ClassVar[str] = "A tenant stores 80 or 100 percent of its quota"
    example: ClassVar[dict[str, Any]] = {
        "percent": 80,
        "used_bytes": 8589934592,
        "limit_bytes": 10737418240,
        "largest": "files",
    }

    # The level that was reached.
    percent: int
    used_bytes: int
    limit_bytes: int
    # The kind that takes most.
    largest: str
