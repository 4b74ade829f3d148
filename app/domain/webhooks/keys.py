"""What is sealed with an endpoint: its secrets and the headers that are sent along."""

from datetime import datetime

import msgspec

from app.kit import clock
from app.kit.crypto import Keyring, Place


class Keys(msgspec.Struct, frozen=True):
    secret: str
    previous: str | None = None
    headers: dict[str, str] = {}

    def signing(self, previous_until: datetime | None) -> list[str]:
        """The current secret, and the one before it for as long as it counts."""
        if self.previous is None or previous_until is None or previous_until <= clock.now():
            return [self.secret]
        return [self.secret, self.previous]


def _place(tenant_id: str, webhook_id: str) -> Place:
    return Place(tenant=tenant_id, table="webhooks", record=webhook_id, field="keys")


def seal(keyring: Keyring, tenant_id: str, webhook_id: str, keys: Keys) -> bytes:
    return keyring.seal(msgspec.json.encode(keys), _place(tenant_id, webhook_id))


def read(keyring: Keyring, tenant_id: str, webhook_id: str, sealed: bytes) -> Keys:
    opened = keyring.open(sealed, _place(tenant_id, webhook_id))
    return msgspec.json.decode(opened, type=Keys)
