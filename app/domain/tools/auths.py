"""How a tool shows who it is: secrets of its own, sealed, or a credential of the vault."""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from app.domain.tools.configs import HeaderMap
from app.kit import validation
from app.kit.egress import Guard
from app.kit.errors import Invalid
from app.kit.validation import VISIBLE

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


Own = ApiKeyAuth | OAuth2Auth | BasicAuth | BearerAuth | CustomAuth
AuthConfig = Own | CredentialAuth


class AuthKind(msgspec.Struct, frozen=True):
    """A way to authenticate, and which credentials of the vault can stand in for it."""

    config: Any
    credentials: tuple[str, ...]


AUTHS: Final[dict[str, AuthKind]] = {
    "api_key": AuthKind(ApiKeyAuth, ("api_key",)),
    "oauth2": AuthKind(OAuth2Auth, ("oauth2",)),
    "basic": AuthKind(BasicAuth, ("basic_auth", "database")),
    "bearer": AuthKind(BearerAuth, ("bearer_token",)),
    "custom": AuthKind(CustomAuth, ("custom",)),
}


def validate(auth_type: str, given: dict[str, Any], guard: Guard, name: str) -> AuthConfig:
    if "credential_id" in given:
        found: AuthConfig = validation.convert_field(CredentialAuth, given, name)
        return found
    found = validation.convert_field(AUTHS[auth_type].config, given, name)
    if isinstance(found, OAuth2Auth):
        problem = guard.problem_with(found.token_url)
        if problem is not None:
            raise Invalid.field(f"{name}.token_url", problem)
    return found


class MeantForElsewhere(Exception):
    """The tool leads to another place than the one that its auth was given for."""


class _Kept(msgspec.Struct):
    """Auth as it is sealed: with where it may go, whatever becomes of the config beside it."""

    to: str
    auth: dict[str, Any]


def encode(auth: AuthConfig, to: tuple[Any, ...]) -> bytes:
    return msgspec.json.encode(_Kept(_place(to), msgspec.to_builtins(auth)))


def decode(auth_type: str, opened: bytes, to: tuple[Any, ...]) -> AuthConfig:
    kept = msgspec.json.decode(opened, type=_Kept)
    if kept.to != _place(to):
        raise MeantForElsewhere
    kind = CredentialAuth if "credential_id" in kept.auth else AUTHS[auth_type].config
    found: AuthConfig = msgspec.convert(kept.auth, kind)
    return found


def _place(to: tuple[Any, ...]) -> str:
    return msgspec.json.encode(to).decode()
