"""`/docs`: the API reference, which the console's build makes and the API document fills."""

import re
from html import escape
from pathlib import Path
from typing import Final

from litestar import Response, get
from litestar.exceptions import NotFoundException
from litestar.params import FromPath

from app.http.dependencies import Services
from app.web import console_page

_TITLE: Final = "Parley API reference"
_NO_SCRIPT: Final = "The reference needs JavaScript. What it shows is in the"
# Not below /docs/schema, where the framework would serve its own document.
_ADDRESS: Final = re.compile(r"/|/(?!schema\b)[\w-]+(?:/[\w-]+)?")


@get(
    ["/docs", "/docs/{path:path}"],
    include_in_schema=False,
    public=True,
    sync_to_thread=False,
)
def docs_page(services: Services, path: FromPath[Path] = Path("/")) -> Response[str]:
    """One page for every operation: the script reads the address."""
    if not _ADDRESS.fullmatch(path.as_posix()):
        raise NotFoundException
    manifest = console_page.load_manifest()
    if manifest is None:
        return console_page.respond_missing("The API reference is not built", services.settings)
    document = f"{escape(console_page.base_path(services.settings))}/openapi.json"
    preload = f'<link rel="preload" href="{document}" as="fetch" crossorigin="anonymous">'
    return console_page.respond(manifest.docs, services.settings, _TITLE, _NO_SCRIPT, preload)
