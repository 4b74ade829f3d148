"""The pages that mails link to: join, verify, forgot, reset. Plain forms over the HTTP API."""

from html import escape
from typing import Any, Final

import msgspec
from litestar import MediaType, Request, Response, get

from app.web.pages import CSP


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


def _render(page: Page) -> str:
    fields = "".join(
        f'<label for="{field.name}">{escape(field.label)}</label>'
        f'<input id="{field.name}" name="{field.name}" type="{field.kind}" required'
        f' autocomplete="{field.autocomplete}" aria-describedby="{field.name}-problem">'
        f'<p class="problem" id="{field.name}-problem"></p>'
        for field in page.fields
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(page.title)}</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        '<link rel="stylesheet" href="/pages/accounts.css">'
        '<script type="module" src="/pages/accounts.js"></script></head>'
        f"<body><main><h1>{escape(page.title)}</h1><p>{escape(page.about)}</p>"
        f'<form data-action="{page.action}" data-token="{page.token}">{fields}'
        f'<button type="submit">{escape(page.button)}</button></form>'
        '<p role="status" aria-live="polite"></p>'
        "<noscript><p>This page needs JavaScript.</p></noscript></main></body></html>"
    )


@get(
    ["/register", "/verify-email", "/forgot-password", "/reset-password"],
    include_in_schema=False,
    public=True,
    sync_to_thread=False,
)
def account_page(request: Request[Any, Any, Any]) -> Response[str]:
    return Response(
        _render(PAGES[request.url.path.strip("/")]),
        media_type=MediaType.HTML,
        headers={"content-security-policy": CSP},
    )
