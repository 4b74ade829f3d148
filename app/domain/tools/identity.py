"""Turning a tool's auth_config into what is sent: the one place where it is opened."""

from app.domain.tools.auths import (
    AUTHS,
    ApiKeyAuth,
    AuthConfig,
    BasicAuth,
    BearerAuth,
    CredentialAuth,
    CustomAuth,
    OAuth2Auth,
)
from app.domain.tools.client_tokens import ClientTokens
from app.domain.tools.executors.protocol import Auth, Login, ToolFailed
from app.domain.vault.errors import AccessDenied, TokenRefused
from app.domain.vault.service import (
    ApiKeySecrets,
    BasicAuthSecrets,
    BearerTokenSecrets,
    CredentialUser,
    DatabaseSecrets,
    DecryptedCredential,
    OAuth2Secrets,
    TokenRefresher,
    secret_texts,
    unseal_for,
)
from app.kit.http_auth import basic, bearer
from app.services import Services

_PAIR = 2


async def auth_of(
    services: Services,
    tenant_id: str,
    auth_type: str,
    config: AuthConfig | None,
    user: CredentialUser,
    host: str,
) -> Auth:
    """`user` is whom a rule of the credential must name, `host` where it is to be shown."""
    if auth_type == "none":
        return Auth()
    if config is None:
        raise ToolFailed("auth_failed", "the tool has no auth_config; set it with PUT")
    try:
        if isinstance(config, CredentialAuth):
            opened = await unseal_for(services, tenant_id, config.credential_id, user)
            _check_host(opened, host)
            return await _of_credential(services, auth_type, config, opened)
        return await _own(services, config)
    except AccessDenied as error:
        raise ToolFailed("auth_failed", str(error)) from error
    except TokenRefused as error:
        raise ToolFailed("auth_failed", str(error)) from error


def _check_host(opened: DecryptedCredential, host: str) -> None:
    """A credential may say where it goes; a login of a database says so itself."""
    allowed = opened.metadata.get("allowed_hosts")
    if allowed is None or (not host and isinstance(opened.secrets, DatabaseSecrets)):
        return
    if host not in {str(name).lower().rstrip(".") for name in allowed}:
        said = f"{host} is not among the allowed_hosts of the credential"
        raise ToolFailed("auth_failed", said)


async def _own(services: Services, config: AuthConfig, refused: str | None = None) -> Auth:
    match config:
        case ApiKeyAuth():
            return _api_key(config.api_key_value, config.api_key_header, config.api_key_location)
        case BasicAuth():
            return _basic(config.username, config.password)
        case BearerAuth():
            return Auth(bearer(config.token), hidden=[config.token])
        case CustomAuth():
            return _headers(config.headers)
        case OAuth2Auth():
            token = await services.get(ClientTokens).fresh(config, refused=refused)

            async def again() -> Auth:
                return await _renewed(_own(services, config, token))

            return Auth(bearer(token), hidden=[token, config.client_secret], renew=again)
    raise ToolFailed("auth_failed", "the auth_config cannot be used")


async def _renewed(asked: object) -> Auth:
    """A token endpoint that refuses is told like any other refusal."""
    try:
        found: Auth = await asked  # type: ignore[misc]
    except TokenRefused as error:
        raise ToolFailed("auth_failed", str(error)) from error
    return found


async def _of_credential(
    services: Services, auth_type: str, config: CredentialAuth, opened: DecryptedCredential
) -> Auth:
    if opened.type not in AUTHS[auth_type].credentials:
        said = f"a credential of type {opened.type} does not fit the auth_type {auth_type}"
        raise ToolFailed("auth_failed", said)
    secrets, hidden = opened.secrets, secret_texts(opened.secrets)
    match secrets:
        case ApiKeySecrets():
            return _api_key(secrets.api_key, config.api_key_header, config.api_key_location)
        case BasicAuthSecrets():
            return _basic(secrets.username, secrets.password)
        case BearerTokenSecrets():
            return Auth(bearer(secrets.token), hidden=hidden)
        case DatabaseSecrets():
            return Auth(hidden=hidden, login=_login(secrets))
        case OAuth2Secrets():
            return await _token(services, opened, None)
        case dict():
            return _headers(secrets)
    raise ToolFailed("auth_failed", f"tools cannot use credentials of type {opened.type}")


async def _token(services: Services, opened: DecryptedCredential, refused: str | None) -> Auth:
    fresh = await services.get(TokenRefresher).fresh(opened, refused=refused)

    async def again() -> Auth:
        return await _renewed(_token(services, opened, fresh.access_token))

    return Auth(bearer(fresh.access_token), hidden=secret_texts(fresh), renew=again)


def _api_key(value: str, name: str, location: str) -> Auth:
    if location == "query":
        return Auth(params={name: value}, hidden=[value])
    return _headers({name: value})


def _headers(given: dict[str, str]) -> Auth:
    """Of `Token abc` whoever reads it may repeat the second word alone."""
    values = list(given.values())
    words = [value.split() for value in values]
    return Auth(dict(given), hidden=[*values, *(pair[1] for pair in words if len(pair) == _PAIR)])


def _basic(username: str, password: str) -> Auth:
    headers = basic(username, password)
    hidden = [password, headers["Authorization"].partition(" ")[2]]
    return Auth(headers, hidden=hidden, login=Login(username, password))


def _login(secrets: DatabaseSecrets) -> Login:
    return Login(
        secrets.username,
        secrets.password,
        secrets.host,
        secrets.port,
        secrets.database,
        secrets.engine,
        secrets.ssl_mode,
    )
