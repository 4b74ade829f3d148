"""A credential that somebody may see into, and where its secrets are sealed."""

from datetime import datetime
from typing import Any

import msgspec

from app.domain.vault import types
from app.domain.vault.schemas import Integration
from app.domain.vault.types import Secrets
from app.kit.crypto import Keyring, Place


class Opened(msgspec.Struct, frozen=True):
    tenant_id: str
    id: str
    name: str
    type: str
    secrets: Secrets
    version: int
    token_expires_at: datetime | None
    metadata: dict[str, Any]


class User(msgspec.Struct, frozen=True):
    """What wants to use a credential; a rule must name exactly this."""

    type: Integration
    id: str

    @property
    def text(self) -> str:
        return f"{self.type}:{self.id}"


def place_of(tenant_id: str, credential_id: str) -> Place:
    return Place(tenant=tenant_id, table="credentials", record=credential_id, field="secrets")


def unsealed(
    keyring: Keyring, tenant_id: str, credential_id: str, type_: str, sealed: bytes
) -> Secrets:
    return types.read(type_, keyring.open(sealed, place_of(tenant_id, credential_id)))
