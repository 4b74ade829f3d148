"""The mails to people about their own account."""

from app.domain.accounts import one_time
from app.domain.mail import service as mail
from app.services import Services
from db.fast import Row
from db.session import Tx

_IGNORE = "If this was not you, you can ignore this mail; nothing changes.\n"
_ALARM = (
    "If this was not you, reset your password at once and tell your administrator:\n\n"
    "{url}/forgot-password\n"
)


async def invitation(
    tx: Tx,
    services: Services,
    *,
    tenant_id: str,
    email: str,
    role: str,
    token: str,
    days: int,
    cause: str,
) -> None:
    text = (
        f"Hello,\n\nyou are invited to join Parley as {role}.\n\n"
        f"{services.settings.public_url}/register?token={token}\n\n"
        f"The invitation holds for {days} days and for this address only.\n"
    )
    await _send(tx, services, tenant_id, email, "You are invited to Parley", text, cause)


async def verification(tx: Tx, services: Services, user: Row, cause: str | None) -> None:
    token = await one_time.make(tx, one_time.VERIFY_EMAIL, user["tenant_id"], user["id"])
    text = (
        "Hello,\n\nplease verify that this address is yours:\n\n"
        f"{services.settings.public_url}/verify-email?token={token}\n\n"
        f"The link holds for {one_time.VERIFY_EMAIL.lifetime.days} days.\n\n{_IGNORE}"
    )
    await _send(
        tx, services, user["tenant_id"], user["email"], "Verify your e-mail address", text, cause
    )


async def reset(tx: Tx, services: Services, user: Row, cause: str) -> None:
    token = await one_time.make(tx, one_time.RESET_PASSWORD, user["tenant_id"], user["id"])
    text = (
        "Hello,\n\nsomebody asked to reset the password of this account. Choose a new one:\n\n"
        f"{services.settings.public_url}/reset-password?token={token}\n\n"
        f"The link holds for one hour and works once.\n\n{_IGNORE}"
    )
    await _send(tx, services, user["tenant_id"], user["email"], "Reset your password", text, cause)


async def notice(tx: Tx, services: Services, user: Row, what: str, cause: str) -> None:
    """Tells the owner of something that only they should have done."""
    text = f"Hello,\n\n{what}\n\n{_ALARM.format(url=services.settings.public_url)}"
    await _send(tx, services, user["tenant_id"], user["email"], "Your account changed", text, cause)


async def _send(
    tx: Tx,
    services: Services,
    tenant_id: str,
    email: str,
    subject: str,
    text: str,
    cause: str | None,
) -> None:
    await mail.queue(
        tx,
        services.keyring,
        services.doorbell,
        tenant_id=tenant_id,
        recipient=email,
        subject=subject,
        text=text,
        cause_event_id=cause,
    )
