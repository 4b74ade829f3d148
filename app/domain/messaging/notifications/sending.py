"""One attempt to send a message through a channel."""

import asyncio
import time
from datetime import datetime
from typing import Any, Final

import msgspec

from app.crypto.keyring import Keyring
from app.domain.messaging.outbox.api import Attempt, OutboxEgress, OutboxRequest
from app.domain.platform.mail import api as mail
from app.kit import logs
from app.net.egress import EgressError

from . import configs
from .errors import UnusableConfig
from .mail_contents import MailedMessage
from .providers.protocol import Notice, SendFailed
from .providers.registry import PROVIDERS
from .sealed_configs import open_config

log = logs.get("notifications")

# For the whole attempt, whatever number of replies a mail server makes it wait for.
TIMEOUT_SECONDS: Final = 45.0


class SendRequest(OutboxRequest, frozen=True, kw_only=True):
    """A delivery with its message and its channel. `cause_id` is the event that caused the message,
    or the message itself.
    """

    message_id: str
    first_id: str
    cause_id: str
    recipient: str
    user_id: str | None
    throttled_at: datetime | None
    correlation_id: str
    type: str
    source: str = ""
    title: str
    message: str
    data: str
    # True when the message names the channel, and not users.
    is_named: bool
    created_at: datetime
    channel_type: str
    provider: str
    config: bytes
    active: bool
    rate_limit_per_minute: int | None
    # False when the recipient was a user who is no longer active.
    has_recipient: bool

    @property
    def rate_per_minute(self) -> int:
        return self.rate_limit_per_minute or PROVIDERS[self.provider].rate_per_minute

    @property
    def max_concurrent(self) -> int:
        return PROVIDERS[self.provider].max_concurrent


async def send(
    egress: OutboxEgress, keyring: Keyring, request: SendRequest, content: mail.MailContent | None
) -> Attempt:
    """Makes one attempt. Errors are part of the result. A mail has a content of its own."""
    provider = PROVIDERS[request.provider]
    try:
        ids = (request.tenant_id, request.endpoint_id)
        config = open_config(keyring, *ids, provider, request.config)
    except UnusableConfig as error:
        return _refuse(f"the config of the channel: {error}")
    if not request.recipient:
        return _refuse("the channel has no recipients; set `to` in its config")
    started = time.perf_counter()
    failure = None
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await provider.send(egress, config, _build_notice(request, content))
    except SendFailed as error:
        failure = error
    except EgressError as error:
        failure = SendFailed(f"no connection: {error}", code="delivery_failed")
    except TimeoutError:
        failure = SendFailed(f"no answer within {TIMEOUT_SECONDS:g} s", code="delivery_failed")
    except Exception as error:
        log.exception("a provider raised", provider=provider.id, delivery_id=request.delivery_id)
        problem = f"unexpected {type(error).__name__}"
        failure = SendFailed(problem, code="delivery_failed", is_permanent=True)
    spent = round((time.perf_counter() - started) * 1000)
    if failure is None:
        return Attempt(milliseconds=spent)
    return Attempt(
        milliseconds=spent,
        error=configs.describe_failure(provider, config, failure),
        error_code=failure.code,
        is_permanent=failure.is_permanent,
        is_throttled=failure.is_throttled,
        retry_after=failure.retry_after,
    )


def _refuse(problem: str) -> Attempt:
    return Attempt(error=problem, error_code="invalid_config", is_permanent=True)


def _build_notice(request: SendRequest, content: mail.MailContent | None) -> Notice:
    title, text, html = request.title, request.message, ""
    if content is not None:
        title, text, html = content.subject, content.text, content.html
    data: dict[str, Any] = msgspec.json.decode(request.data)
    return Notice(
        id=request.delivery_id,
        recipient=request.recipient,
        type=request.type,
        title=title,
        text=text,
        html=html,
        data=data,
        created_at=request.created_at,
    )


def mailed_message(request: SendRequest) -> MailedMessage:
    return MailedMessage(
        tenant_id=request.tenant_id,
        source=request.source,
        title=request.title,
        message=request.message,
        data=request.data,
    )
