"""What the providers with a public HTTP API have in common: its base address, and the sender of
mails.
"""

from typing import Any, ClassVar

import msgspec

from app.domain.messaging.deliveries import api as deliveries
from app.domain.messaging.notifications.providers import addresses
from app.domain.messaging.notifications.providers.protocol import (
    ChannelType,
    Line,
    Provider,
    ProviderConfig,
    Token,
)


class HostedProvider(Provider):
    """A provider whose config has `api_base`."""

    def urls(self, config: Any) -> dict[str, str]:
        return {"api_base": config.api_base}

    def destination(self, config: Any) -> tuple[Any, ...]:
        return (deliveries.origin_of(config.api_base),)

    def endpoint(self, config: Any, path: str) -> str:
        """Returns the URL of a path below `api_base`."""
        return f"{config.api_base.rstrip('/')}/{path}"


class HostedMailProvider(HostedProvider):
    """A hosted provider of mails, whose config also has `sender`."""

    channel_type: ClassVar[ChannelType] = "email"

    def find_problem(self, config: Any) -> tuple[str, str] | None:
        return addresses.find_problem(config.sender, config.to)


class HostedMailConfig(ProviderConfig, frozen=True, kw_only=True):
    api_key: Token
    sender: Line = msgspec.field(name="from")
