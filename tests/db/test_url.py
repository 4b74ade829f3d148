"""Connection URLs: which parameters work, and which are refused."""

import ssl
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from db.url import parse_url

BASE = "postgresql://parley:p%40ss@db:5433/x"


def test_every_scheme_is_accepted(subtests: pytest.Subtests) -> None:
    for scheme in ["postgres", "postgresql", "postgresql+asyncpg"]:
        with subtests.test(scheme=scheme):
            assert parse_url(f"{scheme}://parley:p%40ss@db:5433/x") == {"dsn": BASE}


_CASES: list[tuple[str, dict[str, Any]]] = [
    *(
        (f"sslmode={mode}", {"dsn": f"{BASE}?sslmode={mode}"})
        for mode in ("disable", "allow", "prefer", "require")
    ),
    ("ssl=true", {"dsn": f"{BASE}?sslmode=require"}),
    ("ssl=prefer", {"dsn": f"{BASE}?sslmode=prefer"}),
    ("sslnegotiation=direct", {"dsn": f"{BASE}?sslnegotiation=direct"}),
    (
        "target_session_attrs=read-write",
        {"dsn": f"{BASE}?target_session_attrs=read-write"},
    ),
    (
        "application_name=a%20b+c",
        {"dsn": BASE, "server_settings": {"application_name": "a b+c"}},
    ),
    (
        "options=-c%20search_path%3Da",
        {"dsn": BASE, "server_settings": {"options": "-c search_path=a"}},
    ),
    ("connect_timeout=10", {"dsn": BASE, "timeout": 10}),
    ("connect_timeout=1", {"dsn": BASE, "timeout": 2}),
    ("connect_timeout=0", {"dsn": BASE, "timeout": None}),
    ("channel_binding=prefer&gssencmode=disable&sslsni=1", {"dsn": BASE}),
    ("keepalives=1&keepalives_idle=30&keepalives_interval=5&keepalives_count=3", {"dsn": BASE}),
    ("tcp_user_timeout=0", {"dsn": BASE}),
    ("client_encoding=utf8&sslcompression=0", {"dsn": BASE}),
    (
        "fallback_application_name=a",
        {"dsn": BASE, "server_settings": {"application_name": "a"}},
    ),
    (
        "application_name=b&fallback_application_name=a",
        {"dsn": BASE, "server_settings": {"application_name": "b"}},
    ),
    ("", {"dsn": BASE}),
]


def test_a_parameter_reaches_the_driver(subtests: pytest.Subtests) -> None:
    for query, arguments in _CASES:
        with subtests.test(query=query, arguments=arguments):
            assert parse_url(f"{BASE}?{query}") == arguments


def test_hosts_and_logins_are_left_to_the_driver(subtests: pytest.Subtests) -> None:
    for url in [
        "postgresql://u@a,b:5433,c/x?target_session_attrs=primary",
        "postgresql://u@[::1]:5433,[::2]/x",
        "postgresql:///x?host=a%2Cb&port=5432%2C5433",
        "postgresql:///x?user=u&password=p&dbname=y&passfile=%2Fhome%2Fme%2Fpgpass",
        "postgresql://u@/x?host=%2Frun%2Fa%2Bb%26c",
    ]:
        with subtests.test(url=url):
            assert parse_url(url) == {"dsn": url}


def test_files_of_tls_reach_the_driver(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for mode in ["verify-ca", "verify-full"]:
        with subtests.test(mode=mode):
            path = tmp_path / "a b.pem"
            path.touch()
            names = ("sslrootcert", "sslcert", "sslkey", "sslcrl")
            query = "&".join(f"{name}={quote(str(path), safe='')}" for name in names)
            url = f"{BASE}?sslmode={mode}&{query}"
            assert parse_url(url) == {"dsn": url}


def test_the_authorities_of_the_system_can_be_trusted(subtests: pytest.Subtests) -> None:
    for mode in ["", "&sslmode=verify-full"]:
        with subtests.test(mode=mode):
            arguments = parse_url(f"{BASE}?sslrootcert=system{mode}&sslnegotiation=direct")
            context = arguments.pop("ssl")
            assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
            assert arguments == {"dsn": f"{BASE}?sslnegotiation=direct"}


def test_required_channel_binding_is_replaced_by_a_verified_certificate(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for mode in ["", "sslmode=require&", "sslmode=verify-full&"]:
        with subtests.test(mode=mode):
            monkeypatch.setenv("HOME", str(tmp_path))
            arguments = parse_url(f"{BASE}?{mode}channel_binding=require")
            context = arguments.pop("ssl")
            assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
            assert arguments == {"dsn": BASE}
            own = quote(__file__, safe="")
            with_root = parse_url(f"{BASE}?{mode}sslrootcert={own}&channel_binding=require")
            query = sorted(with_root["dsn"].partition("?")[2].split("&"))
            assert query == ["sslmode=verify-full", f"sslrootcert={own}"]


def test_an_error_shows_no_part_of_a_password(subtests: pytest.Subtests) -> None:
    for url in [
        "postgresql://u:12?Secret99@host/db",
        "postgresql://u:12?secret=99@host/db",
        "postgresql://u:12?a=b&secret@host/db",
        "postgresql://u:12?secret@host/db?sslmode=require",
        "postgresql://u:12/secret@host/db",
        f"{BASE}?Secret=1",
        f"{BASE}?secret",
    ]:
        with subtests.test(url=url):
            with pytest.raises(ValueError, match=r"write . as %(3F|2F) in a password") as raised:
                parse_url(url)
            assert "secret" not in str(raised.value).lower()


_URL_CASES: list[tuple[str, str]] = [
    (f"{BASE}?sslmod=require", "has the unknown parameter sslmod"),
    (f"{BASE}?sslmode=on", "sslmode must be one of disable, allow, prefer, require"),
    (f"{BASE}?ssl=maybe", "sslmode must be one of"),
    (f"{BASE}?sslmode=verify-full", "sslmode=verify-full needs sslrootcert"),
    (f"{BASE}?sslmode=verify-ca", "sslmode=verify-ca needs sslrootcert"),
    (f"{BASE}?sslrootcert=system&sslmode=require", "sslmode must be verify-full"),
    (f"{BASE}?sslrootcert=system&sslcrl={__file__}", "cannot have sslcrl"),
    (f"{BASE}?sslrootcert=/nowhere/ca.pem", "sslrootcert must be the path of a file"),
    (f"{BASE}?sslkey=/nowhere/key.pem", "sslkey must be the path of a file"),
    *(
        (f"{BASE}?channel_binding=require&sslmode={mode}", "write sslmode=verify-full")
        for mode in ("disable", "allow", "prefer", "verify-ca")
    ),
    (f"{BASE}?channel_binding=on", "channel_binding must be one of disable, prefer, require"),
    (f"{BASE}?hostaddr=10.0.0.1", "cannot have hostaddr"),
    (f"{BASE}?client_encoding=latin1", "client_encoding must be one of UTF8"),
    (f"{BASE}?sslcompression=1", "sslcompression must be one of 0"),
    (f"{BASE}?gssencmode=require", "gssencmode must be one of disable, prefer"),
    (f"{BASE}?target_session_attrs=master", "target_session_attrs must be one of"),
    (f"{BASE}?connect_timeout=soon", "connect_timeout must be whole seconds"),
    (f"{BASE}?port=a", "port must be"),
    (f"{BASE}?sslmode", "has the parameter sslmode without a value"),
    ("postgresql://db:port/x", "is not a valid URL"),
    ("postgresql://a:1,b:99999/x", "is not a valid URL"),
    ("postgresql://u:p@ss@db/x", "write @ as %40"),
    ("postgresql://u:p@db/x#y", "write # as %23"),
    ("postgresql://[::1/x", "is not a valid URL"),
    ("mysql://db/x", "must start with postgresql://"),
    ("db/x", "must start with postgresql://"),
]


def test_what_cannot_work_is_named(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for url, message in _URL_CASES:
        with subtests.test(url=url, message=message), pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setenv("HOME", str(tmp_path))
            with pytest.raises(ValueError, match=message) as raised:
                parse_url(url)
            assert "p%40ss" not in str(raised.value)


def test_the_root_certificate_of_the_home_directory_is_enough(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".postgresql").mkdir()
    (tmp_path / ".postgresql" / "root.crt").touch()
    assert parse_url(f"{BASE}?sslmode=verify-full") == {"dsn": f"{BASE}?sslmode=verify-full"}
