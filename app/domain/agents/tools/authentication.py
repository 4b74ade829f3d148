"""Turns a tool's auth_config into the headers, parameters or login that a request carries."""

from collections.abc import Awaitable

from app.crypto.keyring import CannotOpen
from app.domain.agents.vault.api import (
    ApiKeySecrets,
    BasicAuthSecrets,
    BearerTokenSecrets,
    DatabaseSecrets,
    DecryptedCredential,
    OAuth2Secrets,
    TokenRefresher,
    secret_texts,
    unseal_for,
)
from app.domain.agents.vault.errors import AccessDenied, TokenRefused
from app.net.http_auth import basic, bearer
from app.services import Services

from .auth_configs import (
    AUTH_TYPES,
    ApiKeyAuth,
    AuthConfig,
    BasicAuth,
    BearerAuth,
    CredentialAuth,
    CustomAuth,
    OAuth2Auth,
)
from .client_tokens import ClientTokens
from .configs import destination_host
from .errors import AuthDestinationMismatch, ToolFailed
from .executors.protocol import Auth, DatabaseLogin
from .run_plan import RunPlan

_PAIR = 2


async def resolve_auth(services: Services, tenant_id: str, plan: RunPlan) -> Auth:
    """Returns the auth for one run. Raises ToolFailed with `auth_failed` when there is none."""
    config = _open_auth_config(services, plan)
    host = destination_host(plan.config, services.egress.guard)
    if plan.auth_type == "none":
        return Auth()
    if config is None:
        raise ToolFailed("auth_failed", "the tool has no auth_config; set it with PUT")
    try:
        if isinstance(config, CredentialAuth):
            credential = await unseal_for(
                services, tenant_id, config.credential_id, plan.integration, host
            )
            return await _credential_auth(services, plan.auth_type, config, credential)
        return await _own_auth(services, config)
    except (AccessDenied, TokenRefused) as error:
        raise ToolFailed("auth_failed", str(error)) from error


def _open_auth_config(services: Services, plan: RunPlan) -> AuthConfig | None:
    try:
        return plan.open_auth_config(services.keyring, services.egress.guard)
    except AuthDestinationMismatch as error:
        message = "the auth_config was given for another host; set it again"
        raise ToolFailed("auth_failed", message) from error
    except CannotOpen as error:
        message = "the auth_config cannot be decrypted; set it again"
        raise ToolFailed("auth_failed", message) from error


async def _own_auth(services: Services, config: AuthConfig, rejected: str | None = None) -> Auth:
    match config:
        case ApiKeyAuth():
            return _api_key_auth(
                config.api_key_value, config.api_key_header, config.api_key_location
            )
        case BasicAuth():
            return _basic_auth(config.username, config.password)
        case BearerAuth():
            return Auth(bearer(config.token), secrets=[config.token])
        case CustomAuth():
            return _header_auth(config.headers)
        case OAuth2Auth():
            token = await services.get(ClientTokens).get_token(config, rejected=rejected)

            async def renew() -> Auth:
                return await _await_renewal(_own_auth(services, config, token))

            return Auth(bearer(token), secrets=[token, config.client_secret], renew=renew)
    raise ToolFailed("auth_failed", "the auth_config cannot be used")


async def _await_renewal(renewal: Awaitable[Auth]) -> Auth:
    """Reports a token endpoint that refuses as `auth_failed`, like every other refusal."""
    try:
        return await renewal
    except TokenRefused as error:
        raise ToolFailed("auth_failed", str(error)) from error


async def _credential_auth(
    services: Services, auth_type: str, config: CredentialAuth, credential: DecryptedCredential
) -> Auth:
    if credential.type not in AUTH_TYPES[auth_type].credential_types:
        message = f"a credential of type {credential.type} does not fit the auth_type {auth_type}"
        raise ToolFailed("auth_failed", message)
    secrets, texts = credential.secrets, secret_texts(credential.secrets)
    match secrets:
        case ApiKeySecrets():
            return _api_key_auth(secrets.api_key, config.api_key_header, config.api_key_location)
        case BasicAuthSecrets():
            return _basic_auth(secrets.username, secrets.password)
        case BearerTokenSecrets():
            return Auth(bearer(secrets.token), secrets=texts)
        case DatabaseSecrets():
            return Auth(secrets=texts, login=_database_login(secrets))
        case OAuth2Secrets():
            return await _oauth2_auth(services, credential, None)
        case dict():
            return _header_auth(secrets)
    raise ToolFailed("auth_failed", f"tools cannot use credentials of type {credential.type}")


async def _oauth2_auth(
    services: Services, credential: DecryptedCredential, rejected: str | None
) -> Auth:
    fresh = await services.get(TokenRefresher).get_fresh_secrets(
        credential, rejected_token=rejected
    )

    async def renew() -> Auth:
        return await _await_renewal(_oauth2_auth(services, credential, fresh.access_token))

    return Auth(bearer(fresh.access_token), secrets=secret_texts(fresh), renew=renew)


def _api_key_auth(value: str, name: str, location: str) -> Auth:
    if location == "query":
        return Auth(params={name: value}, secrets=[value])
    return _header_auth({name: value})


def _header_auth(headers: dict[str, str]) -> Auth:
    """In a value like `Token abc`, the second word alone is a secret too."""
    values = list(headers.values())
    words = [value.split() for value in values]
    second_words = [pair[1] for pair in words if len(pair) == _PAIR]
    return Auth(dict(headers), secrets=[*values, *second_words])


def _basic_auth(username: str, password: str) -> Auth:
    headers = basic(username, password)
    secrets = [password, headers["Authorization"].partition(" ")[2]]
    return Auth(headers, secrets=secrets, login=DatabaseLogin(username, password))


def _database_login(secrets: DatabaseSecrets) -> DatabaseLogin:
    return DatabaseLogin(
        secrets.username,
        secrets.password,
        secrets.host,
        secrets.port,
        secrets.database,
        secrets.engine,
        secrets.ssl_mode,
    )
