"""Settings: frozen, read once from PARLEY_* variables. Imports no domain."""

import hashlib
import ipaddress
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, urlsplit

import msgspec

from app.kit import spelling
from app.setting_parsers import (
    AUTO,
    OFF,
    parse_address_or_off,
    parse_database_url,
    parse_delays,
    parse_email,
    parse_flag,
    parse_flag_or_auto,
    parse_hosts,
    parse_int,
    parse_model,
    parse_model_name,
    parse_networks,
    parse_one_of,
    parse_path,
    parse_plain_url,
    parse_seconds,
    parse_text,
    parse_url,
    split_address,
)

PREFIX = "PARLEY_"
# A socket's path has at most 103 characters on macOS; /.s.PGSQL.5432 is the longest name.
_MAX_RUN_DIR_BYTES = 85


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
    allow_signup: bool | Literal["auto"] = AUTO
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
    sentence_encoders: bool = True
    # The names of those that the environment has set, for those who look at settings.
    set_names: frozenset[str] = frozenset()

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
        if self.metrics_address == OFF or self.has_metrics_on_web_port:
            return None
        return split_address(self.metrics_address)

    @property
    def has_metrics_on_web_port(self) -> bool:
        is_on = self.metrics_address != OFF
        return is_on and split_address(self.metrics_address) == (self.host, self.port)

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


_PARSERS: dict[str, Callable[[str], Any]] = {
    "data_dir": parse_path,
    "host": parse_text,
    "port": parse_int(1, 65535),
    "base_url": parse_url("http", "https"),
    "database_url": parse_database_url,
    "redis_url": parse_url("redis", "rediss", "unix"),
    "lancedb_uri": parse_text,
    "files_uri": parse_text,
    "smtp_url": parse_url("smtp", "smtps"),
    "mail_from": parse_text,
    "master_keys": parse_text,
    "admin_email": parse_email,
    "admin_password": parse_text,
    "default_plan": parse_one_of("free", "pro", "team", "enterprise"),
    "allow_signup": parse_flag_or_auto,
    "demo": parse_flag,
    "egress_allow": parse_hosts,
    "searxng_url": parse_plain_url,
    "webhook_retry_delays": parse_delays,
    "anonymous_per_minute": parse_int(1, 1_000_000),
    "form_submissions_per_minute": parse_int(1, 1_000_000),
    "form_upload_mb_per_day": parse_int(1, 1_048_576),
    "trusted_proxies": parse_networks,
    "connections_per_address": parse_int(1, 1_000_000),
    "log_level": parse_one_of("debug", "info", "warning", "error"),
    "log_format": parse_one_of("console", "json"),
    "max_body_mb": parse_int(1, 1024),
    "body_memory_mb": parse_int(16, 1_048_576),
    "max_file_mb": parse_int(1, 10_240),
    "local_model": parse_flag,
    "local_model_port": parse_int(0, 65535),
    "transcription_model": parse_model("local/moonshine", "openai/whisper-1"),
    "speech_model": parse_model("local/espeak", "openai/tts-1"),
    "lease_seconds": parse_seconds,
    "pool_size": parse_int(1, 500),
    "metrics_address": parse_address_or_off,
    "metrics_dir": parse_text,
    "sandbox_dir": parse_path,
    "sandbox_min_free_mb": parse_int(0, 1_048_576),
    "embedding_model": parse_model_name,
    "sentence_encoders": parse_flag,
}


# Variables of the scripts of this repository, and those that Kubernetes sets for a service of this
# name.
_OTHER_VARIABLES = re.compile(
    r"PARLEY_(PASSED_ON|LONG_TESTS|TEST_PROCESSES|SCREENSHOTS|OPTIONAL|BENCH_CACHE|SERVICE_(HOST|PORT.*)|"
    r"PORT_\d+_.*)\Z"
)


# The settings of a parent process that nobody has set.
_PASSED_ON = "PARLEY_PASSED_ON"


def _check_names(env: Mapping[str, str]) -> None:
    for variable in sorted(env):
        name = variable.removeprefix(PREFIX).lower()
        if name == variable.lower() or name in _PARSERS or _OTHER_VARIABLES.match(variable):
            continue
        nearest = spelling.find_nearest(name, _PARSERS)
        hint = "docs/configuration.md lists the settings"
        if nearest:
            hint = f"did you mean {PREFIX}{nearest.upper()}?"
        raise SettingsError(f"{variable}: there is no such setting; {hint}")


def load(env: Mapping[str, str] | None = None, **defaults: Any) -> Settings:
    """Reads the environment. `defaults` replace variables that are not set."""
    env = os.environ if env is None else env
    _check_names(env)
    values: dict[str, Any] = {"data_dir": parse_path("data"), **defaults}
    passed_on = env.get(_PASSED_ON, "").split(",")
    set_names = set[str]()
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
        if name not in passed_on:
            set_names.add(name)
    return Settings(**values, set_names=frozenset(set_names))


@lru_cache
def load_descriptions() -> dict[str, dict[str, str]]:
    """Returns what the settings mean, by their group and name, as docs/configuration.md says."""
    path = Path(__file__).with_name("setting_descriptions.json")
    descriptions: dict[str, dict[str, str]] = msgspec.json.decode(path.read_bytes())
    return descriptions


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
    env[_PASSED_ON] = ",".join(name for name in _PARSERS if name not in settings.set_names)
    return env
