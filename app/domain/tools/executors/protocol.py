"""What an executor gets and gives. There is one per type of tool, a file each."""

from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from app.kit.egress import Egress, EgressError, custom_headers
from app.kit.sandbox.box import Sandbox
from app.settings import Settings

C = TypeVar("C")

OUTPUT_BYTES = 1024 * 1024


class ToolFailed(Exception):
    """A run that gave no result. `code` is one of the spec's; the message is for people.

    `output` is what came instead, where something did: the body of a refusal, say.
    """

    def __init__(self, code: str, message: str, output: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.output = output


class Login(msgspec.Struct, frozen=True):
    """For a database. A credential of the vault says itself where it belongs."""

    username: str
    password: str
    host: str | None = None
    port: int | None = None
    database: str | None = None
    engine: str | None = None
    ssl_mode: str | None = None


class Auth(msgspec.Struct, frozen=True):
    """What a tool shows to whom it calls. `renew` gives another, for a token that was refused."""

    headers: dict[str, str] = {}
    params: dict[str, str] = {}
    login: Login | None = None
    hidden: list[str] = []
    renew: Callable[[], Awaitable["Auth"]] | None = None


def noting(auth: Auth, secrets: list[str]) -> Auth:
    """The same, but a renewed token is noted: it is a secret that nobody else knows of yet."""
    renew = auth.renew
    if renew is None:
        return auth

    async def renewed() -> Auth:
        fresh = await renew()
        secrets.extend(fresh.hidden)
        return fresh

    return msgspec.structs.replace(auth, renew=renewed)


class Surroundings(msgspec.Struct, frozen=True):
    """What of the instance an executor may use."""

    settings: Settings
    egress: Egress
    sandbox: Sandbox


class Task(msgspec.Struct, Generic[C], frozen=True):
    tenant_id: str
    config: C
    input: dict[str, Any]
    auth: Auth
    seconds: float


class Executor(Protocol[C]):
    async def __call__(self, task: Task[C], around: Surroundings) -> Any:
        """The output, as JSON can hold it. Whatever it started has ended when it returns, also
        when it is cancelled because its time is up.
        """
        ...


def of_the_way(error: EgressError) -> ToolFailed:
    return ToolFailed(error.code, str(error))


def over_http(auth: Auth) -> Auth:
    """Nobody is called without the identity that the tool was given."""
    if auth.login is not None and not auth.headers:
        raise ToolFailed("auth_failed", "a credential of type database cannot be shown over HTTP")
    sent = custom_headers(auth.headers)
    lost = [name for name in auth.headers if name not in sent]
    if lost:
        raise ToolFailed("auth_failed", f"this cannot be sent as a header: {lost[0][:100]}")
    return auth


def over_sql(auth: Auth) -> Login | None:
    if auth.login is None and (auth.headers or auth.params):
        raise ToolFailed("auth_failed", "a database takes a user name and a password: use basic")
    return auth.login
