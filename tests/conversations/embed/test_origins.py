"""The origins that an entry of allowed_domains allows: pure, no server."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.conversations.embed.origins import is_allowed, matching_entries, normalize
from tests.conversations.embed.origin_entries import HOSTS, LABELS, PORTS, SCHEMES, format_entry

_HOST_CASES = [
    # entry, origin, expected
    ("example.com", "https://example.com", True),
    ("example.com", "http://example.com", True),
    ("example.com", "https://example.com:443", True),
    ("example.com", "https://example.com:8443", True),
    ("example.com", "http://example.com:3000", True),
    ("example.com", "https://www.example.com", False),
    ("example.com", "https://evilexample.com", False),
    ("example.com", "https://example.com.evil.com", False),
    ("example.com", "https://example.co", False),
    ("example.com", "https://xample.com", False),
    ("example.com", "https://example-com", False),
    ("example.com", "https://exampleXcom", False),
    ("example.com", "https://exampleacom", False),
    ("example.com", "https://com", False),
    ("example.com", "https://evil.com", False),
    ("shop.example.com", "https://shop.example.com", True),
    ("shop.example.com", "https://example.com", False),
    ("shop.example.com", "https://other.example.com", False),
    ("shop.example.com", "https://a.shop.example.com", False),
    ("localhost", "http://localhost:3000", True),
    ("localhost", "http://localhost.evil.com", False),
    ("my_host.internal", "http://my_host.internal", True),
    ("null", "https://null", True),
    ("null", "null", False),
]

_WILD_CASES = [
    ("*.example.com", "https://a.example.com", True),
    ("*.example.com", "https://a.b.example.com", True),
    ("*.example.com", "http://a.example.com", True),
    ("*.example.com", "https://a.example.com:8443", True),
    ("*.example.com", "https://example.com", False),
    ("*.example.com", "https://evilexample.com", False),
    ("*.example.com", "https://a.evilexample.com", False),
    ("*.example.com", "https://example.com.evil.com", False),
    ("*.example.com", "https://a.example.com.evil", False),
    ("*.example.com", "https://a.example.com.evil.com", False),
    ("*.example.com", "https://com", False),
    ("*.example.com", "https://*.example.com", False),
    ("*.a.example.com", "https://a.example.com", False),
    ("*.a.example.com", "https://b.example.com", False),
    ("*.a.example.com", "https://c.a.example.com", True),
    ("*.xn--mnchen-3ya.de", "https://www.xn--mnchen-3ya.de", True),
    ("*.0.0.1", "http://127.0.0.1", False),
]

_ORIGIN_CASES = [
    ("https://example.com", "https://example.com", True),
    ("https://example.com", "https://example.com:443", True),
    ("https://example.com:443", "https://example.com", True),
    ("https://example.com", "http://example.com", False),
    ("https://example.com", "https://example.com:8443", False),
    ("https://example.com", "https://example.com:80", False),
    ("https://example.com", "http://example.com:443", False),
    ("https://example.com", "https://a.example.com", False),
    ("https://example.com:8443", "https://example.com:8443", True),
    ("https://example.com:8443", "https://example.com", False),
    ("https://example.com:8443", "https://example.com:84430", False),
    ("https://example.com:8443", "https://example.com:844", False),
    ("https://example.com:8443", "http://example.com:8443", False),
    ("http://example.com", "http://example.com:80", True),
    ("http://example.com:80", "http://example.com", True),
    ("http://example.com", "https://example.com", False),
    ("http://example.com:443", "https://example.com", False),
    ("http://example.com:443", "http://example.com:443", True),
    ("https://*.example.com", "https://a.example.com", True),
    ("https://*.example.com", "https://a.b.example.com", True),
    ("https://*.example.com", "http://a.example.com", False),
    ("https://*.example.com", "https://a.example.com:8443", False),
    ("https://*.example.com", "https://example.com", False),
    ("https://*.example.com:8443", "https://a.example.com:8443", True),
    ("https://*.example.com:8443", "https://a.example.com", False),
]

_PORT_CASES = [
    ("example.com:443", "https://example.com", True),
    ("example.com:443", "https://example.com:443", True),
    ("example.com:443", "http://example.com:443", True),
    ("example.com:443", "http://example.com", False),
    ("example.com:80", "http://example.com", True),
    ("example.com:80", "https://example.com", False),
    ("example.com:80", "https://example.com:80", True),
    ("example.com:8080", "http://example.com:8080", True),
    ("example.com:8080", "https://example.com:8080", True),
    ("example.com:8080", "http://example.com", False),
    ("example.com:8080", "http://example.com:80", False),
    ("*.example.com:8080", "http://a.example.com:8080", True),
    ("*.example.com:8080", "http://a.example.com", False),
]

_ADDRESS_CASES = [
    ("127.0.0.1", "http://127.0.0.1", True),
    ("127.0.0.1", "http://127.0.0.1:8080", True),
    ("127.0.0.1", "http://127.0.0.2", False),
    ("127.0.0.1", "http://27.0.0.1", False),
    ("127.0.0.1", "http://127.0.0.1.evil.com", False),
    ("127.0.0.1:8080", "http://127.0.0.1", False),
    ("[::1]", "http://[::1]", True),
    ("[::1]", "http://[::1]:8080", True),
    ("[0:0::1]", "http://[::1]", True),
    ("[::1]", "http://[::2]", False),
    ("[::1]", "http://::1", False),
    ("http://[2001:db8::1]:8080", "http://[2001:db8::1]:8080", True),
    ("http://[2001:db8::1]:8080", "http://[2001:db8::1]", False),
    ("[::ffff:102:304]", "http://1.2.3.4", False),
]

_NAME_CASES = [
    ("EXAMPLE.com", "https://example.com", True),
    ("example.com.", "https://example.com", True),
    ("münchen.de", "https://xn--mnchen-3ya.de", True),
    ("*.MÜNCHEN.de", "https://www.xn--mnchen-3ya.de", True),
    # Latin and Cyrillic letters that look alike are different names.
    ("example.com", "https://xn--xample-2of.com", False),
    ("xn--xample-2of.com", "https://example.com", False),
]


def test_an_entry_allows_exactly_its_origins(subtests: pytest.Subtests) -> None:
    for entry, origin, expected in (
        _HOST_CASES + _WILD_CASES + _ORIGIN_CASES + _PORT_CASES + _ADDRESS_CASES + _NAME_CASES
    ):
        with subtests.test(entry=entry, origin=origin, expected=expected):
            assert is_allowed([normalize(entry)], origin) is expected


_NO_ORIGINS = [
    "",
    " ",
    "null",
    "NULL",
    "*",
    "example.com",
    "//example.com",
    "https:example.com",
    "https:/example.com",
    "https://",
    "https:///example.com",
    "ftp://example.com",
    "ws://example.com",
    "file://example.com",
    "chrome-extension://example.com",
    "https://example.com/",
    "https://example.com/path",
    "https://example.com?x",
    "https://example.com#x",
    "https://example.com\\",
    "https://example.com@evil.com",
    "https://example.com:443@evil.com",
    "https://evil.com/https://example.com",
    "https://evil.com#https://example.com",
    "https://evil.com\\@example.com",
    "https://user@example.com",
    "https://user:word@example.com",
    "https://example.com https://evil.com",
    "https://evil.com https://example.com",
    "https://example.com, https://evil.com",
    "https://evil.com, https://example.com",
    "https://example.com,https://evil.com",
    "https://evil.com,https://example.com",
    " https://example.com",
    "https://example.com ",
    "https://example.com\n",
    "https://example.com\r\nx: y",
    "https://evil.com\nhttps://example.com",
    "https://example.com\0",
    "https://example.com\0.evil.com",
    "https://example.com:",
    "https://example.com:port",
    "https://example.com:443:443",
    "https://example.com:123456",
    "https://example.com:-1",
    "https://example.com%2eevil.com",
    "https://example%2ecom",
    "https://exаmple.com",  # noqa: RUF001  # a Cyrillic letter
    "https://ｅxample.com",  # noqa: RUF001
    "https://example。com",
    "https://[example.com]",
    "https://[::1",
    "https://example.com.",
    "HTTPS://example.com",
    "https://EXAMPLE.com",
]


def test_an_invalid_origin_matches_no_entry(subtests: pytest.Subtests) -> None:
    for origin in _NO_ORIGINS:
        with subtests.test(origin=origin):
            forms = ["example.com", "*.com", "https://example.com", "http://example.com", "null"]
            forms += ["example.com:443", "*.example.com", "https://*.example.com", "evil.com"]
            assert not is_allowed(forms, origin)


def test_a_star_allows_every_origin(subtests: pytest.Subtests) -> None:
    for origin in [*_NO_ORIGINS, None]:
        with subtests.test(origin=origin):
            assert is_allowed(["*"], origin)


def test_without_entries_there_is_no_rule(subtests: pytest.Subtests) -> None:
    for origin in [*_NO_ORIGINS, None, "https://example.com"]:
        with subtests.test(origin=origin):
            assert is_allowed([], origin)


def test_a_missing_origin_matches_no_other_entry(subtests: pytest.Subtests) -> None:
    for entry in ["example.com", "*.example.com", "https://example.com", "null", "localhost"]:
        with subtests.test(entry=entry):
            assert not is_allowed([entry], None)


def test_a_host_that_no_entry_can_have_matches_only_the_star() -> None:
    host = "a." * 125 + "com"
    assert len(host) == 253
    assert host in matching_entries(f"https://{host}")
    assert matching_entries(f"https://a{host}") == {"*"}


def test_one_matching_entry_is_enough() -> None:
    entries = ["a.com", "*.b.com", "https://c.com", "d.com:8080"]
    assert is_allowed(entries, "https://x.b.com")
    assert not is_allowed(entries, "https://b.com")


def test_no_wildcard_matches_an_ip_address(subtests: pytest.Subtests) -> None:
    for host in ["[::1]", "[2001:db8::1]", "127.0.0.1", "10.0.0.1"]:
        with subtests.test(host=host):
            entries = matching_entries(f"http://{host}:8080") - {"*"}
            assert entries
            assert not any("*" in entry for entry in entries)


@given(st.text(max_size=60))
def test_any_text_matches_the_star(text: str) -> None:
    assert "*" in matching_entries(text)


@given(st.text(string.ascii_letters + string.digits + "./:@#?\\-_[]* ,\n", max_size=40))
def test_an_origin_with_a_suffix_does_not_match(tail: str) -> None:
    origin = f"https://example.com{tail}"
    plain = tail == "" or (tail[0] == ":" and tail[1:].isdigit() and len(tail) <= 6)
    assert is_allowed(["example.com"], origin) is plain


@given(st.text(string.ascii_letters + string.digits + "./:@#?\\-_[]* ,\n", max_size=40))
def test_a_host_with_a_prefix_does_not_match(head: str) -> None:
    origin = f"https://{head}example.com"
    assert is_allowed(["example.com"], origin) is (head == "")


def _expected_match(
    entry: tuple[str | None, str, str, int | None], origin: tuple[str, str, int | None]
) -> bool:
    """Implements the rules of `is_allowed` in another way."""
    scheme, wildcard, host, port = entry
    from_scheme, from_host, from_port = origin
    default = {"http": 80, "https": 443}
    reached = from_port or default[from_scheme]
    if scheme is not None and (scheme, port or default[scheme]) != (from_scheme, reached):
        return False
    if port is not None and port != reached:
        return False
    return from_host.endswith(f".{host}") if wildcard else from_host == host


_FEW_HOSTS = st.sampled_from(
    [
        "example.com",
        "a.example.com",
        "b.a.example.com",
        "aexample.com",
        "example.com.au",
        "com.example",
        "127.0.0.1",
    ]
)

_FEW_PORTS = st.sampled_from([None, 80, 443, 8080])


@given(
    st.tuples(st.none() | SCHEMES, st.sampled_from(["", "*."]), _FEW_HOSTS, _FEW_PORTS),
    st.tuples(SCHEMES, _FEW_HOSTS, _FEW_PORTS),
)
def test_entries_match_origins_by_scheme_host_and_port(
    entry: tuple[str | None, str, str, int | None], origin: tuple[str, str, int | None]
) -> None:
    scheme, wildcard, host, port = entry
    if wildcard and host == "127.0.0.1":
        wildcard = ""
    form = normalize(format_entry(scheme, wildcard, host, port))
    from_scheme, from_host, from_port = origin
    expected = _expected_match((scheme, wildcard, host, port), origin)
    assert is_allowed([form], format_entry(from_scheme, "", from_host, from_port)) is expected


@given(HOSTS, LABELS, SCHEMES, PORTS)
def test_a_wildcard_matches_only_subdomains(
    host: str, label: str, scheme: str, port: int | None
) -> None:
    wildcard = [normalize(f"*.{host}")]
    assert is_allowed(wildcard, format_entry(scheme, "", f"{label}.{host}", port))
    assert not is_allowed(wildcard, format_entry(scheme, "", host, port))
    assert not is_allowed(wildcard, format_entry(scheme, "", label + host, port))
    assert not is_allowed(wildcard, format_entry(scheme, "", f"{label}.{host}.{label}", port))


def test_a_wildcard_does_not_match_an_empty_label(subtests: pytest.Subtests) -> None:
    for head in [".", "..", "a..", ".a."]:
        with subtests.test(head=head):
            assert not is_allowed(["*.example.com"], f"https://{head}example.com")
