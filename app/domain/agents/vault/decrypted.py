"""Decrypts the secrets of credentials."""

from datetime import datetime
from typing import Any

import msgspec

from app.crypto.keyring import Keyring, SealContext
from db.models import Credential

from . import types
from .schemas import Integration
from .types import Secrets


class DecryptedCredential(msgspec.Struct, frozen=True):
    tenant_id: str
    id: str
    name: str
    type: str
    secrets: Secrets
    version: int
    token_expires_at: datetime | None
    metadata: dict[str, Any]


class IntegrationRef(msgspec.Struct, frozen=True):
    """The integration that uses a credential; an access rule must name its type and id."""

    type: Integration
    id: str

    @property
    def text(self) -> str:
        return f"{self.type}:{self.id}"


def seal_context(tenant_id: str, credential_id: str) -> SealContext:
    return SealContext.of(Credential.secrets, tenant_id, credential_id)


def decrypt_values(
    keyring: Keyring, tenant_id: str, credential_id: str, sealed_secrets: bytes
) -> dict[str, Any]:
    """Returns the secrets that were stored, without defaults for those that were not."""
    plaintext = keyring.open(sealed_secrets, seal_context(tenant_id, credential_id))
    values: dict[str, Any] = msgspec.json.decode(plaintext)
    return values


def decrypt_secrets(
    keyring: Keyring, tenant_id: str, credential_id: str, type_: str, sealed_secrets: bytes
) -> Secrets:
    plaintext = keyring.open(sealed_secrets, seal_context(tenant_id, credential_id))
    return types.decode_secrets(type_, plaintext)
