"""One attempt to send a message through a channel, and what its result means for the next one."""

import asyncio
import time
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final, Literal

import msgspec

from app.crypto.keyring import Keyring
from app.domain.messaging.notifications import configs
from app.domain.messaging.notifications.delivery_queries import load_pending
from app.domain.messaging.notifications.errors import UnusableConfig
from app.domain.messaging.notifications.providers.protocol import Notice, SendFailed
from app.domain.messaging.notifications.providers.registry import PROVIDERS
from app.domain.messaging.notifications.sealed_configs import open_config
from app.domain.messaging.notifications.work_kinds import RETRY_DELAYS
from app.domain.platform.mail import api as mail
from app.kit import clock, logs
from app.net.egress import Egress, EgressError, Guard
from db.session import Tx

log = logs.get("notifications")

# For how long a message waits for a provider that gets too many; then the attempts count.
MAX_THROTTLED: Final = timedelta(hours=1)
_THROTTLED_SECONDS = 5.0
# For the whole attempt, whatever number of replies a mail server makes it wait for.
TIMEOUT_SECONDS: Final = 45.0
# The longest wait that a provider may ask for between two attempts.
MAX_RETRY_AFTER: Final = 600.0

ErrorCode = Literal[
    "provider_error",
    "delivery_failed",
    "invalid_config",
    "channel_inactive",
    "recipient_inactive",
    "rate_limited",
]


class SendRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery with its message and its channel."""

    id: str
    tenant_id: str
    message_id: str
    channel_id: str
    first_id: str
    occasion: str
    recipient: str
    user_id: str | None
    attempt: int
    is_test: bool
    throttled_at: datetime | None
    correlation_id: str
    type: str
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
    # False when the recipient was a user who is not active any more.
    has_recipient: bool

    @property
    def rate_per_minute(self) -> int:
        return self.rate_limit_per_minute or PROVIDERS[self.provider].rate_per_minute

    @property
    def max_concurrent(self) -> int:
        return PROVIDERS[self.provider].max_concurrent


class Attempt(msgspec.Struct, frozen=True):
    """`error` is None where the provider accepted the message."""

    milliseconds: int | None
    error: str | None = None
    code: ErrorCode | None = None
    is_permanent: bool = False
    is_throttled: bool = False
    retry_after: float | None = None


class NextStep(msgspec.Struct, frozen=True):
    status: Literal["delivered", "pending", "failed"]
    after_seconds: float | None = None


class ChannelEgress(Egress):
    """Without connection limits, which the courier has. Asks for no compressed answers."""

    def __init__(self, guard: Guard) -> None:
        super().__init__(guard, limit=0, per_host=0, decompress=False)


async def load(tx: Tx, delivery_ids: list[str]) -> dict[str, SendRequest]:
    """Returns requests by delivery id, without deliveries that are finished or deleted."""
    rows = await load_pending(tx, delivery_ids)
    names = SendRequest.__struct_fields__
    return {row["id"]: SendRequest(**{name: row[name] for name in names}) for row in rows}


def next_step(attempt: Attempt, number: int, *, is_test: bool) -> NextStep:
    """`number` counts the attempts, this one included."""
    if attempt.error is None:
        return NextStep("delivered")
    if is_test or attempt.is_permanent or number >= len(RETRY_DELAYS):
        return NextStep("failed")
    wait = RETRY_DELAYS[number]
    if attempt.retry_after is not None:
        wait = max(wait, min(attempt.retry_after, MAX_RETRY_AFTER))
    return NextStep("pending", wait)


def throttled_seconds(attempt: Attempt, request: SendRequest) -> float | None:
    """Returns how long to wait for a provider that gets too many messages; the attempt does not
    count. None when it counts.
    """
    if not attempt.is_throttled or request.is_test:
        return None
    since = request.throttled_at
    if since is not None and clock.now() - since > MAX_THROTTLED:
        return None
    return max(1.0, min(attempt.retry_after or _THROTTLED_SECONDS, MAX_RETRY_AFTER))


async def send(egress: Egress, keyring: Keyring, request: SendRequest) -> Attempt:
    """Makes one attempt. Errors are part of the result."""
    provider = PROVIDERS[request.provider]
    try:
        ids = (request.tenant_id, request.channel_id)
        config = open_config(keyring, *ids, provider, request.config)
    except UnusableConfig as error:
        problem = f"the config of the channel: {error}"
        return Attempt(None, problem, "invalid_config", is_permanent=True)
    if not request.recipient:
        problem = "the channel has no recipients; set `to` in its config"
        return Attempt(None, problem, "invalid_config", is_permanent=True)
    started = time.perf_counter()
    failure = None
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await provider.send(egress, config, _build_notice(request))
    except SendFailed as error:
        failure = error
    except EgressError as error:
        failure = SendFailed(f"no connection: {error}", code="delivery_failed")
    except TimeoutError:
        failure = SendFailed(f"no answer within {TIMEOUT_SECONDS:g} s", code="delivery_failed")
    except Exception as error:
        log.exception("a provider raised", provider=provider.id, delivery_id=request.id)
        problem = f"unexpected {type(error).__name__}"
        failure = SendFailed(problem, code="delivery_failed", is_permanent=True)
    spent = round((time.perf_counter() - started) * 1000)
    if failure is None:
        return Attempt(spent)
    message = configs.describe_failure(provider, config, failure)
    return Attempt(
        spent,
        message,
        failure.code,
        failure.is_permanent,
        failure.is_throttled,
        failure.retry_after,
    )


def _build_notice(request: SendRequest) -> Notice:
    text, html = request.message, ""
    if request.channel_type == "email":
        content = _render_mail(request.title, request.message)
        text, html = content.text, content.html
    data: dict[str, Any] = msgspec.json.decode(request.data)
    return Notice(
        id=request.id,
        recipient=request.recipient,
        type=request.type,
        title=request.title,
        text=text,
        html=html,
        data=data,
        created_at=request.created_at,
    )


# The recipients of a message get the same mail, most of them one after the other.
@lru_cache(maxsize=64)
def _render_mail(title: str, message: str) -> mail.MailContent:
    return mail.render("notification", title=title, message=message, url=None)
