"""Mails to users about their own account."""

from app.domain.accounts import one_time_tokens
from app.domain.mail import service as mail
from app.services import Services
from db.fast import Row
from db.session import Tx

_IGNORE_HINT = "If this was not you, you can ignore this mail; nothing changes.\n"
_ALARM_HINT = (
    "If this was not you, reset your password at once and tell your administrator:\n\n"
    "{url}/forgot-password\n"
)


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
    text = (
        f"Hello,\n\nyou are invited to join Parley as {role}.\n\n"
        f"{services.settings.public_url}/register?token={token}\n\n"
        f"The invitation holds for {days} days and for this address only.\n"
    )
    await _queue(tx, services, tenant_id, email, "You are invited to Parley", text, cause_event_id)


async def mail_verification(
    tx: Tx, services: Services, user: Row, cause_event_id: str | None
) -> None:
    token = await one_time_tokens.create_token(
        tx, one_time_tokens.VERIFY_EMAIL, user["tenant_id"], user["id"]
    )
    text = (
        "Hello,\n\nplease verify that this address is yours:\n\n"
        f"{services.settings.public_url}/verify-email?token={token}\n\n"
        f"The link holds for {one_time_tokens.VERIFY_EMAIL.lifetime.days} days.\n\n{_IGNORE_HINT}"
    )
    await _queue(
        tx,
        services,
        user["tenant_id"],
        user["email"],
        "Verify your e-mail address",
        text,
        cause_event_id,
    )


async def mail_password_reset(tx: Tx, services: Services, user: Row, cause_event_id: str) -> None:
    token = await one_time_tokens.create_token(
        tx, one_time_tokens.RESET_PASSWORD, user["tenant_id"], user["id"]
    )
    text = (
        "Hello,\n\nsomebody asked to reset the password of this account. Choose a new one:\n\n"
        f"{services.settings.public_url}/reset-password?token={token}\n\n"
        f"The link holds for one hour and works once.\n\n{_IGNORE_HINT}"
    )
    await _queue(
        tx, services, user["tenant_id"], user["email"], "Reset your password", text, cause_event_id
    )


async def mail_notice(
    tx: Tx, services: Services, user: Row, sentence: str, cause_event_id: str
) -> None:
    """Informs the owner of a change that only the owner should have made."""
    text = f"Hello,\n\n{sentence}\n\n{_ALARM_HINT.format(url=services.settings.public_url)}"
    await _queue(
        tx, services, user["tenant_id"], user["email"], "Your account changed", text, cause_event_id
    )


async def _queue(
    tx: Tx,
    services: Services,
    tenant_id: str,
    email: str,
    subject: str,
    text: str,
    cause_event_id: str | None,
) -> None:
    await mail.queue(
        tx,
        services.keyring,
        tenant_id=tenant_id,
        recipient=email,
        subject=subject,
        text=text,
        cause_event_id=cause_event_id,
    )
