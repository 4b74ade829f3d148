"""What the providers with a public HTTP API have in common: its base address."""

from typing import Any

from app.domain.messaging.deliveries import api as deliveries
from app.domain.messaging.notifications.providers.protocol import Provider


class HostedProvider(Provider):
    """A provider whose config has `api_base`."""

    def urls(self, config: Any) -> dict[str, str]:
        return {"api_base": config.api_base}

    def destination(self, config: Any) -> tuple[Any, ...]:
        return (deliveries.origin_of(config.api_base),)

    def endpoint(self, config: Any, path: str) -> str:
        """Returns the URL of a path below `api_base`."""
        return f"{config.api_base.rstrip('/')}/{path}"
