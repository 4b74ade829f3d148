"""The page that shows the chat in a frame on the sites that an embed key allows."""

from html import escape
from typing import Annotated, Final

from litestar import Response, get
from litestar.params import QueryParameter

from app.domain.conversations.embed.api import framing
from app.http.dependencies import HttpRequest
from app.web import pages

_CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " form-action 'none'; base-uri 'none'; frame-ancestors "
)


@get("/embed/frame", include_in_schema=False, public=True, tenant_pays=True, cost="read")
async def chat_frame(
    request: HttpRequest, api_key: Annotated[str, QueryParameter(max_length=200)]
) -> Response[str]:
    """The browser shows it on the allowed sites only. It is no page of its own."""
    agent = await framing.admit(request, api_key)
    body = f'<parley-chat data-agent-id="{escape(agent.runtime.agent_id)}"></parley-chat>'
    page = pages.render("Chat", body, script="widget/frame.js", style="widget/frame.css")
    headers = {
        "content-security-policy": _CSP + " ".join(framing.list_ancestors(agent.allowed_domains)),
        "x-frame-options": "",
        "cross-origin-resource-policy": "cross-origin",
    }
    return pages.respond(page, headers)
