"""What a provider is: the struct of its config, and how it sends a notice to one recipient.

Each provider is one file; `registry.py` lists them. A provider keeps no state: the config of the
channel comes with each call.
"""

from abc import ABC, abstractmethod
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from app.domain.messaging.outbox.api import OutboxEgress
from app.domain.platform.mail import api as mail
from app.kit.validation import ONE_LINE, VISIBLE, describe_pattern

ChannelType = Literal["email", "team_chat", "webhook", "sms", "in_app"]

_API_BASE = r"^https?://[^\s?#]+\Z"
describe_pattern(_API_BASE, "must be a URL without a query and a fragment")

# Types of config keys. A secret is stored sealed and shown as a mask.
Secret = Annotated[str, Meta(min_length=1, max_length=4096, extra={"secret": True})]
# A secret that a header contains.
Token = Annotated[str, Meta(min_length=1, max_length=4096, pattern=VISIBLE, extra={"secret": True})]
Line = Annotated[str, Meta(min_length=1, max_length=500, pattern=ONE_LINE)]
# The base address of a hosted service, for its other regions.
ApiBase = Annotated[str, Meta(min_length=1, max_length=500, pattern=_API_BASE)]
Recipients = Annotated[list[Line], Meta(min_length=1, max_length=50)]


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """A message to one recipient. `id` is the same at each attempt, for providers that accept an
    idempotency key. Only mails use `html`.
    """

    id: str
    recipient: str
    type: str
    title: str
    text: str
    html: str
    data: dict[str, Any]
    created_at: datetime

    @property
    def subject(self) -> str:
        """Returns the title as it may stand in a header."""
        return mail.clean_subject(self.title)


class SendFailed(Exception):
    """The provider did not accept the notice. `message` may have text of the provider, whole and
    with secrets of the channel: `configs.describe_failure` removes them, then shortens it.
    `is_permanent` is True when another try would fail too, `is_throttled` when the provider has got
    too many messages from this channel: then none of them should be sent for a while.
    """

    def __init__(
        self,
        message: str,
        *,
        code: Literal["provider_error", "delivery_failed"] = "provider_error",
        is_permanent: bool = False,
        is_throttled: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code: Literal["provider_error", "delivery_failed"] = code
        self.is_permanent = is_permanent
        self.is_throttled = is_throttled
        self.retry_after = retry_after


class ProviderConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys that every provider has."""

    to: Recipients = []


class Provider(ABC):
    """`rate_per_minute` limits a channel that has no limit of its own. `max_concurrent` is how many
    notices of a channel one worker sends at a time.
    """

    id: ClassVar[str]
    channel_type: ClassVar[ChannelType]
    name: ClassVar[str]
    config: ClassVar[type[ProviderConfig]]
    rate_per_minute: ClassVar[int] = 600
    max_concurrent: ClassVar[int] = 32

    def find_problem(self, config: Any) -> tuple[str, str] | None:
        """Returns the key of an invalid value and what is wrong with it, beyond the types."""
        del config
        return None

    def urls(self, config: Any) -> dict[str, str]:
        """Returns the URLs that the config names, by key. They must pass the egress guard."""
        del config
        return {}

    @abstractmethod
    def destination(self, config: Any) -> tuple[Any, ...]:
        """Returns the server that receives the secrets. A change of it needs them again."""

    def recipients(self, config: Any) -> list[str]:
        """Returns where a notice without recipients of its own goes: `to`, or the one place that
        the channel leads to. The log shows it, so that it must have no secret.
        """
        recipients: list[str] = config.to
        return recipients

    @abstractmethod
    async def send(self, egress: OutboxEgress, config: Any, notice: Notice) -> None:
        """Raises SendFailed unless the provider accepted the notice."""
