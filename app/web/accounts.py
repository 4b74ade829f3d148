"""The pages that mails link to, such as join, verify or reset. Plain forms over the HTTP API."""

from html import escape
from typing import Any, Final

import msgspec
from litestar import Request, Response, get

from app.http.dependencies import Services
from app.web import pages


class Field(msgspec.Struct, frozen=True):
    name: str
    label: str
    kind: str
    autocomplete: str


class Page(msgspec.Struct, frozen=True):
    """`token` is the request field for the token of the page's URL."""

    title: str
    about: str
    action: str
    button: str
    fields: tuple[Field, ...] = ()
    token: str = "token"  # noqa: S105  # a field's name


_EMAIL = Field("email", "E-mail", "email", "username")
_FIRST = Field("first_name", "First name", "text", "given-name")
_LAST = Field("last_name", "Last name", "text", "family-name")
_RULE = (
    "A password has at least 8 characters, with an uppercase and a lowercase letter and a number."
)

PAGES: Final = {
    "register": Page(
        "Join Parley",
        _RULE,
        "/auth/register",
        "Join",
        (_EMAIL, _FIRST, _LAST, Field("password", "Password", "password", "new-password")),
        "invitation_token",
    ),
    "verify-email": Page(
        "Verify your e-mail address",
        "One click, and we know that this address is yours.",
        "/auth/verify-email",
        "Verify my address",
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
        _RULE,
        "/auth/reset-password",
        "Change my password",
        (Field("new_password", "New password", "password", "new-password"),),
    ),
}


_CLOSED = "Sign-up is closed here. Ask an administrator for an invitation, and open the link in it."


def _render_closed(page: Page) -> str:
    body = f'<main class="card"><h1>{escape(page.title)}</h1><p>{escape(_CLOSED)}</p></main>'
    return pages.render(page.title, body, script=None, style="pages/accounts.css")


def _render(page: Page) -> str:
    fields = "".join(
        f'<label for="{field.name}">{escape(field.label)}</label>'
        f'<input id="{field.name}" name="{field.name}" type="{field.kind}" required'
        f' autocomplete="{field.autocomplete}" aria-describedby="{field.name}-problem">'
        f'<p class="problem" id="{field.name}-problem"></p>'
        for field in page.fields
    )
    body = (
        f'<main class="card"><h1>{escape(page.title)}</h1><p>{escape(page.about)}</p>'
        f'<form data-action="{page.action}" data-token="{page.token}">{fields}'
        f'<button type="submit">{escape(page.button)}</button></form>'
        '<p role="status" aria-live="polite"></p>'
        "<noscript><p>This page needs JavaScript.</p></noscript></main>"
    )
    return pages.render(page.title, body, script="pages/accounts.js", style="pages/accounts.css")


@get(
    ["/register", "/verify-email", "/confirm-recipient", "/forgot-password", "/reset-password"],
    include_in_schema=False,
    public=True,
    sync_to_thread=False,
)
def account_page(request: Request[Any, Any, Any], services: Services) -> Response[str]:
    name = request.url.path.strip("/")
    is_invited = bool(request.query_params.get("token"))
    if name == "register" and not is_invited and not services.settings.is_signup_open:
        return pages.respond(_render_closed(PAGES[name]))
    return pages.respond(_render(PAGES[name]))
