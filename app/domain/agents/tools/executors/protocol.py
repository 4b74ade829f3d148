"""The protocol of executors. Each type of tool has one executor, in a file of its own."""

from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from app.domain.agents.tools.errors import ToolFailed
from app.net.egress import Egress, EgressError, custom_headers
from app.sandbox.box import Sandbox
from app.settings import Settings

C = TypeVar("C")

OUTPUT_BYTES = 1024 * 1024


class DatabaseLogin(msgspec.Struct, frozen=True):
    """A login for a database. A credential of the vault also names its server."""

    username: str
    password: str
    host: str | None = None
    port: int | None = None
    database: str | None = None
    engine: str | None = None
    ssl_mode: str | None = None


class Auth(msgspec.Struct, frozen=True):
    """What authenticates a request. `secrets` are the texts that no output may contain. `renew`
    returns a new auth after a server rejected the token.
    """

    headers: dict[str, str] = {}
    params: dict[str, str] = {}
    login: DatabaseLogin | None = None
    secrets: list[str] = []
    renew: Callable[[], Awaitable["Auth"]] | None = None


def record_renewed_secrets(auth: Auth, secrets: list[str]) -> Auth:
    """Returns the same auth, whose `renew` also adds the new secrets to `secrets`."""
    renew = auth.renew
    if renew is None:
        return auth

    async def renew_and_record() -> Auth:
        renewed = await renew()
        secrets.extend(renewed.secrets)
        return renewed

    return msgspec.structs.replace(auth, renew=renew_and_record)


class ExecutorEnvironment(msgspec.Struct, frozen=True):
    """The parts of the instance that an executor may use."""

    settings: Settings
    egress: Egress
    sandbox: Sandbox


class Task(msgspec.Struct, Generic[C], frozen=True):
    tenant_id: str
    config: C
    input: dict[str, Any]
    auth: Auth
    timeout_seconds: float


class Executor(Protocol[C]):
    async def __call__(self, task: Task[C], environment: ExecutorEnvironment) -> Any:
        """Returns the output as JSON values. Everything that it started has ended when it returns,
        also when it is cancelled because of its timeout.
        """
        ...


def egress_failure(error: EgressError) -> ToolFailed:
    return ToolFailed(error.code, str(error))


def require_http_auth(auth: Auth) -> Auth:
    """Returns the auth. Raises ToolFailed when HTTP cannot carry all of it."""
    if auth.login is not None and not auth.headers:
        raise ToolFailed("auth_failed", "a credential of type database cannot be sent over HTTP")
    allowed = custom_headers(auth.headers)
    forbidden = [name for name in auth.headers if name not in allowed]
    if forbidden:
        raise ToolFailed("auth_failed", f"this cannot be sent as a header: {forbidden[0][:100]}")
    return auth


def require_database_login(auth: Auth) -> DatabaseLogin | None:
    """Returns the login, None without auth. Raises ToolFailed for auth that is no login."""
    if auth.login is None and (auth.headers or auth.params):
        raise ToolFailed("auth_failed", "a database takes a user name and a password: use basic")
    return auth.login
