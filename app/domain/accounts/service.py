"""Signing in, who am I, inviting."""

from datetime import timedelta

import email_validator
from msgspec import UNSET
from sqlalchemy import update

from app.domain.accounts import queries
from app.domain.accounts.schemas import (
    InvitationView,
    Invite,
    Login,
    SignedIn,
    SignedInUser,
    UserView,
)
from app.domain.events import service as events
from app.domain.events.catalogue import UserInvited, UserSignedIn
from app.domain.tenants import service as tenants
from app.http.errors import Conflict, Forbidden, Invalid, Unauthorized
from app.kit import clock, mail, trace
from app.kit.ids import new_id
from app.parts import Parts
from app.security import passwords, tokens
from app.security.permissions import outranks
from app.security.principal import Principal
from db.models import Invitation, Session, User
from db.session import ALL_TENANTS, Tx

INVITATION_DAYS = 7

# An instance of one's own may well mail to `localhost` or `.local`.
email_validator.SPECIAL_USE_DOMAIN_NAMES.clear()


async def sign_in(tx: Tx, parts: Parts, data: Login, address: str) -> SignedIn:
    """The same answer, after the same work, for a wrong password and an unknown e-mail."""
    async with parts.db.tx(ALL_TENANTS, read_only=True) as reading:
        found = await queries.by_email(reading, data.email)
    right = await passwords.verify_password(
        found["password_hash"] if found else None, data.password
    )
    if found is None or not right or found["status"] != "active":
        raise Unauthorized("The e-mail or the password is wrong")
    trace.current().actor_id = found["id"]
    tx.enter(found["tenant_id"])
    session = await tx.session()
    now = clock.now()
    opened = Session(
        id=new_id("ses"),
        user_id=found["id"],
        tenant_id=found["tenant_id"],
        refresh_jti=new_id("jti"),
        expires_at=now + timedelta(seconds=tokens.REFRESH_SECONDS),
    )
    session.add(opened)
    await session.execute(update(User).where(User.id == found["id"]).values(last_login_at=now))
    signed_in = UserSignedIn(found["id"], address)
    await events.emit(tx, signed_in, tenant_id=found["tenant_id"])
    user = SignedInUser(found["id"], found["email"], found["role"])
    return issue(parts, opened, user, found["tenant_id"])


def issue(parts: Parts, session: Session, user: SignedInUser, tenant_id: str) -> SignedIn:
    claims = {"sub": user.id, "tid": tenant_id, "role": user.role, "sid": session.id}
    return SignedIn(
        parts.tokens.issue("access", tokens.ACCESS_SECONDS, jti=new_id("jti"), **claims),
        parts.tokens.issue("refresh", tokens.REFRESH_SECONDS, jti=session.refresh_jti, **claims),
        "Bearer",
        tokens.ACCESS_SECONDS,
        user,
    )


async def me(tx: Tx, principal: Principal) -> UserView:
    """Oneself, also while acting in another tenant."""
    row = await queries.by_id(tx, principal.tenant_id, principal.user_id)
    if row is None:
        raise Unauthorized("This user no longer exists")
    return UserView(**row)


async def invite(tx: Tx, parts: Parts, principal: Principal, data: Invite) -> InvitationView:
    tenant_id = await _tenant_for(tx, principal, data)
    if outranks(principal.role, data.role):
        raise Forbidden(
            f"The role {principal.role} cannot invite {data.role}, which stands above it",
            details={"required": f"role:{data.role}", "your_role": principal.role},
        )
    email = checked_email("email", data.email)
    if await queries.by_email(tx, email) is not None:
        raise Conflict("Somebody with this e-mail already has an account")
    token = tokens.new_secret()
    invitation = Invitation(
        id=new_id("inv"),
        tenant_id=tenant_id,
        email=email,
        role=data.role,
        token_hash=tokens.secret_hash(token),
        invited_by=principal.user_id,
        expires_at=clock.now() + timedelta(days=INVITATION_DAYS),
    )
    session = await tx.session()
    session.add(invitation)
    await session.flush()
    invited = UserInvited(invitation.id, email, data.role)
    event_id = await events.emit(tx, invited, tenant_id=tenant_id)
    await mail.queue(
        tx,
        parts.keyring,
        parts.doorbell,
        tenant_id=tenant_id,
        recipient=email,
        subject="You are invited to Parley",
        text=_invitation_text(parts, data, token),
        cause_event_id=event_id,
    )
    return InvitationView(invitation.id, email, data.role, tenant_id, token, invitation.expires_at)


def checked_email(field: str, text: str) -> str:
    """An address that a mail can be sent to; whether somebody reads it, only a mail can tell."""
    try:
        found = email_validator.validate_email(
            text,
            check_deliverability=False,
            allow_smtputf8=False,
            globally_deliverable=False,
            strict=True,
        )
    except email_validator.EmailNotValidError as problem:
        raise Invalid.field(field, str(problem)) from None
    return found.normalized


async def _tenant_for(tx: Tx, principal: Principal, data: Invite) -> str:
    """Only super_admin names a tenant; from anybody else the field has no effect."""
    if data.tenant_id is UNSET or not principal.is_super_admin:
        return principal.home
    if principal.narrowed_to is not None and principal.narrowed_to != data.tenant_id:
        raise Invalid.field("tenant_id", "differs from the tenant in X-Tenant-ID")
    return (await tenants.get(tx, data.tenant_id)).id


def _invitation_text(parts: Parts, data: Invite, token: str) -> str:
    return (
        f"Hello,\n\nyou are invited to join Parley as {data.role}.\n\n"
        f"{parts.settings.public_url}/register?token={token}\n\n"
        f"The invitation holds for {INVITATION_DAYS} days and for this address only.\n"
    )
