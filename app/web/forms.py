"""The page of a form, for visitors. Any site may show it in a frame."""

import re
from html import escape
from typing import Final
from urllib.parse import urlsplit

import msgspec
from litestar import Response, get

from app.domain.forms.definition.api import language_tables, live, say
from app.domain.forms.definition.errors import FormClosed, FormNotFound
from app.domain.forms.definition.schemas import Branding
from app.domain.forms.submissions.admission import admit
from app.domain.forms.submissions.api import PublicForm, ViewCounter, build_form
from app.http.dependencies import HttpRequest, Id, Services
from app.kit.errors import ApiError, RateLimited
from app.kit.languages import ENGLISH, Language, find_language, negotiate
from app.web import assets, pages

_SCRIPT, _STYLE = "form/page.js", "form/page.css"
_LANGUAGES = "form/languages.js"
# Characters that could end the script element, and those that are not in every JavaScript text.
_ESCAPES: Final = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}
_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " img-src data:{logo}; form-action 'none'; base-uri 'none'; frame-ancestors *"
)
_HOST = re.compile(r"[a-z0-9.-]{1,253}(?::[0-9]{1,5})?", re.ASCII)
# The names of texts.
_TITLES: Final[dict[type[ApiError], str]] = {
    FormNotFound: "page_missing",
    FormClosed: "page_closed",
    RateLimited: "page_limited",
}
_MAX_TAG_CHARS = 35


@get("/f/{slug:str}", include_in_schema=False, public=True, tenant_pays=True, cost="read")
async def form_page(request: HttpRequest, services: Services, slug: Id) -> Response[str]:
    """It counts as a view, so the page has the form and does not request it."""
    language = _find_language(request, None)
    try:
        form = await admit(request, slug)
        language = _find_language(request, form.settings.language)
        form.require_open()
    except (FormNotFound, FormClosed, RateLimited) as error:
        return _respond_problem(error, language)
    definition = await live.load_definition(services, form)
    services.get(ViewCounter).add_view(form.tenant_id, form.id)
    view = build_form(form, [field.definition for field in definition.fields])
    return pages.respond(_render(view, language), _list_headers(form.branding))


def _find_language(request: HttpRequest, setting: Language | None) -> Language:
    """The address of the page comes first, then the form, then the page around it, which its
    script names, or the browser.
    """
    query = request.query_params
    chosen = find_language(query.get("lang", "")[:_MAX_TAG_CHARS]) or setting
    if chosen is None and "page-lang" in query:
        chosen = find_language(query["page-lang"][:_MAX_TAG_CHARS])
    elif chosen is None:
        chosen = negotiate(request.headers.get("accept-language"))
    return chosen or ENGLISH


def _render(form: PublicForm, language: Language) -> str:
    description = f'<p class="about" dir="auto">{escape(form.description)}</p>'
    body = (
        f'<main><header><h1 dir="auto">{escape(form.name)}</h1>'
        f"{description if form.description.strip() else ''}</header>"
        f"<noscript><p>{escape(_say('needs_javascript', language))}</p></noscript></main>"
        f'<script type="application/json" id="form">{_encode(form)}</script>'
    )
    modules = _list_modules(language)
    return pages.render(form.name, modules + body, script=_SCRIPT, style=_STYLE, language=language)


def _say(name: str, language: Language) -> str:
    with language_tables.speak(language):
        return say(name)


def _encode(form: PublicForm) -> str:
    return msgspec.json.encode(form).decode().translate(_ESCAPES)


def _list_modules(language: Language) -> str:
    """Lets a browser request all modules at once, not each after the one that imports it."""
    paths = assets.list_imports(_SCRIPT)
    if language != ENGLISH:
        table = f"form/languages/{language}.js"
        paths = [*paths, _LANGUAGES, table, *assets.list_imports(table)]
    urls = (assets.url_of(path) for path in paths)
    return "".join(f'<link rel="modulepreload" href="{url}">' for url in urls)


def _respond_problem(error: ApiError, language: Language) -> Response[str]:
    name = next(name for kind, name in _TITLES.items() if isinstance(error, kind))
    title = _say(name, language)
    has_details = language == ENGLISH and not isinstance(error, FormNotFound)
    about = error.message if has_details else _say(f"{name}_why", language)
    body = f'<main class="notice"><h1>{escape(title)}</h1><p dir="auto">{escape(about)}</p></main>'
    page = pages.render(title, body, script=_SCRIPT, style=_STYLE, language=language)
    return pages.respond(page, {**_list_headers(Branding()), **(error.headers or {})}, error.status)


def _list_headers(branding: Branding) -> dict[str, str]:
    logo = _find_origin(branding.logo_url or "")
    return {
        "content-security-policy": _CSP.format(logo=f" {logo}" if logo else ""),
        "cross-origin-resource-policy": "cross-origin",
        "vary": "Accept-Language",
        # Left out: it would forbid the frame that `frame-ancestors` allows.
        "x-frame-options": "",
    }


def _find_origin(url: str) -> str | None:
    """Returns the origin of a web address, if it can be part of a policy."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.encode("idna").decode().lower()
    except (ValueError, UnicodeError):
        return None
    is_origin = parts.scheme in {"http", "https"} and _HOST.fullmatch(host)
    return f"{parts.scheme}://{host}" if is_origin else None
