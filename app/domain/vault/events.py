from typing import ClassVar

from app.domain.events.event import Event


class CredentialCreated(Event):
    type: ClassVar[str] = "system.credential.created"
    description: ClassVar[str] = "A credential was added to the vault"

    credential_id: str
    name: str
    credential_type: str


class CredentialUpdated(Event):
    type: ClassVar[str] = "system.credential.updated"
    description: ClassVar[str] = "A credential, or who may use it, was changed"

    credential_id: str
    name: str
    credential_type: str
    changed: list[str]


class CredentialDeleted(Event):
    type: ClassVar[str] = "system.credential.deleted"
    description: ClassVar[str] = "A credential was deleted from the vault"

    credential_id: str
    name: str
    credential_type: str


class CredentialInvalid(Event):
    type: ClassVar[str] = "system.credential.invalid"
    description: ClassVar[str] = "A credential no longer works: its test or a token refresh failed"

    credential_id: str
    name: str
    credential_type: str
    reason: str
