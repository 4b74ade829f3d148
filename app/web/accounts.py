"""The pages that mails link to, such as join, verify or reset. Where the console is built, its
screens take their place; otherwise they are plain forms over the HTTP API.
"""

from collections.abc import Mapping
from html import escape
from typing import Any, Final, Literal
from urllib.parse import urlencode

import msgspec
from litestar import Request, Response, get
from litestar.status_codes import HTTP_303_SEE_OTHER

from app.http.dependencies import Services
from app.web import console_page, pages


class Field(msgspec.Struct, frozen=True):
    """A field that is not sent shows whose account it is, to people and to password managers."""

    name: str
    label: str
    kind: str
    autocomplete: str
    is_sent: bool = True


class Page(msgspec.Struct, frozen=True):
    """`token` is the request field for the token of the page's URL. `look_up` is what the script
    looks up by the token before it shows the form.
    """

    title: str
    about: str
    action: str
    button: str
    fields: tuple[Field, ...] = ()
    token: str = "token"  # noqa: S105  # a field's name
    look_up: Literal["", "invitation", "verify_email", "reset_password"] = ""


_EMAIL = Field("email", "E-mail", "email", "username")
_FIRST = Field("first_name", "First name", "text", "given-name")
_LAST = Field("last_name", "Last name", "text", "family-name")
_ACCOUNT = Field("email", "E-mail", "email", "username", is_sent=False)
# The script marks those that a password fulfils, by their names.
_RULES = {
    "length": "at least 8 characters",
    "upper": "an uppercase letter",
    "lower": "a lowercase letter",
    "digit": "a number",
}

PAGES: Final = {
    "register": Page(
        "Join Parley",
        "Create your account.",
        "/auth/register",
        "Join",
        (_EMAIL, _FIRST, _LAST, Field("password", "Password", "password", "new-password")),
        "invitation_token",
        "invitation",
    ),
    "verify-email": Page(
        "Verify your e-mail address",
        "One click, and we know that this address is yours.",
        "/auth/verify-email",
        "Verify my address",
        look_up="verify_email",
    ),
    "confirm-recipient": Page(
        "Mails about form submissions",
        "Confirm that submissions of forms may be mailed to your address.",
        "/api/v1/public/form-recipients/confirm",
        "Confirm my address",
    ),
    "forgot-password": Page(
        "Forgot your password?",
        "We send you a mail with a link to choose a new one.",
        "/auth/forgot-password",
        "Send the mail",
        (_EMAIL,),
    ),
    "reset-password": Page(
        "Choose a new password",
        "It ends all sessions of your account.",
        "/auth/reset-password",
        "Change my password",
        (_ACCOUNT, Field("new_password", "New password", "password", "new-password")),
        look_up="reset_password",
    ),
}


# What a screen of the console learns from the address of a link.
_PASSED: Final = ("token", "next")
_CLOSED = "Sign-up is closed here. Ask an administrator for an invitation, and open the link in it."


def _render_closed(page: Page) -> str:
    body = f'<main class="card"><h1>{escape(page.title)}</h1><p>{escape(_CLOSED)}</p></main>'
    return pages.render(page.title, body, script=None, style="pages/accounts.css")


def _render_field(field: Field) -> str:
    name, is_password = field.name, field.kind == "password"
    described_by = f"{name}-rules {name}-problem" if is_password else f"{name}-problem"
    sent = f' name="{name}" required' if field.is_sent else " readonly"
    entry = (
        f'<input id="{name}"{sent} type="{field.kind}" autocomplete="{field.autocomplete}"'
        f' aria-describedby="{described_by}">'
    )
    if is_password:
        entry = _render_password(name, entry)
    return (
        f'<label for="{name}">{escape(field.label)}</label>{entry}'
        f'<p class="problem" id="{name}-problem"></p>'
    )


def _render_password(name: str, entry: str) -> str:
    """With its rules, and a button that shows what is typed."""
    rules = "".join(f'<li data-rule="{rule}">{text}</li>' for rule, text in _RULES.items())
    return (
        f'<div class="password">{entry}<button type="button" class="quiet"'
        f' aria-controls="{name}" aria-label="Show the password">Show</button></div>'
        f'<ul class="rules" id="{name}-rules">{rules}</ul>'
    )


def _render(page: Page, *, has_token: bool) -> str:
    fields = "".join(map(_render_field, page.fields))
    # Only invitations have a page that is also of use without a link.
    look_up = page.look_up if has_token or page.look_up != "invitation" else ""
    body = (
        f'<main class="card"><h1>{escape(page.title)}</h1><p>{escape(page.about)}</p>'
        f'<form data-action="{page.action}" data-token="{page.token}" data-look-up="{look_up}"'
        f"{' hidden' if look_up else ''}>{fields}"
        f'<button type="submit">{escape(page.button)}</button></form>'
        '<p role="status" aria-live="polite"></p>'
        "<noscript><p>This page needs JavaScript.</p></noscript></main>"
    )
    return pages.render(page.title, body, script="pages/accounts.js", style="pages/accounts.css")


def _redirect(screen: str, query: Mapping[str, str]) -> Response[str]:
    passed = urlencode({name: query[name] for name in _PASSED if name in query})
    location = f"{screen}?{passed}" if passed else screen
    headers = {"location": location, "cache-control": "no-store"}
    return Response("", status_code=HTTP_303_SEE_OTHER, headers=headers)


@get(
    ["/register", "/verify-email", "/confirm-recipient", "/forgot-password", "/reset-password"],
    include_in_schema=False,
    public=True,
    sync_to_thread=False,
)
def account_page(request: Request[Any, Any, Any], services: Services) -> Response[str]:
    name = request.url.path.strip("/")
    screen = console_page.find_screen(services.settings, f"/{name}")
    if screen is not None:
        return _redirect(screen, request.query_params)
    has_token = bool(request.query_params.get("token"))
    if name == "register" and not has_token and not services.settings.is_signup_open:
        return pages.respond(_render_closed(PAGES[name]))
    return pages.respond(_render(PAGES[name], has_token=has_token))
