"""Trying a credential for real: a login, a handshake, a token, a request, by its type."""

import asyncio
import importlib
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import aiomysql
import aiosmtplib
import asyncpg
import msgspec

from app.domain.events import service as events
from app.domain.vault import audit, queries, service
from app.domain.vault.audit import Actor
from app.domain.vault.decrypted import decrypt_secrets
from app.domain.vault.errors import TokenRefused
from app.domain.vault.events import CredentialInvalid
from app.domain.vault.oauth import TokenRefresher
from app.domain.vault.schemas import TestResult
from app.domain.vault.types import (
    ApiKeySecrets,
    BasicAuthSecrets,
    BearerTokenSecrets,
    CustomSecrets,
    DatabaseSecrets,
    OAuth2Secrets,
    SmtpSecrets,
    SshSecrets,
)
from app.kit import child_process, clock, databases
from app.kit.child_process import ProcessFailed
from app.kit.egress import EgressError, custom_headers
from app.kit.errors import Invalid
from app.kit.http_auth import basic, bearer
from app.security.principal import Principal
from app.services import Services

_SECONDS = 15.0
_UNLOCK = Path(__file__).with_name("ssh_key_child.py")
_UNLOCK_CPU_SECONDS = 6
_GOOD = range(200, 300)


class ConnectionTestFailed(Exception):
    """It did not work. The message is for people and holds no secret."""


class ConnectionTest(msgspec.Struct, frozen=True):
    services: Services
    tenant_id: str
    credential_id: str
    secrets: Any
    metadata: dict[str, Any]


async def run(
    services: Services, principal: Principal, address: str, credential_id: str
) -> TestResult:
    """No transaction is open while the other side is asked."""
    async with services.db.tx(principal.scope, autocommit=True) as tx:
        credential = await service.find(tx, credential_id)
        found = (credential.tenant_id, credential.id, credential.type, credential.secrets)
        version, metadata = credential.secrets_version, credential.about
    secrets = decrypt_secrets(services.keyring, *found)
    test = ConnectionTest(services, found[0], credential_id, secrets, metadata)
    started = time.perf_counter()
    try:
        async with services.outbound_limit.hold(found[0]), asyncio.timeout(_SECONDS):
            message, success = await _TRIALS[found[2]](test), True
    except ConnectionTestFailed as error:
        message, success = str(error), False
    except EgressError as error:
        message, success = f"no connection: {error}", False
    except TimeoutError:
        message, success = f"no answer within {_SECONDS:g} s", False
    took = round((time.perf_counter() - started) * 1000)
    result = TestResult(success, message, took, clock.now())
    actor = Actor("user", principal.user_id, address)
    await _keep(services, found[0], credential_id, version, result, actor)
    return result


async def _keep(
    services: Services,
    tenant_id: str,
    credential_id: str,
    version: int,
    result: TestResult,
    actor: Actor,
) -> None:
    async with services.db.tx(tenant_id) as tx:
        found = await queries.mark_tested(
            tx, tenant_id, credential_id, result.tested_at, version, success=result.success
        )
        if not found:
            return
        if not result.success:
            gone = await queries.invalidate(tx, tenant_id, credential_id, version)
            if gone is not None:
                told = CredentialInvalid(credential_id, gone["name"], gone["type"], result.message)
                await events.emit(tx, told, tenant_id=tenant_id)
        await audit.append(
            tx, services.keyring, tenant_id, credential_id, "tested", actor, success=result.success
        )


async def _http(test: ConnectionTest, headers: dict[str, str]) -> str:
    url = test.metadata.get("test_url")
    if not isinstance(url, str):
        raise Invalid.field(
            "metadata.test_url", "is needed: an address that answers 2xx to good secrets only"
        )
    sent = custom_headers(headers)
    lost = [name for name in headers if name not in sent]
    if lost:
        # An answer to a request without it would say nothing about it.
        raise ConnectionTestFailed(f"this cannot be sent as a header: {lost[0][:100]}")
    async with test.services.egress.open("GET", url, headers=sent, timeout_seconds=_SECONDS) as got:
        status = got.status
    if status not in _GOOD:
        raise ConnectionTestFailed(f"the address answered {status}")
    return f"The address answered {status}"


async def _api_key(test: ConnectionTest) -> str:
    secrets: ApiKeySecrets = test.secrets
    header = test.metadata.get("header")
    name = header if isinstance(header, str) and header else "X-API-Key"
    return await _http(test, {name: secrets.api_key})


async def _basic(test: ConnectionTest) -> str:
    secrets: BasicAuthSecrets = test.secrets
    return await _http(test, basic(secrets.username, secrets.password))


async def _bearer(test: ConnectionTest) -> str:
    secrets: BearerTokenSecrets = test.secrets
    return await _http(test, bearer(secrets.token))


async def _custom(test: ConnectionTest) -> str:
    secrets: CustomSecrets = test.secrets
    return await _http(test, secrets)


async def _oauth2(test: ConnectionTest) -> str:
    """The new token is kept: where refresh tokens are used once, the old one is gone."""
    secrets: OAuth2Secrets = test.secrets
    try:
        await test.services.get(TokenRefresher).renew(
            test.tenant_id, test.credential_id, secrets.access_token
        )
    except TokenRefused as error:
        raise ConnectionTestFailed(str(error)) from error
    return "The token endpoint gave a token"


async def _database(test: ConnectionTest) -> str:
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
        guard = test.services.egress.guard
        return f"Logged in: {await databases.read_server_version(guard, login, _SECONDS)}"
    except (asyncpg.PostgresError, aiomysql.Error, OSError) as error:
        raise ConnectionTestFailed(f"the login failed: {type(error).__name__}") from error


async def _smtp(test: ConnectionTest) -> str:
    secrets: SmtpSecrets = test.secrets
    address = await test.services.egress.guard.resolve_host(secrets.host, secrets.port)
    implicit = secrets.use_tls and secrets.port == 465  # noqa: PLR2004  # SMTP over TLS
    client = aiosmtplib.SMTP(
        hostname=address,
        port=secrets.port,
        use_tls=implicit,
        start_tls=secrets.use_tls and not implicit,
        tls_context=databases.named_context(secrets.host) if secrets.use_tls else None,
        timeout=_SECONDS,
    )
    try:
        async with client:
            if secrets.username:
                await client.login(secrets.username, secrets.password)
            await client.noop()
    except aiosmtplib.SMTPResponseException as error:
        raise ConnectionTestFailed(f"the mail server answered {error.code}") from error
    except (aiosmtplib.SMTPException, OSError) as error:
        raise ConnectionTestFailed(
            f"no session with the mail server: {type(error).__name__}"
        ) from error
    return "The mail server took the login" if secrets.username else "The mail server answers"


async def _ssh(test: ConnectionTest) -> str:
    # Large, and seldom needed: loading it takes a second that nobody else should wait for.
    asyncssh = await asyncio.to_thread(importlib.import_module, "asyncssh")
    secrets: SshSecrets = test.secrets
    address = await test.services.egress.guard.resolve_host(secrets.host, secrets.port)
    try:
        # A locked key says itself how much work it is to unlock.
        plain = await _unlocked(secrets) if secrets.passphrase else secrets.private_key
        key = asyncssh.import_private_key(plain)
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
            known_hosts=_known(secrets),
            agent_path=None,
            config=None,
            preferred_auth="publickey",
            login_timeout=_SECONDS,
        ):
            pass
    except asyncssh.HostKeyNotVerifiable as error:
        raise ConnectionTestFailed("the server shows another host key") from error
    except asyncssh.PermissionDenied as error:
        raise ConnectionTestFailed("the server does not take this key") from error
    except (asyncssh.Error, OSError, ValueError, LookupError) as error:
        # The last two: what answers does not speak SSH.
        raise ConnectionTestFailed(f"no session with the server: {type(error).__name__}") from error
    return "Handshake and login worked" + ("" if secrets.host_key else "; set host_key to pin it")


async def _unlocked(secrets: SshSecrets) -> str:
    given = {"key": secrets.private_key, "passphrase": secrets.passphrase}
    unlocked = await child_process.run(
        _UNLOCK, msgspec.json.encode(given), cpu_seconds=_UNLOCK_CPU_SECONDS
    )
    return unlocked.decode()


def _known(secrets: SshSecrets) -> Any:
    import asyncssh  # noqa: PLC0415

    if not secrets.host_key:
        return None
    try:
        key = asyncssh.import_public_key(secrets.host_key)
    except (asyncssh.KeyImportError, ValueError) as error:
        raise ConnectionTestFailed("host_key is no public key") from error
    return ([key], [], [])


_TRIALS: Final[dict[str, Callable[[ConnectionTest], Awaitable[str]]]] = {
    "api_key": _api_key,
    "oauth2": _oauth2,
    "basic_auth": _basic,
    "bearer_token": _bearer,
    "database": _database,
    "ssh": _ssh,
    "smtp": _smtp,
    "custom": _custom,
}
