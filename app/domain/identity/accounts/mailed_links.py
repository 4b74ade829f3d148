"""What the link of a mail leads to, before it is used: whether it still works, and for whom."""

from typing import Final

from app.kit import clock
from app.security import tokens
from db.session import ALL_TENANTS, Tx

from . import invitation_queries, one_time_tokens, queries
from .errors import InvitationNotFound, LinkNotFound
from .one_time_tokens import Purpose
from .schemas import InvitationLink, InvitationState, LookUpLink, MailedLink

_PURPOSES: Final[dict[str, Purpose]] = {
    purpose.name: purpose
    for purpose in (one_time_tokens.VERIFY_EMAIL, one_time_tokens.RESET_PASSWORD)
}


async def look_up_invitation(tx: Tx, token: str) -> InvitationLink:
    tx.set_scope(ALL_TENANTS)
    row = await invitation_queries.find(tx, tokens.hash_secret(token))
    if row is None:
        raise InvitationNotFound("This invitation is not valid")
    state: InvitationState = "open"
    if row["is_used"]:
        state = "used"
    elif row["withdrawn_as"] is not None:
        state = "superseded" if row["withdrawn_as"] == "superseded" else "revoked"
    elif row["expires_at"] <= clock.now():
        state = "expired"
    texts = (row["email"], row["inviter"], row["tenant_name"])
    return InvitationLink(*texts, row["role"], state, row["expires_at"])


async def look_up_token(tx: Tx, data: LookUpLink) -> MailedLink:
    """Unknown tokens and those of inactive users get the same answer."""
    tx.set_scope(ALL_TENANTS)
    token_hash = tokens.hash_secret(data.token)
    row = await queries.find_any_token(tx, token_hash, _PURPOSES[data.purpose].name)
    if row is None:
        raise LinkNotFound("This link is not valid")
    if row["used_at"] is not None:
        return MailedLink(row["email"], "used")
    return MailedLink(row["email"], "open" if row["expires_at"] > clock.now() else "expired")
