"""The frame of the HTML pages, and their content security policy."""

from html import escape
from typing import Final

from litestar import MediaType, Response
from litestar.status_codes import HTTP_200_OK

from app.kit.languages import ENGLISH, Language, direction_of
from app.web import assets

CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)


_COMMON_STYLES = ("shared/theme.css", "pages/base.css")


def render(
    title: str, body: str, *, script: str | None, style: str, language: Language = ENGLISH
) -> str:
    """Returns a page with a script and a style of `static`. `body` is HTML."""
    direction = ' dir="rtl"' if direction_of(language) == "rtl" else ""
    module = f'<script type="module" src="{assets.url_of(script)}"></script>' if script else ""
    links = "".join(
        f'<link rel="stylesheet" href="{assets.url_of(path)}">' for path in (*_COMMON_STYLES, style)
    )
    return (
        f'<!doctype html><html lang="{language}"{direction}><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark">{links}{module}</head>'
        f"<body>{body}</body></html>"
    )


def respond(
    page: str, headers: dict[str, str] | None = None, status: int = HTTP_200_OK
) -> Response[str]:
    return Response(
        page,
        status_code=status,
        media_type=MediaType.HTML,
        headers={"content-security-policy": CSP, **(headers or {})},
    )
