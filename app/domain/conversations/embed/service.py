"""Authenticates embed keys and visitor tokens and checks their origins, for every endpoint that
accepts them.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

from app.domain.agents.definition import api as agents
from app.domain.agents.definition.api import EmbeddedAgent
from app.domain.agents.definition.errors import AgentNotFound
from app.domain.agents.llm.errors import ModelBusy
from app.domain.conversations.chat.api import OnTokens, Question, Speaker
from app.domain.conversations.chat.errors import ConversationBusy
from app.domain.identity.tenants import api as tenants
from app.domain.identity.tenants.api import Visit
from app.http import cors
from app.http.authorization import caller_of, embed_key_of, visitor_token_of
from app.http.costs import COSTS
from app.http.dependencies import HttpRequest, services_of
from app.http.route_options import request_options
from app.kit import trace
from app.services import Services

from . import budgets, keys, origins, queries, sessions, user_tokens, visitor_tokens
from .errors import (
    AttachmentsNotAllowed,
    OriginNotAllowed,
    SessionMismatch,
    SessionTokenRequired,
    VoiceNotAllowed,
)
from .visitor_tokens import VisitorClaims


async def admit(request: HttpRequest) -> None:
    """Authenticates the request's embed key or visitor token, checks its origin and charges its
    cost. Runs before the body is read.

    A route takes visitor tokens with `visitor_token=True`. With `opens_session=True` it also takes
    keys that demand such a token, and requests of this instance's own pages. With `voice=True` it
    is for keys that allow voice, with `attachments=True` for those that allow attachments.
    """
    state, options = request.scope["state"], request_options(request)
    token, origin = visitor_token_of(request), cors.page_origin(request)
    if origin is not None and (token or options.opens_session):
        # So that the page can tell its visitor why it was refused.
        state["allowed_origin"] = origin
    if token is not None:
        agent = await _admit_token(request, token, origin)
    else:
        agent = await _admit_key(request, embed_key_of(request) or "", origin)
    current = trace.current()
    current.tenant_id, current.actor_id = agent.runtime.tenant_id, agent.embed_key_id
    if origin is not None:
        cors.allow_origin(state, request.scope["path"], origin)
    await charge(request, agent)
    if options.voice and not agent.rules.allow_voice:
        raise VoiceNotAllowed("This embed key does not allow voice; set allow_voice for it")
    if options.attachments:
        _require_attachments(agent)
    state["embedded_agent"] = agent
    state["embed_key_id"] = agent.embed_key_id


def _require_attachments(agent: EmbeddedAgent) -> None:
    if not agent.rules.allow_attachments:
        raise AttachmentsNotAllowed(
            "This embed key does not allow attachments; set allow_attachments for it"
        )


async def charge(request: HttpRequest, agent: EmbeddedAgent) -> None:
    """Charges the cost of the route to the visitors of the tenant, and to the address. Raises
    RateLimited.
    """
    visit = Visit(
        kind="embed",
        tenant_id=agent.runtime.tenant_id,
        plan=agent.plan,
        units=COSTS[request_options(request).cost or "read"],
        refusal="This agent receives too many requests",
        address=caller_of(request).address,
    )
    await tenants.charge_visitors(request, visit)


async def _admit_token(request: HttpRequest, token: str, origin: str | None) -> EmbeddedAgent:
    services = services_of(request)
    if not request_options(request).visitor_token:
        raise visitor_tokens.refusal("A visitor token cannot be used here; send the embed key")
    claims = visitor_tokens.verify(services.keyring, token)
    if not _is_bound_to(request, claims, origin):
        raise SessionMismatch("This visitor token belongs to another origin")
    async with services.db.tx(None, autocommit=True) as tx:
        agent = await agents.find_by_embed_key_id(tx, services.keyring, claims.key_id)
    agent = _require(agent)
    _check_origin(request, agent, claims.origin or None, own_is_allowed=True)
    if not request_options(request).opens_session:
        sessions.require_customer(agent, claims)
    if claims.identity != user_tokens.fingerprint_for(services.keyring, agent, claims.visitor):
        raise visitor_tokens.refusal("The identity secret was replaced; send a new user token")
    state = request.scope["state"]
    state["visitor_claims"], state["visitor_session"] = claims, claims.session_id
    return agent


def _is_bound_to(request: HttpRequest, claims: VisitorClaims, origin: str | None) -> bool:
    if claims.origin == (origin or ""):
        return True
    # A page of this instance reads without an Origin header; a proxy may hide how it was called.
    is_of_own_page = origin is not None and cors.origin_of(request) is None
    return is_of_own_page and claims.origin in cors.own_origins(request)


async def _admit_key(request: HttpRequest, key: str, origin: str | None) -> EmbeddedAgent:
    opens_session = request_options(request).opens_session
    agent = await find_by_key(services_of(request), key)
    _check_origin(request, agent, origin, own_is_allowed=opens_session)
    rules = agent.rules
    if (rules.require_session_token or rules.require_user_token) and not opens_session:
        raise SessionTokenRequired(
            "This embed key only opens sessions: send the token of POST …/session instead"
        )
    return agent


async def find_by_key(services: Services, key: str) -> EmbeddedAgent:
    """Raises Unauthorized for a key that does not exist, or no longer."""
    async with services.db.tx(None, autocommit=True) as tx:
        agent = await agents.find_by_embed_key(tx, services.keyring, keys.hash_key(key))
    return _require(agent)


def _require(agent: EmbeddedAgent | None) -> EmbeddedAgent:
    if agent is None:
        raise visitor_tokens.refusal("This embed key is not valid, or it was revoked")
    return agent


def _check_origin(
    request: HttpRequest, agent: EmbeddedAgent, origin: str | None, *, own_is_allowed: bool
) -> None:
    """A frame of this instance shows the chat on the allowed sites only, and its requests come from
    this instance's own origin.
    """
    if origins.is_allowed(agent.allowed_domains, origin):
        return
    if own_is_allowed and origin in cors.own_origins(request):
        return
    raise OriginNotAllowed(
        "This embed key may not be used from here"
        + (f": {origin[:200]}" if origin else "; the request names no origin")
    )


def has_key(request: HttpRequest) -> bool:
    """True when the request was authenticated with an embed key or a visitor token."""
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


def claims_of(request: HttpRequest) -> VisitorClaims | None:
    """Returns what the visitor token says, or None for a request with the key itself."""
    claims: VisitorClaims | None = request.scope["state"].get("visitor_claims")
    return claims


def require_claims(request: HttpRequest) -> VisitorClaims:
    """Raises SessionTokenRequired for a request with the key itself."""
    claims = claims_of(request)
    if claims is None:
        raise SessionTokenRequired("Send the token of POST …/session instead of the key")
    return claims


async def create_visitor_question(
    request: HttpRequest,
    agent: EmbeddedAgent,
    session_id: str,
    text: str,
    replaces: str | None = None,
    attachments: Sequence[str] = (),
) -> Question:
    """Stores the use of the key, counts the message and returns the visitor's question. Each
    session of a key is one conversation.
    """
    services, claims = services_of(request), claims_of(request)
    sessions.check_session(claims, session_id)
    if attachments:
        _require_attachments(agent)
    on_tokens = await start_use(services, agent)
    visitor, groups = (claims.visitor, claims.groups) if claims is not None else (None, ())
    return Question(
        speaker=Speaker(
            embed_key_id=agent.embed_key_id, session_id=session_id, visitor=visitor, groups=groups
        ),
        source="embed",
        text=text,
        conversation_id=sessions.conversation_id(agent.embed_key_id, session_id),
        replaces=replaces,
        attachments=list(attachments),
        context={"visitor": visitor} if visitor is not None else None,
        on_tokens=on_tokens,
    )


async def start_use(services: Services, agent: EmbeddedAgent) -> OnTokens | None:
    """Stores when the key was last used, at most once a minute; also by a request that the agent
    then refuses. Takes a message of the key's daily budget; returns what counts the tokens.
    """
    if agent.is_use_outdated:
        async with services.db.tx(agent.runtime.tenant_id, autocommit=True) as tx:
            await queries.mark_used(tx, agent.runtime.tenant_id, agent.embed_key_id)
    if not agent.rules.has_budget:
        return None
    await budgets.take_message(services, agent)
    return partial(budgets.add_tokens, services, agent)


@asynccontextmanager
async def count_unless_busy(services: Services, agent: EmbeddedAgent) -> AsyncIterator[None]:
    """Does not count a message that comes before the last turn is over, or while the local model is
    busy: its sender tries again.
    """
    try:
        yield
    except (ConversationBusy, ModelBusy):
        await budgets.return_message(services, agent)
        raise


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
