"""Who calls with an embed key, and from where: one check for every endpoint that takes one."""

import base64
import hashlib
import re

from app.domain.agents import service as agents
from app.domain.agents.errors import AgentNotFound
from app.domain.agents.service import EmbeddedAgent
from app.domain.chat.service import Question, Speaker
from app.domain.embed import keys, origins, queries
from app.domain.embed.errors import OriginNotAllowed
from app.domain.tenants import service as tenants
from app.http import cors
from app.http.authorization import embed_key_of
from app.http.costs import COSTS
from app.http.dependencies import HttpRequest, services_of
from app.kit.errors import Unauthorized
from app.services import Services

_USUAL_HEADERS = ("authorization", "content-type", "x-api-key")
_HEADERS = re.compile(r"[A-Za-z0-9_-]+( *, *[A-Za-z0-9_-]+){0,63}\Z")


async def admit(request: HttpRequest) -> None:
    """Before the handler, even before its body is read: whose key it is, and from where."""
    services, key = services_of(request), embed_key_of(request) or ""
    async with services.db.tx(None, autocommit=True) as tx:
        agent = await agents.find_by_embed_key(tx, services.keyring, keys.hash_key(key))
    if agent is None:
        raise Unauthorized(
            "This embed key is not valid, or it was revoked",
            headers={"WWW-Authenticate": "Bearer"},
        )
    origin = _origin(request)
    if not origins.is_allowed(agent.allowed_domains, origin):
        raise OriginNotAllowed(
            "This embed key may not be used from here"
            + (f": {origin[:200]}" if origin else "; the request names no origin")
        )
    if origin is not None:
        cors.open_to(request.scope["state"], request.scope["path"], origin)
    units = COSTS[request.route_handler.opt.get("cost", "read")]
    charged = ("embed", agent.runtime.tenant_id, agent.plan, units)
    await tenants.charge_visitors(request, *charged, "This agent is asked too often")
    request.scope["state"]["embedded_agent"] = agent
    request.scope["state"]["embed_key_id"] = agent.embed_key_id


def _origin(request: HttpRequest) -> str | None:
    """The one Origin header; several together are no origin that could be allowed."""
    values = request.headers.getall("origin", [])
    return ", ".join(values) if values else None


def has_key(request: HttpRequest) -> bool:
    """True when the caller was admitted by an embed key."""
    return "embedded_agent" in request.scope["state"]


def agent_of(request: HttpRequest, agent_id: str | None) -> EmbeddedAgent:
    """The published agent of the request's key, if that is the one it names."""
    agent: EmbeddedAgent = request.scope["state"]["embedded_agent"]
    own_id = agent.runtime.agent_id
    if agent_id not in {None, own_id} or agent.runtime.status != "published":
        raise AgentNotFound(f"There is no published agent {(agent_id or own_id)[:64]} for this key")
    return agent


async def visitor_question(
    services: Services, agent: EmbeddedAgent, session_id: str, text: str
) -> Question:
    """A visitor's next turn. A session is one conversation of its key."""
    await mark_used(services, agent)
    return Question(
        speaker=Speaker(embed_key_id=agent.embed_key_id, session_id=session_id),
        source="embed",
        text=text,
        conversation_id=_conversation_id(agent.embed_key_id, session_id),
    )


async def mark_used(services: Services, agent: EmbeddedAgent) -> None:
    """Writes when the key was last used, at most once a minute."""
    if agent.is_use_stale:
        async with services.db.tx(agent.runtime.tenant_id, autocommit=True) as tx:
            await queries.mark_used(tx, agent.runtime.tenant_id, agent.embed_key_id)


async def preflight_headers(request: HttpRequest, agent_id: str) -> dict[str, str]:
    """A browser asks before it sends the key, so any key of the agent counts."""
    origin = _origin(request)
    async with services_of(request).db.tx(None, autocommit=True) as tx:
        is_allowed = await queries.allows_any(tx, agent_id, list(origins.matching(origin)))
    if not origin or not is_allowed:
        raise OriginNotAllowed("No embed key of this agent may be used from here")
    return open_preflight_headers(request)


def open_preflight_headers(request: HttpRequest) -> dict[str, str]:
    """Lets the site of a preflight send its request; whether it is answered is decided then."""
    origin = _origin(request)
    if origin:
        request.scope["state"]["allowed_origin"] = origin
    requested = request.headers.get("access-control-request-headers", "").lower()
    names = re.split(" *, *", requested) if _HEADERS.match(requested) else []
    return {
        "access-control-allow-methods": "GET, POST",
        # No cookie authenticates anybody here, so that a site may send any header.
        "access-control-allow-headers": ", ".join(dict.fromkeys([*_USUAL_HEADERS, *names])),
        "access-control-max-age": "600",
    }


def _conversation_id(embed_key_id: str, session_id: str) -> str:
    """The same session id under another key is another conversation."""
    digest = hashlib.sha256(f"{embed_key_id}\0{session_id}".encode()).digest()
    return f"cnv_{base64.b32hexencode(digest).decode().lower()[:26]}"
