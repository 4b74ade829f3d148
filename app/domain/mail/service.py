"""Mail: queued in the caller's transaction; a worker sends it by SMTP or writes it to a folder."""

import asyncio
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

import aiosmtplib
import idna

from app.kit import clock, disk, work
from app.kit.crypto import Keyring, SealContext
from app.kit.ids import new_id
from app.kit.work import WorkKind
from app.settings import Settings
from db.models import MailMessage
from db.session import Tx

SEND_MAIL: Final = WorkKind(
    "mail.send", timeout_seconds=90, retry_delays=(5, 30, 120, 600, 3600, 14400)
)
_SMTP_TIMEOUT_SECONDS = 30


def seal_context(tenant_id: str, mail_id: str) -> SealContext:
    return SealContext.of(MailMessage.body, tenant_id, mail_id)


async def queue(
    tx: Tx,
    keyring: Keyring,
    *,
    tenant_id: str,
    recipient: str,
    subject: str,
    text: str,
    cause_event_id: str | None = None,
) -> str:
    mail_id = new_id("mal")
    session = await tx.session()
    body = keyring.seal(text.encode(), seal_context(tenant_id, mail_id))
    session.add(
        MailMessage(
            id=mail_id, tenant_id=tenant_id, recipient=recipient, subject=subject, body=body
        )
    )
    await work.accept(
        tx,
        SEND_MAIL,
        tenant_id=tenant_id,
        ref_id=mail_id,
        dedupe_key=mail_id,
        cause_event_id=cause_event_id,
    )
    return mail_id


def compose(settings: Settings, mail_id: str, recipient: str, subject: str, text: str) -> bytes:
    message = EmailMessage()
    message["From"] = settings.mail_from
    message["To"] = Address(addr_spec=_encode_address(recipient))
    message["Subject"] = subject
    message["Date"] = format_datetime(clock.now())
    message["Message-ID"] = f"<{mail_id}@{urlsplit(settings.public_url).hostname or 'localhost'}>"
    message.set_content(text)
    return message.as_bytes()


async def send(settings: Settings, mail_id: str, recipient: str, message: bytes) -> None:
    """Hands the mail to the SMTP server, or writes it to the mail folder under its id."""
    if settings.smtp_url:
        await _send_by_smtp(settings, recipient, message)
    else:
        await asyncio.to_thread(_write_to_folder, mailbox(settings), mail_id, message)


def _encode_address(recipient: str) -> str:
    """Returns the address with a non-ASCII domain in IDNA encoding."""
    local, _, domain = recipient.rpartition("@")
    return (
        f"{local}@{idna.encode(domain, uts46=True).decode()}" if not domain.isascii() else recipient
    )


def mailbox(settings: Settings) -> Path:
    return settings.data_dir / "mail"


def _write_to_folder(folder: Path, mail_id: str, message: bytes) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = folder / f".{mail_id}.part"
    temporary.write_bytes(message)
    disk.fsync(temporary)
    temporary.rename(folder / f"{mail_id}.eml")
    disk.fsync(folder / f"{mail_id}.eml")


async def _send_by_smtp(settings: Settings, recipient: str, message: bytes) -> None:
    url = urlsplit(settings.smtp_url)
    starttls = parse_qs(url.query).get("starttls", [""])[0]
    await aiosmtplib.send(
        message,
        sender=settings.mail_from,
        recipients=[_encode_address(recipient)],
        hostname=url.hostname or "localhost",
        port=url.port,
        username=unquote(url.username) if url.username else None,
        password=unquote(url.password) if url.password else None,
        use_tls=url.scheme == "smtps",
        start_tls=None if not starttls else starttls in {"1", "true", "yes"},
        timeout=_SMTP_TIMEOUT_SECONDS,
    )
