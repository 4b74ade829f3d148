"""A real SMTP server that records mails and logins."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword

from app.settings import Settings
from tests.ports import free_port

# The server refuses this password, and repeats it in its answers about mails.
WRONG_PASSWORD = "hunter2"


class ReceivedMail(msgspec.Struct, frozen=True):
    sender: str
    recipients: list[str]
    content: bytes
    has_tls: bool


class Inbox:
    """Mail to `nobody@` is refused for good, and mail to `later@` for now."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.received: list[ReceivedMail] = []
        self.logins: list[tuple[bytes, bytes]] = []

    async def handle_RCPT(  # noqa: N802  # the name that aiosmtpd calls
        self, _server: object, _session: object, envelope: Any, address: str, _options: object
    ) -> str:
        if address.startswith("nobody@"):
            return f"550 no such mailbox {WRONG_PASSWORD}"
        if address.startswith("later@"):
            return f"451 try again later {WRONG_PASSWORD}"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802  # the name that aiosmtpd calls
        self, _server: object, session: Any, envelope: Any
    ) -> str:
        has_tls = session.ssl is not None
        mail = ReceivedMail(envelope.mail_from, envelope.rcpt_tos, envelope.content, has_tls)
        self.received.append(mail)
        return "250 OK"

    def authenticate(self, *args: Any) -> AuthResult:
        login: LoginPassword = args[-1]
        self.logins.append((login.login, login.password))
        return AuthResult(success=login.password != WRONG_PASSWORD.encode(), handled=False)

    def configure(
        self, settings: Settings, login: str = "", options: str = "", host: str = "127.0.0.1"
    ) -> Settings:
        """Returns settings with which mails go to this server."""
        url = f"smtp://{login}{host}:{self.port}{options}"
        return msgspec.structs.replace(settings, smtp_url=url)


@asynccontextmanager
async def run_smtp_server(**options: Any) -> AsyncIterator[Inbox]:
    inbox = Inbox(free_port())
    settings = {"authenticator": inbox.authenticate, "auth_require_tls": False, **options}
    controller = Controller(inbox, "127.0.0.1", inbox.port, **settings)
    await asyncio.to_thread(controller.start)
    try:
        yield inbox
    finally:
        await asyncio.to_thread(controller.stop)
