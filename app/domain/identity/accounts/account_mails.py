"""Mails to users about their own account."""

from typing import Literal

from app.domain.platform.mail import api as mail
from app.kit import email_addresses
from app.security import throttle
from app.security.throttle import Subject
from app.services import Services
from db.fast import Row
from db.session import Tx

from . import one_time_tokens

AccountChange = Literal[
    "password_changed",
    "authenticator_added",
    "authenticator_removed",
    "recovery_codes_replaced",
    "mfa_disabled",
    "mfa_reset",
]


async def count_mail(tx: Tx, occasion: str, address: str) -> None:
    """Raises RateLimited when one mailbox would get many mails. The text after a plus sign makes
    other addresses, but the mailbox is mostly the same.
    """
    subject = Subject(throttle.MAIL, f"{occasion} {email_addresses.mailbox(address)}")
    attempt = await throttle.record_attempt(tx, [subject], succeeded=False)
    if attempt.problem is not None:
        raise attempt.problem


async def mail_invitation(
    tx: Tx,
    services: Services,
    *,
    tenant_id: str,
    email: str,
    role: str,
    token: str,
    days: int,
    cause_event_id: str,
) -> None:
    url = f"{services.settings.public_url}/register?token={token}"
    await mail.queue(
        tx,
        services.keyring,
        tenant_id=tenant_id,
        recipient=email,
        content=mail.render("invitation", role=role, url=url, days=days),
        cause_event_id=cause_event_id,
    )


async def mail_verification(
    tx: Tx, services: Services, user: Row, cause_event_id: str | None
) -> None:
    kind = one_time_tokens.VERIFY_EMAIL
    token = await one_time_tokens.create_token(tx, kind, user["tenant_id"], user["id"])
    url = f"{services.settings.public_url}/verify-email?token={token}"
    content = mail.render("verification", url=url, days=kind.lifetime.days)
    await _queue(tx, services, user, content, cause_event_id)


async def mail_password_reset(tx: Tx, services: Services, user: Row, cause_event_id: str) -> None:
    kind = one_time_tokens.RESET_PASSWORD
    token = await one_time_tokens.create_token(tx, kind, user["tenant_id"], user["id"])
    url = f"{services.settings.public_url}/reset-password?token={token}"
    await _queue(tx, services, user, mail.render("password_reset", url=url), cause_event_id)


async def mail_notice(
    tx: Tx, services: Services, user: Row, change: AccountChange, cause_event_id: str
) -> None:
    """Informs the owner of a change that only the owner should have made."""
    url = f"{services.settings.public_url}/forgot-password"
    content = mail.render("account_notice", change=change, url=url)
    await _queue(tx, services, user, content, cause_event_id)


async def _queue(
    tx: Tx, services: Services, user: Row, content: mail.MailContent, cause_event_id: str | None
) -> None:
    await mail.queue(
        tx,
        services.keyring,
        tenant_id=user["tenant_id"],
        recipient=user["email"],
        content=content,
        cause_event_id=cause_event_id,
    )
