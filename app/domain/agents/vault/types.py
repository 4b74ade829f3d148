"""The credential types and the secrets of each. A new type is a row here and a function in
`connection_tests.py`.
"""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from app.kit import validation
from app.kit.errors import Invalid
from app.net.egress import Guard

Type = Literal[
    "api_key", "oauth2", "basic_auth", "bearer_token", "database", "ssh", "smtp", "custom"
]
_MAX_CUSTOM_SECRETS = 50

Secret = Annotated[str, Meta(min_length=1, max_length=16_384)]
Name = Annotated[str, Meta(min_length=1, max_length=255)]
Port = Annotated[int, Meta(ge=1, le=65535)]


class ApiKeySecrets(msgspec.Struct, forbid_unknown_fields=True):
    api_key: Secret


class OAuth2Secrets(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    client_id: Secret
    client_secret: Secret
    token_url: Annotated[str, Meta(min_length=1, max_length=2000)]
    access_token: Annotated[str, Meta(max_length=16_384)] = ""
    refresh_token: Annotated[str, Meta(max_length=16_384)] = ""
    scopes: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=255)]], Meta(max_length=100)
    ] = []


class BasicAuthSecrets(msgspec.Struct, forbid_unknown_fields=True):
    username: Name
    password: Annotated[str, Meta(max_length=16_384)]


class BearerTokenSecrets(msgspec.Struct, forbid_unknown_fields=True):
    token: Secret


class DatabaseSecrets(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    host: Name
    port: Port | None = None
    database: Name
    username: Name
    password: Annotated[str, Meta(max_length=16_384)] = ""
    ssl_mode: Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] = (
        "prefer"
    )
    engine: Literal["postgresql", "mysql"] = "postgresql"


class SshSecrets(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    host: Name
    port: Port = 22
    username: Name
    private_key: Secret
    passphrase: Annotated[str, Meta(max_length=1024)] = ""
    host_key: Annotated[str, Meta(max_length=8192)] = ""


class SmtpSecrets(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    host: Name
    port: Port = 587
    username: Annotated[str, Meta(max_length=255)] = ""
    password: Annotated[str, Meta(max_length=16_384)] = ""
    use_tls: bool = True


CustomSecrets = Annotated[
    dict[
        Annotated[str, Meta(min_length=1, max_length=100)], Annotated[str, Meta(max_length=16_384)]
    ],
    Meta(min_length=1, max_length=_MAX_CUSTOM_SECRETS),
]

Secrets = (
    ApiKeySecrets
    | OAuth2Secrets
    | BasicAuthSecrets
    | BearerTokenSecrets
    | DatabaseSecrets
    | SshSecrets
    | SmtpSecrets
    | CustomSecrets
)


class CredentialType(msgspec.Struct, frozen=True):
    """One that is `usable_without_host` is for tools whose host the secrets name."""

    type: Type
    name: str
    description: str
    secrets: Any
    tested_by: str
    usable_without_host: bool = False


TYPES: Final[dict[str, CredentialType]] = {
    credential_type.type: credential_type
    for credential_type in (
        CredentialType(
            "api_key",
            "API key",
            "A key that an API expects in a header or the query",
            ApiKeySecrets,
            "GET metadata.test_url with the key in the header metadata.header (X-API-Key)",
        ),
        CredentialType(
            "oauth2",
            "OAuth 2",
            "A client of an authorization server; expired tokens are renewed",
            OAuth2Secrets,
            "a token request",
        ),
        CredentialType(
            "basic_auth",
            "User name and password",
            "HTTP basic authentication",
            BasicAuthSecrets,
            "GET metadata.test_url",
        ),
        CredentialType(
            "bearer_token",
            "Bearer token",
            "A token in the Authorization header",
            BearerTokenSecrets,
            "GET metadata.test_url",
        ),
        CredentialType(
            "database",
            "Database",
            "A login of a database server",
            DatabaseSecrets,
            "a login",
            usable_without_host=True,
        ),
        CredentialType(
            "ssh", "SSH key", "A private key for an SSH server", SshSecrets, "a handshake and login"
        ),
        CredentialType(
            "smtp", "Mail server", "A login of an SMTP server", SmtpSecrets, "SMTP AUTH"
        ),
        CredentialType(
            "custom",
            "Custom",
            "Any names and values; HTTP tools send them as headers",
            CustomSecrets,
            "GET metadata.test_url with the secrets as headers",
        ),
    )
}


def build_schema(credential_type: CredentialType) -> dict[str, Any]:
    """Returns the JSON Schema of the secrets, without references."""
    (schema,), components = msgspec.json.schema_components([credential_type.secrets])
    flat_schema = next(iter(components.values())) if components else schema
    return {name: value for name, value in flat_schema.items() if name != "title"}


def validate_secrets(type_: str, values: dict[str, Any], guard: Guard) -> None:
    """Raises Invalid, which names the wrong fields and never repeats a value."""
    secrets: Secrets = validation.convert_field(TYPES[type_].secrets, values, "secrets")
    if isinstance(secrets, OAuth2Secrets):
        problem = guard.problem_with(secrets.token_url)
        if problem is not None:
            raise Invalid.field("secrets.token_url", problem)


def decode_secrets(type_: str, plaintext: bytes) -> Secrets:
    secrets: Secrets = msgspec.json.decode(plaintext, type=TYPES[type_].secrets)
    return secrets


def secret_texts(secrets: Secrets) -> list[str]:
    """Returns the values to mask in logs, messages and results."""
    secret_names = {
        "api_key",
        "client_secret",
        "access_token",
        "refresh_token",
        "password",
        "token",
        "private_key",
        "passphrase",
    }
    values = msgspec.to_builtins(secrets)
    is_custom = isinstance(secrets, dict)
    return [
        value
        for name, value in values.items()
        if isinstance(value, str) and (is_custom or name in secret_names) and value
    ]
