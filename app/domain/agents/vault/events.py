from typing import Any, ClassVar

from app.domain.area import Event


class _CredentialEvent(Event):
    example: ClassVar[dict[str, Any]] = {
        "credential_id": "crd_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "name": "Orders",
        "credential_type": "api_key",
    }

    credential_id: str
    name: str
    credential_type: str


class CredentialCreated(_CredentialEvent):
    type: ClassVar[str] = "system.credential.created"
    description: ClassVar[str] = "A credential was added to the vault"


class CredentialUpdated(_CredentialEvent):
    type: ClassVar[str] = "system.credential.updated"
    description: ClassVar[str] = "A credential, or who may use it, was changed"
    example: ClassVar[dict[str, Any]] = {**_CredentialEvent.example, "changed": ["name"]}

    changed: list[str]


class CredentialDeleted(_CredentialEvent):
    type: ClassVar[str] = "system.credential.deleted"
    description: ClassVar[str] = "A credential was deleted from the vault"


class CredentialInvalid(_CredentialEvent):
    type: ClassVar[str] = "system.credential.invalid"
    description: ClassVar[str] = "A credential no longer works: its test or a token refresh failed"
    example: ClassVar[dict[str, Any]] = {**_CredentialEvent.example, "reason": "expired"}

    reason: str
