"""Tests a credential with a real login, handshake, token request or HTTP request, by its type."""

import asyncio
import importlib
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import aiomysql
import asyncpg
import msgspec

from app.domain.platform.events import api as events
from app.kit import clock
from app.kit.errors import Invalid
from app.kit.texts import storable
from app.kit.views import TestResult
from app.net import databases, smtp
from app.net.egress import EgressError, custom_headers
from app.net.failures import describe_failure
from app.net.http_auth import basic, bearer
from app.net.redaction import Redactor
from app.net.smtp import SmtpFailed, SmtpServer
from app.sandbox import child_process
from app.sandbox.child_process import Limits, ProcessFailed
from app.security.principal import Principal
from app.services import Services

from . import audit, queries, service
from .audit import Actor
from .decrypted import decrypt_secrets
from .errors import ConnectionTestFailed, TokenRefused
from .events import CredentialInvalid
from .oauth import TokenRefresher
from .types import (
    ApiKeySecrets,
    BasicAuthSecrets,
    BearerTokenSecrets,
    CustomSecrets,
    DatabaseSecrets,
    OAuth2Secrets,
    SmtpSecrets,
    SshSecrets,
    secret_texts,
)

_TIMEOUT_SECONDS = 15.0
_KEY_SCRIPT = Path(__file__).with_name("ssh_key_child.py")
_KEY_LIMITS = Limits(seconds=_TIMEOUT_SECONDS, cpu_seconds=6)
_MAX_VERSION_CHARS = 200
_SUCCESS_STATUSES = range(200, 300)


class ConnectionTest(msgspec.Struct, frozen=True):
    services: Services
    tenant_id: str
    credential_id: str
    secrets: Any
    metadata: dict[str, Any]


async def run(
    services: Services, principal: Principal, address: str, credential_id: str
) -> TestResult:
    """Runs the test and stores its result. No transaction is open during the test."""
    async with services.db.tx(principal.scope, autocommit=True) as tx:
        credential = await service.find(tx, credential_id)
        tenant_id, type_ = credential.tenant_id, credential.type
        sealed_secrets, version = credential.secrets, credential.secrets_version
        metadata = credential.about
    secrets = decrypt_secrets(services.keyring, tenant_id, credential_id, type_, sealed_secrets)
    test = ConnectionTest(services, tenant_id, credential_id, secrets, metadata)
    start = time.perf_counter()
    try:
        async with services.outbound_limit.hold(tenant_id), asyncio.timeout(_TIMEOUT_SECONDS):
            message, success = await _TESTS[type_](test), True
    except ConnectionTestFailed as error:
        message, success = str(error), False
    except EgressError as error:
        message, success = f"no connection: {error}", False
    except TimeoutError:
        message, success = f"no answer within {_TIMEOUT_SECONDS:g} s", False
    latency_ms = round((time.perf_counter() - start) * 1000)
    result = TestResult(success, message, latency_ms, clock.now())
    actor = Actor(principal.kind, principal.user_id, address)
    await _store_result(services, tenant_id, credential_id, version, result, actor)
    return result


async def _store_result(
    services: Services,
    tenant_id: str,
    credential_id: str,
    version: int,
    result: TestResult,
    actor: Actor,
) -> None:
    async with services.db.tx(tenant_id) as tx:
        still_exists = await queries.mark_tested(
            tx, tenant_id, credential_id, result.tested_at, version, success=result.success
        )
        if not still_exists:
            return
        if not result.success:
            credential = await queries.mark_invalid(tx, tenant_id, credential_id, version)
            if credential is not None:
                invalid = CredentialInvalid(
                    credential_id, credential["name"], credential["type"], result.message
                )
                await events.emit(tx, invalid, tenant_id=tenant_id)
        await audit.append_entry(
            tx, services.keyring, tenant_id, credential_id, "tested", actor, success=result.success
        )


async def _test_http(test: ConnectionTest, headers: dict[str, str]) -> str:
    url = test.metadata.get("test_url")
    if not isinstance(url, str):
        raise Invalid.field(
            "metadata.test_url", "is required: a URL that answers 2xx only to valid secrets"
        )
    sendable = custom_headers(headers)
    dropped = [name for name in headers if name not in sendable]
    if dropped:
        # The response to a request without the header would not test the secret.
        raise ConnectionTestFailed(f"this cannot be sent as a header: {dropped[0][:100]}")
    async with test.services.egress.open(
        "GET", url, headers=sendable, timeout_seconds=_TIMEOUT_SECONDS
    ) as response:
        status = response.status
    if status not in _SUCCESS_STATUSES:
        raise ConnectionTestFailed(f"the address answered {status}")
    return f"The address answered {status}"


async def _test_api_key(test: ConnectionTest) -> str:
    secrets: ApiKeySecrets = test.secrets
    header = test.metadata.get("header")
    name = header if isinstance(header, str) and header else "X-API-Key"
    return await _test_http(test, {name: secrets.api_key})


async def _test_basic(test: ConnectionTest) -> str:
    secrets: BasicAuthSecrets = test.secrets
    return await _test_http(test, basic(secrets.username, secrets.password))


async def _test_bearer(test: ConnectionTest) -> str:
    secrets: BearerTokenSecrets = test.secrets
    return await _test_http(test, bearer(secrets.token))


async def _test_custom(test: ConnectionTest) -> str:
    secrets: CustomSecrets = test.secrets
    return await _test_http(test, secrets)


async def _test_oauth2(test: ConnectionTest) -> str:
    """Stores the new token: a server with single-use refresh tokens rejects the old one."""
    secrets: OAuth2Secrets = test.secrets
    try:
        await test.services.get(TokenRefresher).renew_token(
            test.tenant_id, test.credential_id, secrets.access_token
        )
    except TokenRefused as error:
        raise ConnectionTestFailed(str(error)) from error
    return "The token endpoint issued a token"


async def _test_database(test: ConnectionTest) -> str:
    secrets: DatabaseSecrets = test.secrets
    login = databases.Login(
        engine=secrets.engine,
        host=secrets.host,
        port=secrets.port,
        database=secrets.database,
        username=secrets.username,
        password=secrets.password,
        ssl_mode=secrets.ssl_mode,
    )
    try:
        version = await databases.read_server_version(
            test.services.egress.guard, login, _TIMEOUT_SECONDS
        )
    except OSError as error:
        failure = describe_failure(error, secrets.host, secrets.port)
        raise ConnectionTestFailed(failure) from error
    except (asyncpg.PostgresError, aiomysql.Error) as error:
        if isinstance(error.__cause__, OSError):
            failure = describe_failure(error.__cause__, secrets.host, secrets.port)
            raise ConnectionTestFailed(failure) from error
        raise ConnectionTestFailed(f"the login failed: {type(error).__name__}") from error
    # A server says what it likes about itself.
    version = Redactor(secret_texts(secrets)).text(version, _MAX_VERSION_CHARS)
    return f"Logged in: {storable(version)}"


async def _test_smtp(test: ConnectionTest) -> str:
    secrets: SmtpSecrets = test.secrets
    server = SmtpServer.at_port(
        secrets.host, secrets.port, secrets.username, secrets.password, use_tls=secrets.use_tls
    )
    guard = test.services.egress.guard
    try:
        async with smtp.connect(server, guard=guard, timeout_seconds=_TIMEOUT_SECONDS) as client:
            await client.noop()
    except SmtpFailed as error:
        raise ConnectionTestFailed(str(error)) from error
    return "The mail server accepted the login" if secrets.username else "The mail server answered"


async def _test_ssh(test: ConnectionTest) -> str:
    # The import takes about a second; a thread keeps the event loop free.
    asyncssh = await asyncio.to_thread(importlib.import_module, "asyncssh")
    secrets: SshSecrets = test.secrets
    address = await test.services.egress.guard.resolve_host(secrets.host, secrets.port)
    try:
        key = asyncssh.import_private_key(await _read_private_key(secrets))
    except (
        asyncssh.KeyImportError,
        asyncssh.KeyEncryptionError,
        ValueError,
        ProcessFailed,
    ) as error:
        raise ConnectionTestFailed(
            "the private key cannot be read; is the passphrase right?"
        ) from error
    try:
        async with asyncssh.connect(
            address,
            secrets.port,
            username=secrets.username,
            client_keys=[key],
            known_hosts=_build_known_hosts(secrets),
            agent_path=None,
            config=None,
            preferred_auth="publickey",
            login_timeout=_TIMEOUT_SECONDS,
        ):
            pass
    except asyncssh.HostKeyNotVerifiable as error:
        raise ConnectionTestFailed("the server has a different host key") from error
    except asyncssh.PermissionDenied as error:
        raise ConnectionTestFailed("the server rejected this key") from error
    except OSError as error:
        failure = describe_failure(error, secrets.host, secrets.port)
        raise ConnectionTestFailed(failure) from error
    except (asyncssh.Error, ValueError, LookupError) as error:
        # ValueError and LookupError: the server does not speak SSH.
        raise ConnectionTestFailed(f"no session with the server: {type(error).__name__}") from error
    return "Handshake and login worked" + ("" if secrets.host_key else "; set host_key to pin it")


async def _read_private_key(secrets: SshSecrets) -> str:
    """Returns the key in one simple format. The many others are read in a child process."""
    request = {"key": secrets.private_key, "passphrase": secrets.passphrase}
    private_key = await child_process.run(
        _KEY_SCRIPT, msgspec.json.encode(request), limits=_KEY_LIMITS
    )
    return private_key.decode()


def _build_known_hosts(secrets: SshSecrets) -> Any:
    import asyncssh

    if not secrets.host_key:
        return None
    try:
        key = asyncssh.import_public_key(secrets.host_key)
    except (asyncssh.KeyImportError, ValueError) as error:
        raise ConnectionTestFailed("host_key is not a public key") from error
    return ([key], [], [])


_TESTS: Final[dict[str, Callable[[ConnectionTest], Awaitable[str]]]] = {
    "api_key": _test_api_key,
    "oauth2": _test_oauth2,
    "basic_auth": _test_basic,
    "bearer_token": _test_bearer,
    "database": _test_database,
    "ssh": _test_ssh,
    "smtp": _test_smtp,
    "custom": _test_custom,
}
