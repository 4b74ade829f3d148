"""The page of the console and its files, which `console_build` makes."""

from functools import cache, lru_cache
from html import escape
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from litestar import HttpMethod, Request, Response, get, route
from litestar.exceptions import NotFoundException
from litestar.params import FromPath
from litestar.status_codes import HTTP_503_SERVICE_UNAVAILABLE

from app.http.dependencies import Services
from app.settings import Settings
from app.web import pages
from app.web.console_build import DIST, REASON

CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " img-src 'self' data: blob:; media-src 'self' blob:; frame-src 'self';"
    " require-trusted-types-for 'script';"
    " form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
_FOREVER: Final = "public, max-age=31536000, immutable"
_ENCODINGS: Final = {"br": ".br", "gzip": ".gz"}
_TYPES: Final = {".js": "text/javascript", ".css": "text/css", ".txt": "text/plain"}
_MANIFEST: Final = DIST / "manifest.json"
_PREFIX: Final = "/console/files/"
_NO_SCRIPT: Final = "The console needs JavaScript. Everything that it does is also in the HTTP API:"


class Bundle(msgspec.Struct, frozen=True):
    """What a page loads."""

    script: str
    style: str
    preloads: list[str]


class Manifest(Bundle, frozen=True):
    """What `build.mjs` made: the console's bundle, that of the API reference, and all files.
    `screens` are the scripts of each screen, by the first part of its address.
    """

    docs: Bundle
    files: frozenset[str]
    screens: dict[str, list[str]] = {}


def load_manifest() -> Manifest | None:
    """Returns None where the console could not be built."""
    try:
        return _read_manifest(_MANIFEST.stat().st_mtime_ns)
    except OSError:
        return None


@lru_cache(maxsize=1)
def _read_manifest(_changed_at: int) -> Manifest:
    """A build replaces the files of the one before."""
    return msgspec.json.decode(_MANIFEST.read_bytes(), type=Manifest)


@get(
    ["/console", "/console/{path:path}"],
    include_in_schema=False,
    public=True,
    sync_to_thread=False,
)
def console_page(request: Request[Any, Any, Any], services: Services) -> Response[str]:
    """One page for every screen: the script reads the address. What the screen needs is loaded
    beside the script, not after it.
    """
    manifest = load_manifest()
    if manifest is None:
        return respond_missing("The console is not built", services.settings)
    screen = str(request.path_params.get("path", "")).strip("/").partition("/")[0]
    preloads = [*manifest.preloads, *manifest.screens.get(screen, ())]
    bundle = Bundle(manifest.script, manifest.style, preloads)
    return respond(bundle, services.settings, "Parley", _NO_SCRIPT)


def base_path(settings: Settings) -> str:
    """A proxy may have put the instance under another path."""
    return urlsplit(settings.public_url).path.rstrip("/")


def respond(
    bundle: Bundle, settings: Settings, title: str, noscript: str, head: str = ""
) -> Response[str]:
    """`head` is HTML."""
    base = escape(base_path(settings))
    signup = "open" if settings.is_signup_open else "closed"
    files = f"{base}{_PREFIX}"
    preloads = "".join(
        f'<link rel="modulepreload" href="{files + escape(name)}">' for name in bundle.preloads
    )
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f'<meta name="parley-base" content="{base}">'
        f'<meta name="parley-signup" content="{signup}">'
        f'<link rel="stylesheet" href="{files + escape(bundle.style)}">'
        f'<script type="module" src="{files + escape(bundle.script)}"></script>{preloads}{head}'
        '</head><body><div id="console"></div>'
        f'<noscript><p>{noscript} <a href="{base}/openapi.json">OpenAPI document</a></p></noscript>'
        "</body></html>"
    )
    return pages.respond(page, {"content-security-policy": CSP, "cache-control": "no-cache"})


def respond_missing(title: str, settings: Settings) -> Response[str]:
    try:
        reason = REASON.read_text(encoding="utf-8")
    except OSError:
        reason = "this checkout was not set up by ./scripts/up or ./scripts/setup"
    document = f"{escape(base_path(settings))}/openapi.json"
    body = (
        f'<main class="card"><h1>{title}</h1>'
        "<p>Parley runs, and its HTTP API is complete. Its console and the API reference are built"
        " with packages from a registry of npm, which could not be done here:</p>"
        f"<pre>{escape(reason)}</pre>"
        "<p>Once the registry can be reached (<code>npm config get registry</code> names it), run"
        " <code>./scripts/up</code> again. The API is described by an OpenAPI document:"
        f' <a href="{document}">{document}</a>.</p></main>'
    )
    page = pages.render(title, body, script=None, style="pages/accounts.css")
    return pages.respond(page, status=HTTP_503_SERVICE_UNAVAILABLE)


@route(
    "/console/files/{name:str}",
    http_method=[HttpMethod.GET, HttpMethod.HEAD],
    include_in_schema=False,
    public=True,
    sync_to_thread=True,
)
def console_file(request: Request[Any, Any, Any], name: FromPath[str]) -> Response[bytes]:
    manifest = load_manifest()
    if manifest is None or name not in manifest.files:
        raise NotFoundException
    accepted = request.headers.get("accept-encoding", "")
    encoding = next((encoding for encoding in _ENCODINGS if encoding in accepted), None)
    headers = {"cache-control": _FOREVER, "vary": "Accept-Encoding"}
    if encoding is not None:
        headers["content-encoding"] = encoding
    suffix = _ENCODINGS[encoding] if encoding else ""
    content = _read_file(f"{name}{suffix}")
    return Response(content, media_type=_TYPES[Path(name).suffix], headers=headers)


@cache
def _read_file(name: str) -> bytes:
    return (DIST / "files" / name).read_bytes()


def find_screen(settings: Settings, path: str) -> str | None:
    """Returns the path of a screen of the console, or None where the console is not built."""
    return f"{base_path(settings)}/console{path}" if load_manifest() is not None else None


def describe_console(settings: Settings) -> str | None:
    """Returns the address of the console, if there is one."""
    return f"{settings.public_url}/console" if load_manifest() is not None else None
