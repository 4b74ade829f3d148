"""The sites that may show the chat in a frame."""

import re

from app.domain.agents.definition.api import EmbeddedAgent
from app.http.dependencies import HttpRequest, services_of
from app.kit import trace

from . import origins, service
from .errors import OriginNotAllowed

_ENTRY = re.compile(r"(?P<scheme>https?://)?(?P<host>[^:/]+)(?P<port>:\d+)?\Z")
# What browsers send when a page is loaded in a frame.
_FRAMES = {"iframe", "frame"}


async def admit(request: HttpRequest, api_key: str) -> EmbeddedAgent:
    """Finds the agent of an embed key and charges the limit of the tenant's visitors. Raises
    OriginNotAllowed for a browser that shows the page by itself.
    """
    if request.headers.get("sec-fetch-dest", "iframe") not in _FRAMES:
        raise OriginNotAllowed("The chat is shown on the pages of its site, not by itself")
    agent = await service.find_by_key(services_of(request), api_key)
    trace.current().tenant_id = agent.runtime.tenant_id
    await service.charge(request, agent)
    return agent


def list_ancestors(entries: list[str]) -> list[str]:
    """Returns the sources of the directive frame-ancestors that match the same sites as the entries
    of an embed key.
    """
    if not entries or origins.ANY in entries:
        return ["*"]
    sources = [source for entry in entries for source in _to_sources(entry)]
    return sources or ["'none'"]


def _to_sources(entry: str) -> list[str]:
    match = _ENTRY.match(entry)
    if match is None:
        # The directive has no form for an IPv6 address.
        return []
    if match["scheme"]:
        return [entry]
    # An entry without a scheme or port matches each of them.
    port = match["port"] or ":*"
    return [f"{scheme}://{match['host']}{port}" for scheme in ("http", "https")]
