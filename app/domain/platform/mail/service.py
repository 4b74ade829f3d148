"""Mail: queued in the caller's transaction; a worker sends it by SMTP or writes it to a folder."""

import asyncio
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime
from pathlib import Path
from typing import Final, Literal
from urllib.parse import parse_qs, unquote, urlsplit

import idna
import msgspec

from app.crypto.keyring import Keyring, SealContext
from app.jobs.work import WorkKind
from app.kit import clock, files, trace
from app.kit.ids import new_id
from app.net import smtp
from app.net.smtp import SmtpServer
from app.settings import Settings
from db.models import MailMessage
from db.session import Tx

from . import queries
from .queries import Cause, NewMail
from .rendering import MailContent

SEND_MAIL: Final = WorkKind(
    "mail.send", timeout_seconds=90, retry_delays=(5, 30, 120, 600, 3600, 14400)
)
_SMTP_TIMEOUT_SECONDS = 30
# A wake-up is a request to Redis.
_MAX_WOKEN = 32


class _Body(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The sealed part of a queued mail."""

    text: str
    html: str


def seal_context(tenant_id: str, mail_id: str) -> SealContext:
    return SealContext.of(MailMessage.body, tenant_id, mail_id)


async def queue(
    tx: Tx,
    keyring: Keyring,
    *,
    tenant_id: str,
    recipient: str,
    content: MailContent,
    cause_event_id: str | None = None,
) -> str:
    """Returns the id of the mail."""
    (mail_id,) = await queue_many(
        tx,
        keyring,
        tenant_id=tenant_id,
        mails=[(recipient, content)],
        cause_event_id=cause_event_id,
    )
    return mail_id


async def queue_many(
    tx: Tx,
    keyring: Keyring,
    *,
    tenant_id: str,
    mails: list[tuple[str, MailContent]],
    cause_event_id: str | None = None,
    run_at: datetime | None = None,
) -> list[str]:
    """Queues a mail to each recipient in one statement, to be sent at once or at `run_at`; returns
    the ids in the same order.
    """
    if not mails:
        return []
    rows = [_seal(keyring, tenant_id, recipient, content) for recipient, content in mails]
    current = trace.current()
    cause = Cause(current.correlation_id, cause_event_id or current.cause_event_id)
    await queries.add(tx, tenant_id, rows, SEND_MAIL, cause, _MAX_WOKEN, run_at)
    for row in rows[:_MAX_WOKEN] if run_at is None else []:
        tx.wake(SEND_MAIL.name, row.work_id)
    return [row.id for row in rows]


def _seal(keyring: Keyring, tenant_id: str, recipient: str, content: MailContent) -> NewMail:
    mail_id = new_id("mal")
    body = msgspec.json.encode(_Body(content.text, content.html))
    sealed_body = keyring.seal(body, seal_context(tenant_id, mail_id))
    return NewMail(mail_id, new_id("wrk"), recipient, content.subject, sealed_body)


def open_content(keyring: Keyring, message: MailMessage) -> MailContent:
    """Returns the content of a mail that is not sent yet. Raises CannotOpen."""
    opened = keyring.open(message.body or b"", seal_context(message.tenant_id, message.id))
    try:
        body = msgspec.json.decode(opened, type=_Body)
    except msgspec.DecodeError:
        # Queued by a version that sealed the bare text.
        body = _Body(opened.decode(), "")
    return MailContent(message.subject, body.text, body.html)


def compose(
    sender: str, message_id: str, recipient: str, content: MailContent, *, domain: str
) -> bytes:
    """Builds the mail, as text and HTML. Raises ValueError for a line break in a header, and for
    more than one recipient.
    """
    message = EmailMessage()
    message["From"] = sender
    message["To"] = Address(addr_spec=_encode_address(recipient))
    message["Subject"] = content.subject
    message["Date"] = format_datetime(clock.now())
    message["Message-ID"] = f"<{message_id}@{domain}>"
    # No vacation notice comes back.
    message["Auto-Submitted"] = "auto-generated"
    for name, value in message.items():
        if not str(value).isprintable():
            # A header that decodes to a line break would add another one.
            raise ValueError(f"the header {name} has a control character")
    message.set_content(content.text)
    if content.html:
        message.add_alternative(content.html, subtype="html")
    return message.as_bytes()


def domain_of(settings: Settings) -> str:
    """Returns the domain of this instance, for the ids of messages."""
    return urlsplit(settings.public_url).hostname or "localhost"


async def send(settings: Settings, mail_id: str, recipient: str, message: bytes) -> None:
    """Hands the mail to the SMTP server, or writes it to the mail folder under its id. Raises
    SmtpFailed or OSError.
    """
    if not settings.smtp_url:
        await asyncio.to_thread(_write_to_folder, mailbox(settings), mail_id, message)
        return
    await smtp.send(
        parse_server(settings.smtp_url),
        settings.mail_from,
        _encode_address(recipient),
        message,
        # The operator chose this server: it may be at a private address.
        guard=None,
        timeout_seconds=_SMTP_TIMEOUT_SECONDS,
    )


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
    files.fsync(temporary)
    temporary.rename(folder / f"{mail_id}.eml")
    files.fsync(folder / f"{mail_id}.eml")


def parse_server(smtp_url: str) -> SmtpServer:
    url = urlsplit(smtp_url)
    starttls = parse_qs(url.query).get("starttls", [""])[0]
    tls: Literal["implicit", "required", "if_offered", "none"] = "if_offered"
    if url.scheme == "smtps":
        tls = "implicit"
    elif starttls:
        tls = "required" if starttls in {"1", "true", "yes"} else "none"
    return SmtpServer(
        host=url.hostname or "localhost",
        port=url.port,
        username=unquote(url.username or ""),
        password=unquote(url.password or ""),
        tls=tls,
    )
