"""The page of the demo: a fictional shop that embeds the chat widget and a form."""

from functools import cache
from html import escape
from pathlib import Path
from string import Template
from typing import Final

from litestar import Response, get
from litestar.exceptions import NotFoundException
from litestar.status_codes import HTTP_503_SERVICE_UNAVAILABLE

from app.demo import service, shop
from app.demo.service import Demo
from app.http.dependencies import Services
from app.settings import Settings
from app.web import pages

_WIDGET: Final = "/embed/widget.js"
_FORM: Final = "/embed/form.js"
_HINTS: Final = {
    _WIDGET: "<strong>ask the assistant</strong> in the corner",
    _FORM: '<a href="#contact">send the form</a>',
}
_CSP: Final = pages.CSP + "; frame-src 'self'"
_PAGE = Path(__file__).parent / "static" / "demo" / "shop.html"
_WAITING = """<main class="waiting" aria-live="polite">
<svg viewBox="0 0 40 40" aria-hidden="true"><circle class="sand" cx="20" cy="20" r="20"/>
<path class="red" d="M15 10h10c-1 5 2 7 4 11 2 5-1 10-6 10h-6c-5 0-8-5-6-10 2-4 5-6 4-11z"/></svg>
<h1>The shop opens in a moment</h1>
<p>Parley is preparing the demo. This page appears by itself.</p>
<noscript><p>Load the page again in a few seconds.</p></noscript></main>"""
_CONTACT = """<section class="contact" id="contact" aria-labelledby="contact-title">
<div><h2 id="contact-title">Write to us</h2>
<p>A question about an order, a return, or a piece that you would like us to make? We read every
message and reply within one working day.</p>
<p>Since this shop is fictional, nobody does: the message is stored as a submission of the form, in
this Parley.</p></div>
<div class="sheet">{form}</div></section>"""


@get("/demo", include_in_schema=False, public=True)
async def demo_page(services: Services) -> Response[str]:
    if not services.settings.demo:
        raise NotFoundException
    demo = await service.load(services)
    if demo is None:
        return _respond_waiting()
    scripts = _list_scripts(demo)
    if not scripts:
        raise NotFoundException
    body = _fill(services.settings, scripts)
    page = pages.render(shop.NAME, body, script="demo/shop.js", style="demo/shop.css")
    return pages.respond(page, {"content-security-policy": _CSP})


def _respond_waiting() -> Response[str]:
    page = pages.render(shop.NAME, _WAITING, script="demo/waiting.js", style="demo/shop.css")
    response = pages.respond(page, {"retry-after": "1"})
    response.status_code = HTTP_503_SERVICE_UNAVAILABLE
    return response


def _list_scripts(demo: Demo) -> dict[str, dict[str, str]]:
    """Returns the attributes of the scripts of what still exists, by their paths."""
    scripts = {}
    if demo.api_key is not None:
        scripts[_WIDGET] = {
            "data-agent-id": demo.agent_id,
            "data-api-key": demo.api_key,
            "data-title": shop.NAME,
            "data-color": shop.COLOR,
            "data-greeting": shop.GREETING,
            "data-suggestions": "|".join(shop.SUGGESTIONS),
        }
    if demo.form_slug is not None:
        scripts[_FORM] = {"data-form": demo.form_slug}
    return scripts


def _fill(settings: Settings, scripts: dict[str, dict[str, str]]) -> str:
    url = settings.public_url
    snippets = [_render_script(url + path, names) for path, names in scripts.items()]
    form = _render_script(_FORM, scripts[_FORM]) if _FORM in scripts else ""
    return _load_template().substitute(
        hints=", or ".join(hint for path, hint in _HINTS.items() if path in scripts),
        widget=_render_script(_WIDGET, scripts[_WIDGET]) if _WIDGET in scripts else "",
        contact=_CONTACT.format(form=form) if form else "",
        contact_link='<a href="#contact">Contact</a>' if form else "",
        snippets=escape("\n".join(snippets)),
    )


@cache
def _load_template() -> Template:
    return Template(_PAGE.read_text(encoding="utf-8"))


def _render_script(url: str, attributes: dict[str, str]) -> str:
    pairs = "".join(f' {name}="{escape(value)}"' for name, value in attributes.items())
    return f'<script async src="{escape(url)}"{pairs}></script>'
