"""The options of a route that takes a recording."""

from typing import Any, Final

from .audio import MAX_MB

RECORDING: Final[dict[str, Any]] = {
    "status_code": 200,
    "idempotent": "long_running",
    "errors": (400, 415, 502),
    "upload": True,
    "full_files": 1,
    "max_upload_mb": MAX_MB,
}
