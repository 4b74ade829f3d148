"""Connection URLs of Postgres, with the parameters that libpq defines for them."""

import os
import re
import ssl
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote, urlencode, urlsplit

# SQLAlchemy's name for the driver; everything else is an argument of `asyncpg.connect`.
DRIVER: Final = "postgresql+asyncpg://"
_TLS_VERSIONS = ("TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3")
_SCHEMES = ("postgresql", "postgres", "postgresql+asyncpg")
_VALUES: dict[str, tuple[str, ...]] = {
    "sslmode": ("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
    "sslnegotiation": ("postgres", "direct"),
    "sslsni": ("1",),
    "ssl_min_protocol_version": _TLS_VERSIONS,
    "ssl_max_protocol_version": _TLS_VERSIONS,
    "target_session_attrs": (
        *("any", "read-write", "read-only", "primary", "standby", "prefer-standby"),
    ),
    "channel_binding": ("disable", "prefer", "require"),
    # asyncpg speaks UTF-8, has no GSSAPI encryption, and tries hosts in their order.
    "client_encoding": ("UTF8", "utf8", "UTF-8", "utf-8", "auto"),
    "gssencmode": ("disable", "prefer"),
    "load_balance_hosts": ("disable",),
    "sslcompression": ("0",),
}
_FILES = ("sslrootcert", "sslcert", "sslkey", "sslcrl")
_OF_DRIVER = frozenset(
    {
        *("host", "port", "user", "password", "dbname", "passfile"),
        *("sslmode", "sslnegotiation", "sslpassword", *_FILES),
        *("ssl_min_protocol_version", "ssl_max_protocol_version", "target_session_attrs"),
    }
)
# Where the system's authorities are trusted: what the TLS context is built of, and what not.
_OF_CONTEXT = frozenset({"sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword"})
_NOT_OF_CONTEXT = frozenset({"sslcrl", "ssl_min_protocol_version", "ssl_max_protocol_version"})
_OF_SERVER = frozenset({"application_name", "fallback_application_name", "options"})
# Accepted without an effect: keepalives are those of the operating system.
_IGNORED = frozenset(
    {
        *("channel_binding", "client_encoding", "gssencmode", "load_balance_hosts"),
        *("sslcompression", "sslsni", "tcp_user_timeout"),
        *("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count"),
    }
)
_KNOWN = _OF_DRIVER | _OF_SERVER | _IGNORED | {"connect_timeout"}
_NAME = re.compile(r"[a-z_]{1,40}")
_NO_PARAMETER: Final = "has a part after ? that is no parameter: write ? as %3F in a password"
_MIN_TIMEOUT_SECONDS = 2


def parse_url(url: str) -> dict[str, Any]:
    """Returns the arguments of `asyncpg.connect`. Raises ValueError with what cannot work, without
    the values of the URL, which are secret.
    """
    if url.partition("://")[0] not in _SCHEMES:
        raise ValueError(f"must start with {' or '.join(scheme + '://' for scheme in _SCHEMES)}")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ValueError("is not a valid URL") from None
    if parts.fragment:
        raise ValueError("is not a valid URL: write # as %23")
    if "@" in parts.path:
        raise ValueError("is not a valid URL: write / as %2F in a password")
    _check_hosts(parts.netloc)
    parameters = _parse_query(parts.query)
    if parameters.get("channel_binding") == "require":
        parameters = _require_certificate(parameters)
    arguments: dict[str, Any] = {}
    if "connect_timeout" in parameters:
        arguments["timeout"] = _parse_timeout(parameters["connect_timeout"])
    server_settings = {name: value for name, value in parameters.items() if name in _OF_SERVER}
    fallback_name = server_settings.pop("fallback_application_name", None)
    if fallback_name is not None:
        server_settings.setdefault("application_name", fallback_name)
    if server_settings:
        arguments["server_settings"] = server_settings
    parameters = {name: value for name, value in parameters.items() if name in _OF_DRIVER}
    _check_tls(parameters)
    if parameters.get("sslrootcert") == "system":
        arguments["ssl"] = _build_system_context(parameters)
        parameters = {name: text for name, text in parameters.items() if name not in _OF_CONTEXT}
    query = urlencode(parameters, quote_via=quote, safe="")
    arguments["dsn"] = f"postgresql://{parts.netloc}{parts.path}" + (f"?{query}" if query else "")
    return arguments


def _check_hosts(netloc: str) -> None:
    login, _, hosts = netloc.rpartition("@")
    if "@" in login:
        raise ValueError("is not a valid URL: write @ as %40 in the password")
    try:
        for host in hosts.split(","):
            _ = urlsplit(f"//{host}").port
    except ValueError:
        raise ValueError("is not a valid URL") from None


def _parse_query(query: str) -> dict[str, str]:
    parameters = {}
    for item in filter(None, query.split("&")):
        # Not `parse_qsl`: to libpq, a plus sign is no space.
        name, equals, value = (unquote(part) for part in item.partition("="))
        if name == "ssl":
            name, value = "sslmode", "require" if value == "true" else value
        if name not in _KNOWN:
            # With an unescaped ? in it, a part of the password stands here.
            is_name = equals and "@" not in query and _NAME.fullmatch(name)
            raise ValueError(_describe_unknown(name) if is_name else _NO_PARAMETER)
        _check_parameter(name, value)
        parameters[name] = value
    return parameters


def _describe_unknown(name: str) -> str:
    if name == "hostaddr":
        return "cannot have hostaddr, which the driver lacks: write the address as the host"
    return f"has the unknown parameter {name}"


def _check_parameter(name: str, value: str) -> None:
    if not value:
        raise ValueError(f"has the parameter {name} without a value")
    if name in _VALUES and value not in _VALUES[name]:
        raise ValueError(f"{name} must be one of {', '.join(_VALUES[name])}")
    if name == "port" and not all(_is_port(port) for port in value.split(",")):
        raise ValueError("port must be a number, or one for each host")
    is_system = (name, value) == ("sslrootcert", "system")
    if name in _FILES and not is_system and not Path(value).is_file():
        raise ValueError(f"{name} must be the path of a file that exists")


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdecimal() and 0 < int(text[:6]) <= 65535  # noqa: PLR2004


def _parse_timeout(value: str) -> int | None:
    """Returns seconds as libpq reads them: 0 waits without end, and the least is 2."""
    try:
        seconds = int(value)
    except ValueError:
        raise ValueError("connect_timeout must be whole seconds") from None
    return max(seconds, _MIN_TIMEOUT_SECONDS) if seconds > 0 else None


def _require_certificate(parameters: dict[str, str]) -> dict[str, str]:
    """Makes sure of the server by its certificate, because the driver has no channel binding."""
    mode = parameters.get("sslmode", "require")
    if mode not in {"require", "verify-full"}:
        raise ValueError(
            f"channel_binding=require cannot have sslmode={mode}: write sslmode=verify-full"
        )
    default_root = {} if _has_default_root() else {"sslrootcert": "system"}
    return {**default_root, **parameters, "sslmode": "verify-full"}


def _check_tls(parameters: dict[str, str]) -> None:
    mode, root = parameters.get("sslmode", ""), parameters.get("sslrootcert")
    if root == "system":
        if mode not in {"", "verify-full"}:
            raise ValueError("sslmode must be verify-full where sslrootcert is system")
        for name in parameters.keys() & _NOT_OF_CONTEXT:
            raise ValueError(f"cannot have {name} where sslrootcert is system")
    elif mode.startswith("verify-") and root is None and not _has_default_root():
        raise ValueError(f"sslmode={mode} needs sslrootcert: the path of a file, or system")


def _has_default_root() -> bool:
    default = Path("~/.postgresql/root.crt").expanduser()
    return "PGSSLROOTCERT" in os.environ or default.is_file()


def _build_system_context(parameters: dict[str, str]) -> ssl.SSLContext:
    """Trusts the authorities of the operating system, which asyncpg has no parameter for."""
    context = ssl.create_default_context()
    if "sslcert" in parameters:
        context.load_cert_chain(
            parameters["sslcert"], parameters.get("sslkey"), parameters.get("sslpassword")
        )
    return context
