"""A mail server on loopback with one account."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope

from tests.ports import free_port

USERNAME, PASSWORD = "parley", "right-password"


class MailServer:
    """Keeps accepted mails. `answers` maps a command to the answer that a test wants for it."""

    def __init__(self) -> None:
        self.port = free_port()
        self.logins: list[bytes] = []
        self.envelopes: list[Envelope] = []
        self.answers: dict[str, str] = {}

    def authenticate(self, *args: Any) -> AuthResult:
        login = args[-1]
        self.logins.append(login.login)
        is_correct = (login.login, login.password) == (USERNAME.encode(), PASSWORD.encode())
        return AuthResult(success=is_correct, handled=False)

    async def handle_RCPT(  # noqa: N802 - aiosmtpd calls it by this name
        self, _server: Any, _session: Any, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        if "RCPT" in self.answers:
            return self.answers["RCPT"]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802 - aiosmtpd calls it by this name
        self, _server: Any, _session: Any, envelope: Envelope
    ) -> str:
        if "DATA" in self.answers:
            return self.answers["DATA"]
        self.envelopes.append(envelope)
        return "250 Queued"

    def read(self) -> EmailMessage:
        """Returns the only mail that was accepted."""
        [envelope] = self.envelopes
        assert isinstance(envelope.content, bytes)
        message = message_from_bytes(envelope.content, policy=default)
        assert isinstance(message, EmailMessage)
        return message

    def config(self, **more: Any) -> dict[str, Any]:
        return {
            "host": "127.0.0.1",
            "port": self.port,
            "username": USERNAME,
            "password": PASSWORD,
            "use_tls": False,
            "from": "Ann <ann@example.com>",
            **more,
        }


@asynccontextmanager
async def run_mail_server(**options: Any) -> AsyncIterator[MailServer]:
    server = MailServer()
    settings = {"authenticator": server.authenticate, "auth_require_tls": False, **options}
    controller = Controller(server, "127.0.0.1", server.port, **settings)
    await asyncio.to_thread(controller.start)
    try:
        yield server
    finally:
        await asyncio.to_thread(controller.stop)
