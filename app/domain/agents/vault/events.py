from typing import Annotated

from app.domain.area import Event, example


class _CredentialEvent(Event):
    credential_id: Annotated[str, example("crd_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    name: Annotated[str, example("Orders")]
    credential_type: Annotated[str, example("api_key")]


class CredentialCreated(_CredentialEvent):
    """A credential was added to the vault."""

    type = "system.credential.created"


class CredentialUpdated(_CredentialEvent):
    """A credential, or who may use it, was changed."""

    type = "system.credential.updated"

    changed: Annotated[list[str], example(["name"])]


class CredentialInvalid(_CredentialEvent):
    """A credential no longer works: its test or a token refresh failed."""

    type = "system.credential.invalid"

    reason: Annotated[str, example("expired")]


class CredentialDeleted(_CredentialEvent):
    """A credential was deleted from the vault."""

    type = "system.credential.deleted"
