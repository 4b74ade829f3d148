"""How a tool authenticates: with secrets of its own, or with a credential of the vault."""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from app.kit import validation
from app.kit.errors import Invalid
from app.kit.validation import VISIBLE
from app.net.egress import Guard

from .configs import HeaderMap
from .errors import AuthDestinationMismatch

AuthType = Literal["none", "api_key", "oauth2", "basic", "bearer", "custom"]
Secret = Annotated[str, Meta(min_length=1, max_length=16_384)]
HeaderName = Annotated[str, Meta(min_length=1, max_length=100, pattern=VISIBLE)]
Location = Literal["header", "query"]


class ApiKeyAuth(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    api_key_value: Secret
    api_key_header: HeaderName = "X-API-Key"
    api_key_location: Location = "header"


class OAuth2Auth(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    token_url: Annotated[str, Meta(min_length=1, max_length=2000)]
    client_id: Secret
    client_secret: Secret
    scope: Annotated[str, Meta(max_length=2000)] = ""


class BasicAuth(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    username: Annotated[str, Meta(min_length=1, max_length=255)]
    password: Annotated[str, Meta(max_length=16_384)]


class BearerAuth(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    token: Secret


class CustomAuth(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    headers: HeaderMap


class CredentialAuth(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    credential_id: Annotated[str, Meta(min_length=1, max_length=64)]
    api_key_header: HeaderName = "X-API-Key"
    api_key_location: Location = "header"


OwnAuthConfig = ApiKeyAuth | OAuth2Auth | BasicAuth | BearerAuth | CustomAuth
AuthConfig = OwnAuthConfig | CredentialAuth


class AuthTypeSpec(msgspec.Struct, frozen=True):
    """An auth_type: the struct of its auth_config, and the types of credentials that replace it."""

    config: Any
    credential_types: tuple[str, ...]


AUTH_TYPES: Final[dict[str, AuthTypeSpec]] = {
    "api_key": AuthTypeSpec(ApiKeyAuth, ("api_key",)),
    "oauth2": AuthTypeSpec(OAuth2Auth, ("oauth2",)),
    "basic": AuthTypeSpec(BasicAuth, ("basic_auth", "database")),
    "bearer": AuthTypeSpec(BearerAuth, ("bearer_token",)),
    "custom": AuthTypeSpec(CustomAuth, ("custom",)),
}


def validate(auth_type: str, value: dict[str, Any], guard: Guard, name: str) -> AuthConfig:
    """Returns the auth_config as the struct of its type. Raises Invalid for the field `name`."""
    if "credential_id" in value:
        credential: CredentialAuth = validation.convert_field(CredentialAuth, value, name)
        return credential
    auth: AuthConfig = validation.convert_field(AUTH_TYPES[auth_type].config, value, name)
    if isinstance(auth, OAuth2Auth):
        problem = guard.problem_with(auth.token_url)
        if problem is not None:
            raise Invalid.field(f"{name}.token_url", problem)
    return auth


class _StoredAuth(msgspec.Struct):
    """An auth_config as it is encrypted: together with the only destination that may receive it."""

    destination: str = msgspec.field(name="to")
    auth: dict[str, Any]


def encode(auth: AuthConfig, destination: tuple[Any, ...]) -> bytes:
    stored = _StoredAuth(_encode_destination(destination), msgspec.to_builtins(auth))
    return msgspec.json.encode(stored)


def decode(auth_type: str, content: bytes, destination: tuple[Any, ...]) -> AuthConfig:
    """Raises AuthDestinationMismatch when `content` was encoded for another destination."""
    stored = msgspec.json.decode(content, type=_StoredAuth)
    if stored.destination != _encode_destination(destination):
        raise AuthDestinationMismatch
    struct = CredentialAuth if "credential_id" in stored.auth else AUTH_TYPES[auth_type].config
    auth: AuthConfig = msgspec.convert(stored.auth, struct)
    return auth


def read_credential_id(content: bytes) -> str | None:
    """Returns the credential that an auth_config refers to, for whichever destination it is."""
    credential_id = msgspec.json.decode(content, type=_StoredAuth).auth.get("credential_id")
    return None if credential_id is None else str(credential_id)


def _encode_destination(destination: tuple[Any, ...]) -> str:
    return msgspec.json.encode(destination).decode()
