from typing import Any, ClassVar

from app.domain.area import Event

_CREDENTIAL: dict[str, Any] = {
    "credential_id": "crd_01k9x3m7e8c0v2q4r6t8w0y2a4",
    "name": "Orders",
    "credential_type": "api_key",
}


class CredentialCreated(Event):
    type: ClassVar[str] = "system.credential.created"
    description: ClassVar[str] = "A credential was added to the vault"
    example: ClassVar[dict[str, Any]] = _CREDENTIAL

    credential_id: str
    name: str
    credential_type: str


class CredentialUpdated(Event):
    type: ClassVar[str] = "system.credential.updated"
    description: ClassVar[str] = "A credential, or who may use it, was changed"
    example: ClassVar[dict[str, Any]] = {**_CREDENTIAL, "changed": ["name"]}

    credential_id: str
    name: str
    credential_type: str
    changed: list[str]


class CredentialDeleted(Event):
    type: ClassVar[str] = "system.credential.deleted"
    description: ClassVar[str] = "A credential was deleted from the vault"
    example: ClassVar[dict[str, Any]] = _CREDENTIAL

    credential_id: str
    name: str
    credential_type: str


class CredentialInvalid(Event):
    type: ClassVar[str] = "system.credential.invalid"
    description: ClassVar[str] = "A credential no longer works: its test or a token refresh failed"
    example: ClassVar[dict[str, Any]] = {**_CREDENTIAL, "reason": "expired"}

    credential_id: str
    name: str
    credential_type: str
    reason: str
