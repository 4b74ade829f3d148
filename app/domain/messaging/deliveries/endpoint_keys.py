"""The sealed keys of an endpoint: its secrets and its custom headers."""

from datetime import datetime

import msgspec

from app.crypto.keyring import Keyring, SealContext
from app.kit import clock
from db.models import Webhook


class EndpointKeys(msgspec.Struct, frozen=True):
    secret: str
    previous: str | None = None
    headers: dict[str, str] = {}

    def __repr__(self) -> str:
        return "EndpointKeys(…)"

    def signing_secrets(self, previous_until: datetime | None) -> list[str]:
        """Returns the current secret, and the previous one until it expires."""
        if self.previous is None or previous_until is None or previous_until <= clock.now():
            return [self.secret]
        return [self.secret, self.previous]


def seal(keyring: Keyring, tenant_id: str, webhook_id: str, keys: EndpointKeys) -> bytes:
    context = SealContext.of(Webhook.keys, tenant_id, webhook_id)
    return keyring.seal(msgspec.json.encode(keys), context)


def unseal(keyring: Keyring, tenant_id: str, webhook_id: str, sealed: bytes) -> EndpointKeys:
    encoded = keyring.open(sealed, SealContext.of(Webhook.keys, tenant_id, webhook_id))
    return msgspec.json.decode(encoded, type=EndpointKeys)
