"""The content security policy and the static files of the pages."""

from pathlib import Path
from typing import Final

from litestar import Response, get
from litestar.exceptions import NotFoundException
from litestar.params import FromPath

CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
_STATIC = Path(__file__).parent / "static"
_SERVED = {
    "accounts.js": "text/javascript",
    "accounts.css": "text/css",
    "trace.js": "text/javascript",
    "trace.css": "text/css",
}


@get("/pages/{name:str}", include_in_schema=False, public=True, sync_to_thread=True)
def page_asset(name: FromPath[str]) -> Response[bytes]:
    if name not in _SERVED:
        raise NotFoundException
    return Response(
        (_STATIC / name).read_bytes(),
        media_type=_SERVED[name],
        headers={"cache-control": "public, max-age=3600"},
    )
