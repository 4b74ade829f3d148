"""Who calls with an embed key, and from where: one check for every endpoint that takes one."""

import base64
import hashlib
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing

from app.domain.agents import brain as brains
from app.domain.agents.brain import Admitted, Brain
from app.domain.agents.errors import AgentNotFound
from app.domain.chat.steps import Step
from app.domain.embed import keys, origins, queries
from app.domain.models.protocol import ModelNotConfigured
from app.domain.tenants import limited
from app.http import cors
from app.http.errors import Forbidden, ProviderError, Unauthorized, Unavailable
from app.http.given import HttpRequest
from app.http.limits import COSTS
from app.kit import logs
from app.parts import Parts, parts_of
from app.security.principal import embed_key_of

_CANNOT = "The agent cannot answer right now; try again later"
_USUAL_HEADERS = ("authorization", "content-type", "x-api-key")
_HEADERS = re.compile(r"[A-Za-z0-9_-]+( *, *[A-Za-z0-9_-]+){0,63}\Z")

log = logs.get("embed")


class OriginNotAllowed(Forbidden):
    code = "origin_not_allowed"


async def recognise(request: HttpRequest) -> None:
    """Before the handler, even before its body is read: whose key it is, and from where."""
    parts, key = parts_of(request), embed_key_of(request) or ""
    async with parts.db.tx(None, read_only=True) as tx:
        admitted = await brains.by_embed_key(tx, parts.keyring, keys.hash_of(key))
    if admitted is None:
        raise Unauthorized(
            "This embed key is not valid, or it was revoked",
            headers={"WWW-Authenticate": "Bearer"},
        )
    origin = _origin(request)
    if not origins.allowed(admitted.allowed_domains, origin):
        raise OriginNotAllowed(
            "This embed key may not be used from here"
            + (f": {origin[:200]}" if origin else "; the request names no origin")
        )
    if origin is not None:
        cors.open_to(request.scope["state"], request.scope["path"], origin)
    units = COSTS[request.route_handler.opt.get("cost", "read")]
    charged = ("embed", admitted.brain.tenant_id, admitted.plan, units)
    await limited.charge(request, *charged, "This agent is asked too often")
    request.scope["state"]["admitted"] = admitted
    request.scope["state"]["embed_key_id"] = admitted.embed_key_id


def _origin(request: HttpRequest) -> str | None:
    """The one Origin header; several together are no origin that anybody could have allowed."""
    found = request.headers.getall("origin", [])
    return ", ".join(found) if found else None


def keyed(request: HttpRequest) -> bool:
    """True when the caller was recognised by an embed key."""
    return "admitted" in request.scope["state"]


def admit(request: HttpRequest, agent_id: str | None) -> Admitted:
    """The published agent that the request's key opens, if that is the one it names."""
    admitted: Admitted = request.scope["state"]["admitted"]
    own = admitted.brain.agent_id
    if agent_id not in {None, own} or admitted.brain.status != "published":
        raise AgentNotFound(f"There is no published agent {(agent_id or own)[:64]} for this key")
    return admitted


async def in_public(steps: AsyncGenerator[Step, None]) -> AsyncGenerator[Step, None]:
    """A provider's own words may tell of keys, accounts and models: they are not for visitors."""
    try:
        async with aclosing(steps):
            async for step in steps:
                yield step
    except ProviderError as error:
        log.warning("a visitor got no answer", reason=error.message)
        raise ProviderError(_CANNOT) from error


async def check_model(parts: Parts, brain: Brain) -> None:
    try:
        await parts.models.check(brain.target)
    except ModelNotConfigured as error:
        log.warning("a visitor got no answer", agent_id=brain.agent_id, reason=error.message)
        raise Unavailable(_CANNOT, 60) from error


async def preflight(request: HttpRequest, agent_id: str) -> dict[str, str]:
    """A browser asks before it sends the key, so this is about all keys of the agent."""
    origin = _origin(request)
    async with parts_of(request).db.tx(None, read_only=True) as tx:
        known = await queries.is_welcome(tx, agent_id, list(origins.matching(origin)))
    if not origin or not known:
        raise OriginNotAllowed("No embed key of this agent may be used from here")
    return welcome(request)


def welcome(request: HttpRequest) -> dict[str, str]:
    """Let the site of a preflight send its request; whether that is answered is decided then."""
    origin = _origin(request)
    if origin:
        request.scope["state"]["allowed_origin"] = origin
    wanted = request.headers.get("access-control-request-headers", "").lower()
    names = re.split(" *, *", wanted) if _HEADERS.match(wanted) else []
    return {
        "access-control-allow-methods": "GET, POST",
        # No cookie opens anything here, so that a site may send what it likes.
        "access-control-allow-headers": ", ".join(dict.fromkeys([*_USUAL_HEADERS, *names])),
        "access-control-max-age": "600",
    }


def conversation_of(embed_key_id: str, session_id: str) -> str:
    """A session is one conversation of its key: under another key the same words mean another."""
    digest = hashlib.sha256(f"{embed_key_id}\0{session_id}".encode()).digest()
    return f"cnv_{base64.b32hexencode(digest).decode().lower()[:26]}"
