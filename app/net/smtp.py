"""Sessions with mail servers: the instance's own, and those that a tenant chose."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Literal

import aiosmtplib
import msgspec

from app.net.egress import Guard
from app.net.tls import load_named_context
from db.connection_use import check_wait

_IMPLICIT_TLS_PORT = 465
_PERMANENT = 500
_QUIT_SECONDS = 2.0


class SmtpServer(msgspec.Struct, frozen=True, kw_only=True):
    """`implicit` is TLS from the first byte; `required` and `if_offered` are STARTTLS."""

    host: str
    port: int | None = None
    username: str = ""
    password: str = ""
    tls: Literal["implicit", "required", "if_offered", "none"] = "required"

    @classmethod
    def at_port(
        cls, host: str, port: int, username: str, password: str, *, use_tls: bool
    ) -> "SmtpServer":
        """Returns a server whose kind of TLS follows from its port."""
        tls: Literal["implicit", "required"]
        tls = "implicit" if port == _IMPLICIT_TLS_PORT else "required"
        return cls(
            host=host,
            port=port,
            username=username,
            password=password,
            tls=tls if use_tls else "none",
        )


class SmtpFailed(Exception):
    """The message has no text of the server, which may repeat a secret: `answer` has it.
    `is_permanent` is True when the same mail would be refused again.
    """

    def __init__(self, message: str, answer: str = "", *, is_permanent: bool = False) -> None:
        super().__init__(message)
        self.answer = answer
        self.is_permanent = is_permanent


class SessionRefused(SmtpFailed):
    """The server refused the connection or the login, whatever the mail."""


@asynccontextmanager
async def connect(
    server: SmtpServer, *, guard: Guard | None, timeout_seconds: float
) -> AsyncIterator[aiosmtplib.SMTP]:
    """A session after the login. With `guard` it connects only to an allowed address, and TLS still
    verifies the host name. Raises EgressError for an address that is not allowed, and SmtpFailed.
    """
    check_wait("a mail server")
    address, context = server.host, None
    if guard is not None:
        address = await guard.resolve_host(server.host, server.port or 0)
        if server.tls in {"implicit", "required"}:
            context = await load_named_context(server.host)
    client = aiosmtplib.SMTP(
        hostname=address,
        port=server.port,
        use_tls=server.tls == "implicit",
        start_tls={"required": True, "if_offered": None}.get(server.tls, False),
        tls_context=context,
        timeout=timeout_seconds,
    )
    failure: type[SmtpFailed] = SessionRefused
    try:
        await client.connect()
        if server.username:
            await client.login(server.username, server.password)
        failure = SmtpFailed
        yield client
        await _quit(client)
    except aiosmtplib.SMTPResponseException as error:
        raise _refusal(error, failure) from error
    except aiosmtplib.SMTPRecipientsRefused as error:
        raise _refusal(error.recipients[0], failure) from error
    except (aiosmtplib.SMTPException, OSError) as error:
        raise SmtpFailed(f"no session with the mail server: {type(error).__name__}") from error
    finally:
        client.close()


async def _quit(client: aiosmtplib.SMTP) -> None:
    """Says goodbye. Whatever the server does about it, the mail is accepted already."""
    with suppress(aiosmtplib.SMTPException, OSError, TimeoutError):
        async with asyncio.timeout(_QUIT_SECONDS):
            await client.quit()


def _refusal(error: aiosmtplib.SMTPResponseException, failure: type[SmtpFailed]) -> SmtpFailed:
    message = f"the mail server answered {error.code}"
    return failure(message, error.message, is_permanent=error.code >= _PERMANENT)


async def send(
    server: SmtpServer,
    sender: str,
    recipient: str,
    message: bytes,
    *,
    guard: Guard | None,
    timeout_seconds: float,
) -> None:
    async with connect(server, guard=guard, timeout_seconds=timeout_seconds) as client:
        await client.sendmail(sender, [recipient], message)
