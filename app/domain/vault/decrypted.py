"""Decrypted credentials, and the context that their secrets are sealed in."""

from datetime import datetime
from typing import Any

import msgspec

from app.domain.vault import types
from app.domain.vault.schemas import Integration
from app.domain.vault.types import Secrets
from app.kit.crypto import Keyring, SealContext
from db.models import Credential


class DecryptedCredential(msgspec.Struct, frozen=True):
    tenant_id: str
    id: str
    name: str
    type: str
    secrets: Secrets
    version: int
    token_expires_at: datetime | None
    metadata: dict[str, Any]


class CredentialUser(msgspec.Struct, frozen=True):
    """What uses a credential: an access rule must name exactly this."""

    type: Integration
    id: str

    @property
    def text(self) -> str:
        return f"{self.type}:{self.id}"


def seal_context(tenant_id: str, credential_id: str) -> SealContext:
    return SealContext.of(Credential.secrets, tenant_id, credential_id)


def decrypt_secrets(
    keyring: Keyring, tenant_id: str, credential_id: str, type_: str, sealed: bytes
) -> Secrets:
    return types.read(type_, keyring.open(sealed, seal_context(tenant_id, credential_id)))
