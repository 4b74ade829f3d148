"""Composing mails, and sending them to a folder or an SMTP server."""

import asyncio
import email
import email.policy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import aiosmtplib
import msgspec
import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword

from app.domain.mail import service as mail
from app.kit import clock
from app.settings import Settings
from tests.ports import free_port

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        data_dir=tmp_path / "data", base_url="https://parley.test", mail_from="hello@parley.test"
    )


def _compose(settings: Settings, subject: str = "Hello", text: str = "text\n") -> EmailMessage:
    content = mail.compose(settings, "mal_1", "ann@example.com", subject, text)
    return email.message_from_bytes(content, policy=email.policy.default)


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("From", "hello@parley.test"),
        ("To", "ann@example.com"),
        ("Subject", "Gr\u00fc\u00dfe \u2713"),
        ("Date", "Sun, 01 Mar 2026 12:00:00 +0000"),
        ("Message-ID", "<mal_1@parley.test>"),
    ],
)
def test_a_composed_mail_has_its_headers(settings: Settings, header: str, value: str) -> None:
    with clock.frozen(NOON):
        assert str(_compose(settings, "Gr\u00fc\u00dfe \u2713")[header]) == value


@pytest.mark.parametrize("text", ["plain\n", "Gr\u00fc\u00dfe \u2713\n", "x" * 2_000 + "\n"])
def test_a_composed_mail_has_its_text(settings: Settings, text: str) -> None:
    assert _compose(settings, text=text).get_content() == text


@pytest.mark.parametrize("subject", ["Hello\nBcc: eve@example.com", "Hello\r\nBcc: a@b.c", "a\rb"])
def test_a_subject_cannot_add_a_header(settings: Settings, subject: str) -> None:
    with pytest.raises(ValueError, match="linefeed or carriage return"):
        _compose(settings, subject)


@pytest.mark.parametrize(
    "recipient", ["ann@example.com\r\nBcc: eve@example.com", "ann@example.com, eve@example.com"]
)
def test_a_recipient_cannot_add_another(settings: Settings, recipient: str) -> None:
    with pytest.raises(ValueError, match=r"CR or LF|only 'ann@example\.com'"):
        mail.compose(settings, "mal_1", recipient, "Hello", "text")


def _list_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_without_smtp_a_mail_is_a_file_in_the_folder(settings: Settings) -> None:
    await mail.send(settings, "mal_1", "ann@example.com", b"message")
    assert (mail.mailbox(settings) / "mal_1.eml").read_bytes() == b"message"


async def test_a_mail_delivered_twice_is_in_the_folder_once(settings: Settings) -> None:
    for _ in range(2):
        await mail.send(settings, "mal_1", "ann@example.com", b"message")
    assert _list_names(mail.mailbox(settings)) == ["mal_1.eml"]


async def test_only_the_owner_has_access_to_the_mail_folder(settings: Settings) -> None:
    await mail.send(settings, "mal_1", "ann@example.com", b"message")
    assert mail.mailbox(settings).stat().st_mode & 0o777 == 0o700


class ReceivedMail(msgspec.Struct, frozen=True):
    sender: str
    recipients: list[str]
    content: bytes


class Inbox:
    """The handler of a real SMTP server; it records mails and logins."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.received: list[ReceivedMail] = []
        self.logins: list[tuple[bytes, bytes]] = []

    async def handle_RCPT(  # noqa: N802  # the name that aiosmtpd calls
        self, _server: object, _session: object, envelope: Any, address: str, _options: object
    ) -> str:
        if address.startswith("nobody@"):
            return "550 no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802  # the name that aiosmtpd calls
        self, _server: object, _session: object, envelope: Any
    ) -> str:
        self.received.append(ReceivedMail(envelope.mail_from, envelope.rcpt_tos, envelope.content))
        return "250 OK"

    def authenticate(self, *args: Any) -> AuthResult:
        login: LoginPassword = args[-1]
        self.logins.append((login.login, login.password))
        return AuthResult(success=True)

    def configure(self, settings: Settings, login: str = "") -> Settings:
        """Returns settings with which mails go to this server."""
        url = f"smtp://{login}127.0.0.1:{self.port}"
        return msgspec.structs.replace(settings, smtp_url=url)


@asynccontextmanager
async def _run_smtp_server(**options: Any) -> AsyncIterator[Inbox]:
    inbox = Inbox(free_port())
    controller = Controller(
        inbox,
        "127.0.0.1",
        inbox.port,
        authenticator=inbox.authenticate,
        auth_require_tls=False,
        **options,
    )
    await asyncio.to_thread(controller.start)
    try:
        yield inbox
    finally:
        await asyncio.to_thread(controller.stop)


@pytest.fixture
async def inbox() -> AsyncIterator[Inbox]:
    async with _run_smtp_server() as running_inbox:
        yield running_inbox


async def test_with_smtp_a_mail_goes_to_the_server(settings: Settings, inbox: Inbox) -> None:
    message = mail.compose(settings, "mal_1", "ann@example.com", "Hello", "Gr\u00fc\u00dfe\n")
    await mail.send(inbox.configure(settings), "mal_1", "ann@example.com", message)
    (received,) = inbox.received
    assert received.content.replace(b"\r\n", b"\n") == message


async def test_the_envelope_names_sender_and_recipient(settings: Settings, inbox: Inbox) -> None:
    message = mail.compose(settings, "mal_1", "ann@example.com", "Hello", "text")
    await mail.send(inbox.configure(settings), "mal_1", "ann@example.com", message)
    (received,) = inbox.received
    assert (received.sender, received.recipients) == ("hello@parley.test", ["ann@example.com"])


async def test_a_sender_may_have_a_display_name(settings: Settings, inbox: Inbox) -> None:
    settings_with_name = msgspec.structs.replace(settings, mail_from="Parley <hello@parley.test>")
    message = mail.compose(settings_with_name, "mal_1", "ann@example.com", "Hello", "text")
    await mail.send(inbox.configure(settings_with_name), "mal_1", "ann@example.com", message)
    assert inbox.received[0].sender == "hello@parley.test"


async def test_a_line_of_one_dot_does_not_end_the_mail(settings: Settings, inbox: Inbox) -> None:
    message = mail.compose(settings, "mal_1", "ann@example.com", "Hello", "a\n.\n..b\n")
    await mail.send(inbox.configure(settings), "mal_1", "ann@example.com", message)
    received = email.message_from_bytes(inbox.received[0].content, policy=email.policy.default)
    assert received.get_content().replace("\r\n", "\n") == "a\n.\n..b\n"


async def test_with_smtp_nothing_is_left_in_the_folder(settings: Settings, inbox: Inbox) -> None:
    await mail.send(inbox.configure(settings), "mal_1", "ann@example.com", b"A: b\n\ntext\n")
    assert not mail.mailbox(settings).exists()


async def test_a_recipient_that_the_server_refuses_is_an_error(
    settings: Settings, inbox: Inbox
) -> None:
    with pytest.raises(aiosmtplib.SMTPRecipientsRefused):
        await mail.send(inbox.configure(settings), "mal_1", "nobody@example.com", b"A: b\n\n")


async def test_an_unreachable_server_is_an_error(settings: Settings) -> None:
    unreachable = Inbox(free_port()).configure(settings)
    with pytest.raises(aiosmtplib.SMTPConnectError):
        await mail.send(unreachable, "mal_1", "ann@example.com", b"A: b\n\n")


async def test_the_login_in_the_url_is_decoded(settings: Settings, inbox: Inbox) -> None:
    login = "ann%40parley.test:p%40ss%2Fword@"
    message = mail.compose(settings, "mal_1", "ann@example.com", "Hello", "text")
    await mail.send(inbox.configure(settings, login), "mal_1", "ann@example.com", message)
    assert inbox.logins == [(b"ann@parley.test", b"p@ss/word")]


def test_a_mail_to_an_international_domain_goes_to_its_encoded_form(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    message = mail.compose(settings, "mal_1", "a@bücher.example", "Hello", "text")
    assert b"To: a@xn--bcher-kva.example" in message
