"""Sessions of visitors: opened with an embed key, used with a visitor token."""

import base64
import hashlib
import re
import secrets
from collections.abc import Callable

import msgspec

from app.crypto.keyring import Keyring
from app.domain.agents.definition.api import EmbeddedAgent
from app.domain.conversations.chat import api as chat
from app.domain.conversations.chat.api import Speaker, Visitor
from app.domain.conversations.chat.schemas import AttachmentView, RatedMessage, RateMessage
from app.domain.platform.storage import api as storage
from app.kit import clock
from app.kit.files import Upload
from app.services import Services

from . import budgets, user_tokens, visitor_tokens
from .errors import FeedbackNotAllowed, SessionMismatch, SessionTokenRequired, UserTokenRequired
from .schemas import (
    CustomerConversations,
    OpenSession,
    SessionAgent,
    SessionState,
    VisitorSession,
)
from .visitor_tokens import VisitorClaims

# Sessions of customers whom a user token names; nobody else can use them. Sites that choose the ids
# of sessions themselves may use others with this prefix.
_USER_PREFIX = "usr_"
_USER_SESSION = re.compile(rf"{_USER_PREFIX}[0-9a-v]{{32}}(_[0-9a-v]{{8}})?\Z")
_NEW = "new"
_MAX_CONVERSATIONS = 20
_VISITOR_PREFIX = "vis_"
_MAX_MESSAGES = 100
# How long a session of a customer may be renewed without a new user token.
_MAX_USER_SECONDS = 12 * 3600


async def open_session(
    services: Services, agent: EmbeddedAgent, origin: str, data: OpenSession
) -> VisitorSession:
    """Opens a session for the key: a customer's own if a user token names one, the earlier one that
    `data` names, or a new one.
    """
    keyring = services.keyring
    customer = user_tokens.identify(keyring, agent, data.user_token)
    visitor, groups = customer or (None, ())
    session_id = data.session_id or _VISITOR_PREFIX + secrets.token_urlsafe(24)
    if visitor is not None or data.conversation is not None:
        known = _require_visitor(visitor)
        session_id = await _choose_conversation(services, agent, known, data.conversation)
    claims = VisitorClaims(
        key_id=agent.embed_key_id,
        agent_id=agent.runtime.agent_id,
        origin=origin,
        session_id=session_id,
        visitor=visitor,
        groups=groups,
        identity=user_tokens.fingerprint_for(keyring, agent, visitor),
        since=int(clock.epoch()),
    )
    return _issue(keyring, claims)


async def renew_session(
    services: Services, agent: EmbeddedAgent, claims: VisitorClaims, data: OpenSession
) -> VisitorSession:
    """Renews the session of a visitor token that is still valid, or opens another one of the same
    customer. With another user token, it opens a session of that customer.
    """
    if data.user_token is not None:
        return await open_session(services, agent, claims.origin, data)
    require_customer(agent, claims)
    if data.session_id is not None:
        check_session(claims, data.session_id)
    if data.conversation is not None:
        known = _require_visitor(claims.visitor)
        session_id = await _choose_conversation(services, agent, known, data.conversation)
        claims = msgspec.structs.replace(claims, session_id=session_id)
    is_old = clock.epoch() - claims.since > _MAX_USER_SECONDS
    if claims.visitor is not None and is_old:
        raise UserTokenRequired("This session is 12 hours old; send a new user token")
    return _issue(services.keyring, claims)


def require_customer(agent: EmbeddedAgent, claims: VisitorClaims) -> None:
    """Raises UserTokenRequired when the key demands to know the visitor, and the token does not."""
    if agent.rules.require_user_token and claims.visitor is None:
        raise UserTokenRequired("This site's chat is for its signed-in customers only")


def _require_visitor(visitor: Visitor | None) -> Visitor:
    """Raises UserTokenRequired for a visitor whom nobody has identified."""
    if visitor is None:
        raise UserTokenRequired(
            "Only customers have several conversations; open the session with a user token"
        )
    return visitor


def _issue(keyring: Keyring, claims: VisitorClaims) -> VisitorSession:
    token = visitor_tokens.issue(keyring, claims)
    return VisitorSession(token, claims.session_id, visitor_tokens.SECONDS)


async def _choose_conversation(
    services: Services, agent: EmbeddedAgent, visitor: Visitor, wanted: str | None
) -> str:
    """Returns the session of the customer's latest conversation, of the wanted one, or of a new
    one.
    """
    own = _user_session_id(agent, visitor)
    if wanted is None:
        tenant_id = agent.runtime.tenant_id
        async with services.db.tx(tenant_id, autocommit=True) as tx:
            newest = await chat.find_newest_session(tx, tenant_id, agent.embed_key_id, visitor.id)
        return newest or own
    if wanted == _NEW:
        return f"{own}_{base64.b32hexencode(secrets.token_bytes(5)).decode().lower()}"
    if not wanted.startswith(own):
        raise SessionMismatch("This conversation belongs to another customer")
    return wanted


def _user_session_id(agent: EmbeddedAgent, visitor: Visitor) -> str:
    """The same on every device. It is no secret: only a token that names it can use it."""
    digest = hashlib.sha256(f"{agent.embed_key_id}\0{visitor.id}".encode()).digest()
    return _USER_PREFIX + base64.b32hexencode(digest).decode().lower()[:32]


def check_session(claims: VisitorClaims | None, session_id: str) -> None:
    """Raises SessionMismatch unless a visitor token is for this session, and SessionTokenRequired
    for a customer's session without a token.
    """
    if claims is None:
        if _USER_SESSION.match(session_id):
            raise SessionTokenRequired("This session can be used with its visitor token only")
    elif claims.session_id != session_id:
        raise SessionMismatch("This visitor token belongs to another session")


def conversation_id(embed_key_id: str, session_id: str) -> str:
    """Derives the id from key and session, so that keys do not share conversations."""
    digest = hashlib.sha256(f"{embed_key_id}\0{session_id}".encode()).digest()
    return f"cnv_{base64.b32hexencode(digest).decode().lower()[:26]}"


async def load_state(
    services: Services, agent: EmbeddedAgent, claims: VisitorClaims
) -> SessionState:
    tenant_id = agent.runtime.tenant_id
    known_id = conversation_id(claims.key_id, claims.session_id)
    async with services.db.tx(tenant_id, autocommit=True) as tx:
        messages = await chat.list_visitor_messages(tx, tenant_id, known_id, _MAX_MESSAGES)
        has_earlier = claims.visitor is not None and await chat.has_other_conversations(
            tx, tenant_id, claims.key_id, claims.visitor.id, claims.session_id
        )
    names = ("allow_voice", "allow_feedback", "allow_attachments")
    allowed = {name: getattr(agent.rules, name) for name in names}
    return SessionState(
        claims.session_id,
        SessionAgent(agent.runtime.name, **allowed),
        claims.visitor.name if claims.visitor is not None else None,
        messages,
        has_earlier,
    )


async def list_conversations(
    services: Services, agent: EmbeddedAgent, claims: VisitorClaims
) -> CustomerConversations:
    tenant_id, visitor_id = agent.runtime.tenant_id, _require_visitor(claims.visitor).id
    async with services.db.tx(tenant_id, autocommit=True) as tx:
        listed = await chat.list_for_customer(
            tx, tenant_id, claims.key_id, visitor_id, _MAX_CONVERSATIONS
        )
    return CustomerConversations(listed)


async def add_attachment(
    services: Services,
    agent: EmbeddedAgent,
    claims: VisitorClaims,
    upload: Upload,
    keep_charges: Callable[[], None],
) -> AttachmentView:
    """Stores the text of a file for the messages of the visitor's session. It counts as a message
    of the key's daily budget.
    """
    speaker = Speaker(embed_key_id=claims.key_id, session_id=claims.session_id)
    with storage.hide_figures():
        await storage.require_space(services, agent.runtime.tenant_id)
    await budgets.take_message(services, agent)
    return await chat.add_attachment(services, agent.runtime, speaker, upload, keep_charges)


async def rate_message(
    services: Services,
    agent: EmbeddedAgent,
    claims: VisitorClaims,
    message_id: str,
    data: RateMessage,
) -> RatedMessage:
    """Rates an answer in the session of the visitor token."""
    if not agent.rules.allow_feedback:
        raise FeedbackNotAllowed("This embed key does not allow ratings; set allow_feedback for it")
    tenant_id = agent.runtime.tenant_id
    known_id = conversation_id(claims.key_id, claims.session_id)
    async with services.db.tx(tenant_id) as tx:
        return await chat.rate_as_visitor(tx, tenant_id, known_id, message_id, data)
