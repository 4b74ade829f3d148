"""The configs of channels as they are stored: sealed."""

from typing import Any

import msgspec

from app.crypto.keyring import CannotOpen, Keyring, SealContext
from db.models import NotificationChannel

from .errors import UnusableConfig
from .providers.protocol import Provider, ProviderConfig


def _seal_context(tenant_id: str, channel_id: str) -> SealContext:
    return SealContext.of(NotificationChannel.config, tenant_id, channel_id)


def seal_config(keyring: Keyring, tenant_id: str, channel_id: str, values: dict[str, Any]) -> bytes:
    return keyring.seal(msgspec.json.encode(values), _seal_context(tenant_id, channel_id))


def open_values(keyring: Keyring, tenant_id: str, channel_id: str, sealed: bytes) -> dict[str, Any]:
    """Returns the keys that were stored. Raises CannotOpen."""
    values: dict[str, Any] = msgspec.json.decode(
        keyring.open(sealed, _seal_context(tenant_id, channel_id))
    )
    return values


def open_config(
    keyring: Keyring, tenant_id: str, channel_id: str, provider: Provider, sealed: bytes
) -> ProviderConfig:
    """Raises UnusableConfig."""
    try:
        values = open_values(keyring, tenant_id, channel_id, sealed)
        return msgspec.convert(values, provider.config)
    except CannotOpen as error:
        raise UnusableConfig("it cannot be decrypted with this instance's keys") from error
    except msgspec.ValidationError as error:
        raise UnusableConfig("this version needs other keys or values; set it again") from error
