"""Invitations: each is for one e-mail, tenant and role, until it is used, revoked or expired."""

from datetime import timedelta

from msgspec import UNSET

from app.domain.identity.tenants import api as tenants
from app.domain.platform.events import api as events
from app.kit import clock, paging
from app.kit.errors import Conflict, Invalid
from app.kit.ids import new_id
from app.kit.paging import Page, Paged
from app.security import tokens
from app.security.principal import Principal
from app.security.sessions import require_active_session
from app.services import Services
from db.fast import Row
from db.models import Invitation
from db.session import Tx

from . import account_mails, invitation_queries, queries, service, user_queries
from .errors import InvitationNotFound
from .events import InvitationRevoked, UserInvited
from .schemas import InvitationEntry, InvitationView, Invite
from .users import refuse_higher_role

INVITATION_DAYS = 7


async def invite(tx: Tx, services: Services, principal: Principal, data: Invite) -> InvitationView:
    tenant_id = await _select_tenant(tx, principal, data)
    refuse_higher_role(principal, data.role)
    email = service.validate_email("email", data.email)
    if await queries.find_user_by_email(tx, email) is not None:
        raise Conflict("An account with this e-mail already exists")
    # Of each tenant for itself: no tenant keeps another from inviting somebody.
    await account_mails.count_mail(tx, f"invite {tenant_id}", email)
    # Locked until the commit: a demotion of the inviter either comes first and is seen here, or
    # comes later and voids this invitation.
    await queries.lock_user(tx, principal.tenant_id, principal.user_id, to_change=False)
    await require_active_session(tx, principal)
    await invitation_queries.void_to(tx, email, clock.now(), "superseded", tenant_id)
    token = tokens.new_secret()
    invitation = Invitation(
        id=new_id("inv"),
        tenant_id=tenant_id,
        email=email,
        role=data.role,
        token_hash=tokens.hash_secret(token),
        invited_by=principal.user_id,
        expires_at=clock.now() + timedelta(days=INVITATION_DAYS),
    )
    session = await tx.session()
    session.add(invitation)
    await session.flush()
    invited = UserInvited(invitation.id, email, data.role)
    event_id = await events.emit(tx, invited, tenant_id=tenant_id)
    await account_mails.mail_invitation(
        tx,
        services,
        tenant_id=tenant_id,
        email=email,
        role=data.role,
        token=token,
        days=INVITATION_DAYS,
        cause_event_id=event_id,
    )
    return InvitationView(invitation.id, email, data.role, tenant_id, token, invitation.expires_at)


async def _select_tenant(tx: Tx, principal: Principal, data: Invite) -> str:
    """Returns the tenant to invite to. Only super_admin chooses it; for others the field has no
    effect.
    """
    if data.tenant_id is UNSET or not principal.is_super_admin:
        return principal.home
    if principal.narrowed_to is not None and principal.narrowed_to != data.tenant_id:
        raise Invalid.field("tenant_id", "differs from the tenant in X-Tenant-ID")
    return (await tenants.get(tx, data.tenant_id)).id


async def list_page(tx: Tx, page: Page, sort: str | None) -> Paged[InvitationEntry]:
    rows, total = await user_queries.list_invitations(tx, page, sort)
    return paging.paged([_build_entry(row) for row in rows], total, page)


async def revoke(tx: Tx, principal: Principal, invitation_id: str) -> None:
    invitation = await user_queries.lock_invitation(tx, invitation_id)
    if invitation is None:
        raise InvitationNotFound(f"There is no invitation {invitation_id[:64]}")
    refuse_higher_role(principal, invitation.role)
    if invitation.used_at is not None:
        raise Conflict("This invitation was used; delete or deactivate the user instead")
    # Kept until it would have been deleted, so that its link can say so.
    invitation.expires_at = min(invitation.expires_at, clock.now())
    invitation.withdrawn_as = "revoked"
    revoked = InvitationRevoked(invitation.id, invitation.email)
    await events.emit(tx, revoked, tenant_id=invitation.tenant_id)


def _build_entry(row: Row) -> InvitationEntry:
    is_pending = row["expires_at"] > clock.now()
    status = "used" if row["used_at"] else "pending" if is_pending else "expired"
    return user_queries.build_invitation(row, status=status)
