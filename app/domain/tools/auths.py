"""How a tool shows who it is: secrets of its own, sealed, or a credential of the vault."""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from app.domain.tools.configs import HeaderMap
from app.http import bodies
from app.http.bodies import VISIBLE
from app.http.errors import Invalid
from app.kit.egress import Guard

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


def checked(auth_type: str, given: dict[str, Any], guard: Guard, name: str) -> AuthConfig:
    if "credential_id" in given:
        found: AuthConfig = bodies.converted(CredentialAuth, given, name)
        return found
    found = bodies.converted(AUTHS[auth_type].config, given, name)
    if isinstance(found, OAuth2Auth):
        problem = guard.problem_with(found.token_url)
        if problem is not None:
            raise Invalid.field(f"{name}.token_url", problem)
    return found


def read(auth_type: str, opened: bytes) -> AuthConfig:
    given = msgspec.json.decode(opened)
    kind = CredentialAuth if "credential_id" in given else AUTHS[auth_type].config
    found: AuthConfig = msgspec.convert(given, kind)
    return found
