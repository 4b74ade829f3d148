"""A mail server, by SMTP."""

import asyncio
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from app.domain.messaging.outbox.api import OutboxEgress
from app.domain.platform.mail import api as mail
from app.kit.texts import storable
from app.kit.validation import describe_pattern
from app.net import smtp
from app.net.egress import BlockedAddress, EgressError
from app.net.smtp import SmtpFailed, SmtpServer

from . import addresses
from .addresses import Mailbox
from .protocol import Line, Notice, Provider, ProviderConfig, Secret, SendFailed

TIMEOUT_SECONDS = 30.0
_HOST = r"^[A-Za-z0-9._:-]+\Z"
describe_pattern(_HOST, "must be the name or the address of a host")


class SmtpConfig(ProviderConfig, frozen=True, kw_only=True):
    """`use_tls` is TLS from the first byte at port 465, and STARTTLS at any other."""

    host: Annotated[str, Meta(max_length=253, pattern=_HOST)]
    port: Annotated[int, Meta(ge=1, le=65535)] = 587
    username: Line = ""
    password: Secret = ""
    use_tls: bool = True
    sender: Line = msgspec.field(name="from")


class Smtp(Provider):
    id = "smtp"
    channel_type = "email"
    name = "SMTP"
    config = SmtpConfig
    # Each notice is a session of its own, and mail servers limit the sessions of a client.
    max_concurrent = 8

    def find_problem(self, config: SmtpConfig) -> tuple[str, str] | None:
        if bool(config.username) != bool(config.password):
            return "password" if config.username else "username", "is needed for a login"
        return addresses.find_problem(config.sender, config.to)

    def urls(self, config: SmtpConfig) -> dict[str, str]:
        # The guard checks an address in a URL; it says nothing about a name before it is resolved.
        return {
            "host": f"https://[{config.host}]" if ":" in config.host else f"https://{config.host}"
        }

    def destination(self, config: SmtpConfig) -> tuple[Any, ...]:
        # Without TLS, others on the way could read the password.
        return config.host.lower(), config.port, config.use_tls

    async def send(self, egress: OutboxEgress, config: SmtpConfig, notice: Notice) -> None:
        login = config.username, config.password
        server = SmtpServer.at_port(config.host, config.port, *login, use_tls=config.use_tls)
        sender = addresses.parse(config.sender)
        try:
            await smtp.send(
                server,
                sender.address,
                addresses.encode_domain(notice.recipient),
                await asyncio.to_thread(_compose, sender, notice),
                guard=egress.guard,
                timeout_seconds=TIMEOUT_SECONDS,
            )
        except SmtpFailed as error:
            raise _failure(error) from error
        except EgressError as error:
            is_permanent = isinstance(error, BlockedAddress)
            message = f"no session: {error}"
            raise SendFailed(message, code="delivery_failed", is_permanent=is_permanent) from error


def _compose(sender: Mailbox, notice: Notice) -> bytes:
    content = mail.MailContent(notice.subject, notice.text, notice.html)
    return mail.compose(sender.header, notice.id, notice.recipient, content, domain=sender.domain)


def _failure(error: SmtpFailed) -> SendFailed:
    """An answer of the server is a provider's error; without one, nothing was delivered."""
    if not error.answer:
        return SendFailed(str(error), code="delivery_failed", is_permanent=error.is_permanent)
    message = f"{error}: {storable(error.answer)}"
    return SendFailed(message, is_permanent=error.is_permanent)
