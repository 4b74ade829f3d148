"""Who calls with an embed key, and from where: one check for every endpoint that takes one."""

import base64
import hashlib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from litestar import Request

from app.domain.agents import brain as brains
from app.domain.agents.brain import Admitted, Brain
from app.domain.agents.errors import AgentNotFound
from app.domain.chat.steps import Step
from app.domain.embed import keys, origins, queries
from app.domain.models.protocol import ModelNotConfigured
from app.http.errors import Forbidden, ProviderError, Unauthorized, Unavailable
from app.kit import logs
from app.parts import Parts, parts_of
from app.security.principal import embed_key_of

_CANNOT = "The agent cannot answer right now; try again later"
PREFLIGHT = {
    "access-control-allow-methods": "GET, POST",
    "access-control-allow-headers": "authorization, content-type, x-api-key, x-request-id, "
    "x-correlation-id",
    "access-control-max-age": "600",
}


log = logs.get("embed")


class OriginNotAllowed(Forbidden):
    code = "origin_not_allowed"


async def admit(request: Request[Any, Any, Any], agent_id: str | None) -> Admitted:
    """The published agent that the request's key opens, if that is the one it names."""
    parts, key = parts_of(request), embed_key_of(request) or ""
    async with parts.db.tx(None, read_only=True) as tx:
        admitted = await brains.by_embed_key(tx, parts.keyring, keys.hash_of(key))
    if admitted is None:
        raise Unauthorized(
            "This embed key is not valid, or it was revoked",
            headers={"WWW-Authenticate": "Bearer"},
        )
    origin = request.headers.get("origin")
    if not origins.allowed(admitted.allowed_domains, origin):
        raise OriginNotAllowed(
            "This embed key may not be used from here"
            + (f": {origin[:200]}" if origin else "; the request names no origin")
        )
    _open_to(request, origin)
    own = admitted.brain.agent_id
    if agent_id not in {None, own} or admitted.brain.status != "published":
        raise AgentNotFound(f"There is no published agent {(agent_id or own)[:64]} for this key")
    return admitted


def _open_to(request: Request[Any, Any, Any], origin: str | None) -> None:
    """The gate puts it on whatever is answered from here on, errors included."""
    if origin is not None:
        request.scope["state"]["allowed_origin"] = origin


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


async def preflight(request: Request[Any, Any, Any], agent_id: str | None) -> dict[str, str]:
    """A browser asks before it sends the key, so this is about all keys of the agent."""
    origin = request.headers.get("origin")
    async with parts_of(request).db.tx(None, read_only=True) as tx:
        welcome = origin and await queries.is_welcome(tx, agent_id, list(origins.matching(origin)))
    if not welcome:
        raise OriginNotAllowed("No embed key may be used from here")
    _open_to(request, origin)
    return PREFLIGHT


def conversation_of(embed_key_id: str, session_id: str) -> str:
    """A session is one conversation of its key: under another key the same words mean another."""
    digest = hashlib.sha256(f"{embed_key_id}\0{session_id}".encode()).digest()
    return f"cnv_{base64.b32hexencode(digest).decode().lower()[:26]}"
