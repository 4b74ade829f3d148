"""Authenticates embed keys and checks their origins, for every endpoint that accepts a key."""

import base64
import hashlib

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
from app.kit import trace
from app.kit.errors import Unauthorized
from app.services import Services


async def admit(request: HttpRequest) -> None:
    """Authenticates the request's embed key, checks its origin and charges its cost. Runs before
    the body is read.
    """
    services, key = services_of(request), embed_key_of(request) or ""
    async with services.db.tx(None, autocommit=True) as tx:
        agent = await agents.find_by_embed_key(tx, services.keyring, keys.hash_key(key))
    if agent is None:
        raise Unauthorized(
            "This embed key is not valid, or it was revoked",
            headers={"WWW-Authenticate": "Bearer"},
        )
    trace.current().tenant_id = agent.runtime.tenant_id
    origin = cors.origin_of(request)
    if not origins.is_allowed(agent.allowed_domains, origin):
        raise OriginNotAllowed(
            "This embed key may not be used from here"
            + (f": {origin[:200]}" if origin else "; the request names no origin")
        )
    if origin is not None:
        cors.allow_origin(request.scope["state"], request.scope["path"], origin)
    units = COSTS[request.route_handler.opt.get("cost", "read")]
    charge = ("embed", agent.runtime.tenant_id, agent.plan, units)
    await tenants.charge_visitors(request, *charge, "This agent receives too many requests")
    request.scope["state"]["embedded_agent"] = agent
    request.scope["state"]["embed_key_id"] = agent.embed_key_id


def has_key(request: HttpRequest) -> bool:
    """True when the request was authenticated with an embed key."""
    return "embedded_agent" in request.scope["state"]


def agent_of(request: HttpRequest, agent_id: str | None) -> EmbeddedAgent:
    """Returns the agent of the request's key. Raises AgentNotFound when it is not published, or
    when `agent_id` is another agent.
    """
    agent: EmbeddedAgent = request.scope["state"]["embedded_agent"]
    own_id = agent.runtime.agent_id
    if agent_id not in {None, own_id} or agent.runtime.status != "published":
        raise AgentNotFound(f"There is no published agent {(agent_id or own_id)[:64]} for this key")
    return agent


async def create_visitor_question(
    services: Services, agent: EmbeddedAgent, session_id: str, text: str
) -> Question:
    """Stores the use of the key and returns the visitor's question. Each session of a key is one
    conversation.
    """
    await mark_used(services, agent)
    return Question(
        speaker=Speaker(embed_key_id=agent.embed_key_id, session_id=session_id),
        source="embed",
        text=text,
        conversation_id=_conversation_id(agent.embed_key_id, session_id),
    )


async def mark_used(services: Services, agent: EmbeddedAgent) -> None:
    """Stores when the key was last used, at most once a minute; also by a request that the agent
    then refuses.
    """
    if agent.is_use_outdated:
        async with services.db.tx(agent.runtime.tenant_id, autocommit=True) as tx:
            await queries.mark_used(tx, agent.runtime.tenant_id, agent.embed_key_id)


async def preflight_headers(request: HttpRequest, agent_id: str) -> dict[str, str]:
    """Raises OriginNotAllowed unless a key of the agent allows the origin: a browser does not send
    the key in its preflight request.
    """
    origin = cors.origin_of(request)
    async with services_of(request).db.tx(None, autocommit=True) as tx:
        is_allowed = await queries.allows_any(tx, agent_id, list(origins.matching_entries(origin)))
    if not origin or not is_allowed:
        raise OriginNotAllowed("No embed key of this agent may be used from here")
    return cors.preflight_headers(request)


def _conversation_id(embed_key_id: str, session_id: str) -> str:
    """Derives the id from key and session, so that keys do not share conversations."""
    digest = hashlib.sha256(f"{embed_key_id}\0{session_id}".encode()).digest()
    return f"cnv_{base64.b32hexencode(digest).decode().lower()[:26]}"
