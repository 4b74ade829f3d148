"""Settings: frozen, read once from PARLEY_* variables. Imports no domain."""

import hashlib
import ipaddress
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import quote, urlsplit

import msgspec

from app.kit import email_addresses
from db.url import parse_url

PREFIX = "PARLEY_"
# A socket's path has at most 103 characters on macOS; /.s.PGSQL.5432 is the longest name.
_MAX_RUN_DIR_BYTES = 85

_SCHEMES_WITH_HOST = {"http", "https", "redis", "rediss", "smtp", "smtps"}
_HOST = re.compile(r"(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_-]+)*\.?\Z")

_MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/+-]{0,199}\Z")

_OFF = "off"
_AUTO: Final = "auto"

Plan = Literal["free", "pro", "team", "enterprise"]
LogFormat = Literal["console", "json"]


class SettingsError(ValueError):
    """A variable has a wrong value. The message is one line that names it."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    data_dir: Path = Path("data")
    host: str = "127.0.0.1"
    port: int = 8000
    base_url: str = ""
    database_url: str = ""
    redis_url: str = ""
    lancedb_uri: str = ""
    files_uri: str = ""
    smtp_url: str = ""
    mail_from: str = "parley@localhost"
    master_keys: str = ""
    admin_email: str = "admin@example.com"
    admin_password: str = ""
    default_plan: Plan = "free"
    # "auto": while only this machine can reach the instance.
    allow_signup: bool | Literal["auto"] = _AUTO
    demo: bool = False
    egress_allow: tuple[str, ...] = ()
    searxng_url: str = ""
    webhook_retry_delays: tuple[int, ...] = (0, 60, 300, 1800, 7200, 28800, 86400)
    anonymous_per_minute: int = 300
    form_submissions_per_minute: int = 20
    form_upload_mb_per_day: int = 200
    trusted_proxies: tuple[str, ...] = ()
    connections_per_address: int = 256
    log_level: str = "info"
    log_format: LogFormat = "console"
    max_body_mb: int = 25
    body_memory_mb: int = 256
    max_file_mb: int = 100
    local_model: bool = True
    local_model_port: int = 0
    transcription_model: str = "local/moonshine"
    speech_model: str = "local/espeak"
    lease_seconds: float = 30.0
    pool_size: int = 20
    metrics_address: str = "127.0.0.1:9464"
    metrics_dir: str = ""
    sandbox_dir: Path | None = None
    # 0 turns it off.
    sandbox_min_free_mb: int = 256
    embedding_model: str = "local/wordllama"

    @property
    def sandbox_home(self) -> Path:
        """The folder of the interpreters for user code. The unprivileged user that runs such code
        must be able to reach it, which root's data directory often prevents.
        """
        if self.sandbox_dir is not None:
            return self.sandbox_dir
        return Path("/var/lib/parley/sandbox") if os.geteuid() == 0 else self.data_dir / "sandbox"

    @property
    def run_dir(self) -> Path:
        """The folder of sockets and pid files: in the data directory if the path is short enough
        for a socket, else in the temporary directory, named by a hash of the path.
        """
        run = self.data_dir / "run"
        if len(os.fsencode(run)) <= _MAX_RUN_DIR_BYTES:
            return run
        name = hashlib.sha256(str(run).encode()).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"parley-{os.getuid()}-{name}"

    @property
    def embedded_postgres(self) -> bool:
        return not self.database_url

    @property
    def embedded_redis(self) -> bool:
        return not self.redis_url

    @property
    def sqlalchemy_url(self) -> str:
        if self.embedded_postgres:
            return f"postgresql+asyncpg://parley@/parley?host={quote(str(self.run_dir))}"
        _, _, rest = self.database_url.partition("://")
        return f"postgresql+asyncpg://{rest}"

    @property
    def redis_address(self) -> str:
        return self.redis_url or f"unix://{self.run_dir / 'redis.sock'}"

    @property
    def metrics_listener(self) -> tuple[str, int] | None:
        """The host and port of a listener for metrics; None when there is none of its own."""
        if self.metrics_address == _OFF or self.has_metrics_on_web_port:
            return None
        return _split_address(self.metrics_address)

    @property
    def has_metrics_on_web_port(self) -> bool:
        is_on = self.metrics_address != _OFF
        return is_on and _split_address(self.metrics_address) == (self.host, self.port)

    @property
    def public_url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (self.base_url or f"http://{host}:{self.port}").rstrip("/")

    @property
    def is_signup_open(self) -> bool:
        """Whether people may register without an invitation."""
        if isinstance(self.allow_signup, bool):
            return self.allow_signup
        return is_loopback(self.host) and is_loopback(urlsplit(self.public_url).hostname or "")


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _text(value: str) -> str:
    return value


def _email(value: str) -> str:
    try:
        return email_addresses.normalize(value)
    except ValueError:
        raise ValueError("must be an e-mail address") from None


def _path(value: str) -> Path:
    return Path(value).expanduser().absolute()


def _flag(value: str) -> bool:
    words = {"true": True, "on": True, "1": True, "yes": True}
    words |= {"false": False, "off": False, "0": False, "no": False}
    try:
        return words[value.lower()]
    except KeyError:
        raise ValueError("must be true or false") from None


def _flag_or_auto(value: str) -> bool | str:
    try:
        return _AUTO if value.lower() == _AUTO else _flag(value)
    except ValueError:
        raise ValueError("must be true, false or auto") from None


def _int(low: int, high: int) -> Callable[[str], int]:
    def parse(value: str) -> int:
        try:
            number = int(value)
        except ValueError:
            raise ValueError("must be a whole number") from None
        if not low <= number <= high:
            raise ValueError(f"must be from {low} to {high}")
        return number

    return parse


def _seconds(value: str) -> float:
    number = float(value)
    if not 0 < number <= 3600:  # noqa: PLR2004
        raise ValueError("must be seconds, more than 0, at most 3600")
    return number


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if value.lower() not in words:
            raise ValueError(f"must be one of {', '.join(words)}")
        return value.lower()

    return parse


def _list(value: str) -> tuple[str, ...]:
    return tuple(filter(None, (item.strip() for item in value.split(","))))


def _hosts(value: str) -> tuple[str, ...]:
    """Host names, `*.` suffixes, addresses and networks."""
    items = _list(value)
    for item in items:
        try:
            ipaddress.ip_network(item, strict=False)
        except ValueError:
            if not _HOST.match(item):
                raise ValueError(f"{item!r} is no host, address or network") from None
    return items


def _networks(value: str) -> tuple[str, ...]:
    items = _list(value)
    for item in items:
        try:
            ipaddress.ip_network(item, strict=False)
        except ValueError:
            raise ValueError(f"{item!r} is no address or network") from None
    return items


def _split_address(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _address_or_off(value: str) -> str:
    if value.lower() == _OFF:
        return _OFF
    try:
        host, port = _split_address(value)
    except ValueError:
        host, port = "", 0
    is_bare_ipv6 = ":" in host and not value.startswith("[")
    if not host or is_bare_ipv6 or not 1 <= port <= 65535:  # noqa: PLR2004
        raise ValueError("must be an address and a port, like 127.0.0.1:9464 or [::1]:9464, or off")
    return value


def _delays(value: str) -> tuple[int, ...]:
    try:
        delays = tuple(int(item) for item in _list(value))
    except ValueError:
        raise ValueError("must be whole seconds, separated by commas") from None
    if not delays or min(delays) < 0:
        raise ValueError("must be at least one delay, none below 0")
    return delays


def _url(*schemes: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        try:
            url = urlsplit(value)
            _ = url.port
        except ValueError:
            raise ValueError("is not a valid URL") from None
        if url.scheme not in schemes:
            raise ValueError(f"must start with {' or '.join(s + '://' for s in schemes)}")
        if not url.hostname and url.scheme in _SCHEMES_WITH_HOST:
            raise ValueError("names no host")
        return value

    return parse


def _model_name(value: str) -> str:
    if not _MODEL_NAME.match(value):
        raise ValueError("must be the name of a model, like openai/text-embedding-3-small")
    return value


def _plain_url(value: str) -> str:
    """The address of a service that needs no login, without a trailing slash."""
    url = urlsplit(_url("http", "https")(value))
    if url.username is not None or url.password is not None:
        raise ValueError("must have no user name and no password")
    if url.query or url.fragment:
        raise ValueError("must not have a query or a fragment")
    return value.rstrip("/")


def _model(embedded: str, hosted: str) -> Callable[[str], str]:
    """The name of the embedded model, or of a provider's model."""

    def parse(value: str) -> str:
        is_other_local = value.startswith("local/") and value != embedded
        if is_other_local or not value.partition("/")[2] or not _MODEL_NAME.match(value):
            raise ValueError(f"must be {embedded} or a provider's model, like {hosted}")
        return value

    return parse


def _database_url(value: str) -> str:
    parse_url(value)
    return value


_PARSERS: dict[str, Callable[[str], Any]] = {
    "data_dir": _path,
    "host": _text,
    "port": _int(1, 65535),
    "base_url": _url("http", "https"),
    "database_url": _database_url,
    "redis_url": _url("redis", "rediss", "unix"),
    "lancedb_uri": _text,
    "files_uri": _text,
    "smtp_url": _url("smtp", "smtps"),
    "mail_from": _text,
    "master_keys": _text,
    "admin_email": _email,
    "admin_password": _text,
    "default_plan": _one_of("free", "pro", "team", "enterprise"),
    "allow_signup": _flag_or_auto,
    "demo": _flag,
    "egress_allow": _hosts,
    "searxng_url": _plain_url,
    "webhook_retry_delays": _delays,
    "anonymous_per_minute": _int(1, 1_000_000),
    "form_submissions_per_minute": _int(1, 1_000_000),
    "form_upload_mb_per_day": _int(1, 1_048_576),
    "trusted_proxies": _networks,
    "connections_per_address": _int(1, 1_000_000),
    "log_level": _one_of("debug", "info", "warning", "error"),
    "log_format": _one_of("console", "json"),
    "max_body_mb": _int(1, 1024),
    "body_memory_mb": _int(16, 1_048_576),
    "max_file_mb": _int(1, 10_240),
    "local_model": _flag,
    "local_model_port": _int(0, 65535),
    "transcription_model": _model("local/moonshine", "openai/whisper-1"),
    "speech_model": _model("local/espeak", "openai/tts-1"),
    "lease_seconds": _seconds,
    "pool_size": _int(1, 500),
    "metrics_address": _address_or_off,
    "metrics_dir": _text,
    "sandbox_dir": _path,
    "sandbox_min_free_mb": _int(0, 1_048_576),
    "embedding_model": _model_name,
}


def load(env: Mapping[str, str] | None = None, **defaults: Any) -> Settings:
    """Reads the environment. `defaults` replace variables that are not set."""
    env = os.environ if env is None else env
    values: dict[str, Any] = {"data_dir": _path("data"), **defaults}
    for name, parse in _PARSERS.items():
        variable = PREFIX + name.upper()
        text = env.get(variable, "").strip()
        if not text:
            continue
        try:
            values[name] = parse(text)
        except ValueError as error:
            is_secret = variable.endswith(("_PASSWORD", "_KEYS", "_URL", "_URI"))
            value = "" if is_secret else f"={text!r}"
            raise SettingsError(f"{variable}{value}: {error}") from None
    return Settings(**values)


def as_env(settings: Settings) -> dict[str, str]:
    """Returns the variables with which a child process loads the same settings."""
    env = {}
    for name in _PARSERS:
        value = getattr(settings, name)
        if isinstance(value, tuple):
            value = ",".join(map(str, value))
        elif isinstance(value, bool):
            value = "true" if value else "false"
        if value is not None and str(value):
            env[PREFIX + name.upper()] = str(value)
    return env
