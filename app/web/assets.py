"""Scripts and styles for browsers, each at an address with the hash of its content.

A browser may keep such a file for good: a changed file has another address. Files name each other
by relative paths ("../shared/markdown.js"), which are replaced by those addresses. `/embed/*.js`
are for the pages of customers: they stay at one address and are checked again after five minutes.
"""

import gzip
import hashlib
import posixpath
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec
from litestar import HttpMethod, Request, Response, route
from litestar.exceptions import NotFoundException
from litestar.params import FromPath

_STATIC = Path(__file__).parent / "static"
_TYPES = {".js": "text/javascript", ".css": "text/css"}
_REFERENCE = re.compile(r"""(["'])(\.{1,2}/[a-z0-9_/.-]+\.(?:js|css))\1""")
# Lines that are comments: types, which are for `deno check`, and what explains the script.
_COMMENT = re.compile(r"^ *(?:/\*\*(?:(?!\*/).)*\*/|//[^\n]*)\n", re.MULTILINE | re.DOTALL)
# Comments and indentation of style sheets.
_FILLER = re.compile(r"^\s+|/\*.*?\*/\s*", re.MULTILINE | re.DOTALL)
_DIGEST_CHARS = 16
# Scripts at an address without a hash, by their names under /embed.
_ENTRIES: Final = {"widget.js": "widget/launcher.js", "form.js": "form/embed.js"}
_FOREVER = "public, max-age=31536000, immutable"
_BRIEFLY = "public, max-age=300, stale-while-revalidate=86400"
# Pages of other sites load these files; they contain nothing of a tenant.
_FOR_ANY_SITE = {"cross-origin-resource-policy": "cross-origin", "access-control-allow-origin": "*"}
_METHODS = [HttpMethod.GET, HttpMethod.HEAD]


class Asset(msgspec.Struct, frozen=True):
    content: bytes
    gzipped: bytes
    digest: str
    media_type: str


@cache
def load(path: str, folder: str = "") -> Asset:
    """Reads a file of `static`. `folder` is where a page finds it, if not at its own address."""
    text = (_STATIC / path).read_text(encoding="utf-8")
    text = (_COMMENT if path.endswith(".js") else _FILLER).sub("", text)

    def replace(match: re.Match[str]) -> str:
        target = _resolve(path, match[2])
        here = folder or f"/assets/{'0' * _DIGEST_CHARS}/{posixpath.dirname(path)}"
        return f"{match[1]}{posixpath.relpath(url_of(target), here)}{match[1]}"

    content = _REFERENCE.sub(replace, text).encode()
    return Asset(
        content,
        gzip.compress(content, mtime=0),
        hashlib.sha256(content).hexdigest()[:_DIGEST_CHARS],
        _TYPES[Path(path).suffix],
    )


def _resolve(path: str, reference: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), reference))


@cache
def list_imports(path: str) -> list[str]:
    """Returns all files that a module loads at once, also through others."""
    found: dict[str, None] = {}
    waiting = [path]
    while waiting:
        module = waiting.pop()
        text = (_STATIC / module).read_text(encoding="utf-8")
        imports = [
            _resolve(module, match[2])
            for match in _REFERENCE.finditer(text)
            if not text.endswith("import(", 0, match.start())
        ]
        waiting += [name for name in imports if name not in found]
        found.update(dict.fromkeys(imports))
    return list(found)


def url_of(path: str) -> str:
    """Returns the address of a file of `static`, such as `form/page.css`."""
    return f"/assets/{load(path).digest}/{path}"


@cache
def _paths() -> frozenset[str]:
    files = (file for file in _STATIC.rglob("*") if file.suffix in _TYPES)
    return frozenset(file.relative_to(_STATIC).as_posix() for file in files)


@route(
    "/assets/{digest:str}/{path:path}",
    http_method=_METHODS,
    include_in_schema=False,
    public=True,
    sync_to_thread=True,
)
def asset(
    request: Request[Any, Any, Any], digest: FromPath[str], path: FromPath[Path]
) -> Response[bytes]:
    """A page of an older release gets the file of this one, and does not keep it."""
    name = path.as_posix().lstrip("/")
    if name not in _paths():
        raise NotFoundException
    found = load(name)
    return _respond(request, found, _FOREVER if digest == found.digest else "no-cache")


@route(
    "/embed/{name:str}",
    http_method=_METHODS,
    include_in_schema=False,
    public=True,
    sync_to_thread=True,
)
def embed_script(request: Request[Any, Any, Any], name: FromPath[str]) -> Response[bytes]:
    if name not in _ENTRIES:
        raise NotFoundException
    return _respond(request, load(_ENTRIES[name], "/embed"), _BRIEFLY)


def _respond(request: Request[Any, Any, Any], found: Asset, caching: str) -> Response[bytes]:
    headers = {
        **_FOR_ANY_SITE,
        "cache-control": caching,
        "etag": f'"{found.digest}"',
        "vary": "Accept-Encoding",
    }
    if headers["etag"] in request.headers.get("if-none-match", ""):
        return Response(b"", status_code=304, headers=headers, media_type=found.media_type)
    is_gzipped = "gzip" in request.headers.get("accept-encoding", "")
    if is_gzipped:
        headers["content-encoding"] = "gzip"
    content = found.gzipped if is_gzipped else found.content
    return Response(content, media_type=found.media_type, headers=headers)
