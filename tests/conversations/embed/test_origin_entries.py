"""The normal form of entries in allowed_domains: pure, no server."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.domain.conversations.embed.origins import normalize
from tests.conversations.embed.origin_entries import HOSTS, PORTS, SCHEMES, format_entry

_NORMAL_FORMS = [
    ("*", "*"),
    (" * ", "*"),
    ("example.com", "example.com"),
    ("shop.example.com", "shop.example.com"),
    ("*.example.com", "*.example.com"),
    ("  example.com\t", "example.com"),
    ("example.com\n", "example.com"),
    ("EXAMPLE.Com", "example.com"),
    ("*.EXAMPLE.Com", "*.example.com"),
    ("HTTPS://Example.com", "https://example.com"),
    ("example.com.", "example.com"),
    ("*.example.com.", "*.example.com"),
    ("https://example.com.", "https://example.com"),
    ("example.com/", "example.com"),
    ("https://example.com/", "https://example.com"),
    ("https://example.com:443", "https://example.com"),
    ("https://example.com:443/", "https://example.com"),
    ("http://example.com:80", "http://example.com"),
    ("http://example.com:443", "http://example.com:443"),
    ("https://example.com:80", "https://example.com:80"),
    ("https://example.com:8443", "https://example.com:8443"),
    ("example.com:443", "example.com:443"),
    ("example.com:80", "example.com:80"),
    ("example.com:1", "example.com:1"),
    ("example.com:65535", "example.com:65535"),
    ("https://*.example.com", "https://*.example.com"),
    ("https://*.example.com:8443", "https://*.example.com:8443"),
    ("*.example.com:8443", "*.example.com:8443"),
    ("*.a.b.example.com", "*.a.b.example.com"),
    ("localhost", "localhost"),
    ("localhost:3000", "localhost:3000"),
    ("http://localhost:3000", "http://localhost:3000"),
    ("intranet", "intranet"),
    ("my_host.internal", "my_host.internal"),
    ("münchen.de", "xn--mnchen-3ya.de"),
    ("MÜNCHEN.de", "xn--mnchen-3ya.de"),
    ("xn--mnchen-3ya.de", "xn--mnchen-3ya.de"),
    ("*.münchen.de", "*.xn--mnchen-3ya.de"),
    ("https://straße.de", "https://xn--strae-oqa.de"),
    ("例え。テスト", "xn--r8jz45g.xn--zckzah"),
    ("ｅｘａｍｐｌｅ.com", "example.com"),  # noqa: RUF001  # browsers read wide letters as plain ones
    ("127.0.0.1", "127.0.0.1"),
    ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
    ("[::1]", "[::1]"),
    ("[::1]:8080", "[::1]:8080"),
    ("http://[::1]", "http://[::1]"),
    ("http://[::1]:80", "http://[::1]"),
    ("[0:0:0:0:0:0:0:1]", "[::1]"),
    ("[2001:DB8::00AB]", "[2001:db8::ab]"),
    # A host may have that name; the origin `null` is something else.
    ("null", "null"),
]


def test_an_entry_has_one_normal_form(subtests: pytest.Subtests) -> None:
    for entry, form in _NORMAL_FORMS:
        with subtests.test(entry=entry, form=form):
            assert normalize(entry) == form


_WITHOUT_VALID_HOST = [
    "",
    " ",
    ".",
    "..",
    "/",
    "*.",
    "*.*",
    "**",
    "*.*.example.com",
    "a.*.example.com",
    "shop*.example.com",
    "*shop.example.com",
    "example.*",
    "*example.com",
    "*:8080",
    "https://*",
    "https://*:443",
    "*/",
    "ftp://example.com",
    "ws://example.com",
    "file://example.com",
    "javascript://example.com",
    "//example.com",
    "://example.com",
    "https:/example.com",
    "https:example.com",
    "https://",
    "http://https://example.com",
    "https://example.com/path",
    "example.com/path",
    "https://example.com//",
    "https://example.com?query",
    "https://example.com#part",
    "https://user@example.com",
    "https://user:word@example.com",
    "example.com@evil.com",
    "example.com:",
    "https://example.com:/",
    "example.com:0",
    "example.com:65536",
    "example.com:99999",
    "example.com:123456",
    "example.com:-1",
    "example.com:http",
    "example.com:*",
    "example.com:٨٠",
    "example.com:80:80",
    "exa mple.com",
    "example.com, other.com",
    "example.com\nother.com",
    "example.com\0",
    "example..com",
    ".example.com",
    "*..example.com",
    "example.com%2eevil.com",
    "exam%70le.com",
    "example.com\\evil.com",
    "example.com／evil",  # noqa: RUF001  # a wide slash becomes a slash
    "＊.example.com",  # noqa: RUF001  # and a wide star a star
    "ex'ample.com",
    'ex"ample.com',
    "<script>",
    "::1",
    "[::1",
    "::1]",
    "[]",
    "[1.2.3.4]",
    "[12345::1]",
    "[::1%eth0]",
    "[:::]",
    "[example.com]",
    "a" * 300,
    ".".join(["a" * 60] * 5),
]


def test_an_entry_without_a_valid_host_is_refused(subtests: pytest.Subtests) -> None:
    for entry in _WITHOUT_VALID_HOST:
        with (
            subtests.test(entry=entry),
            pytest.raises(ValueError, match=r"host|port|IPv6|wildcard"),
        ):
            normalize(entry)


@pytest.mark.parametrize(
    "entry",
    [
        "*.com",
        "*.com.",
        "*.localhost",
        "https://*.com",
        "*.com:8080",
        "*.de/",
        "*.127.0.0.1",
        "*.[::1]",
        "https://*.10.0.0.1",
        pytest.param("*.com。"),
    ],
)
def test_a_wildcard_needs_a_domain_of_two_parts(entry: str) -> None:
    with pytest.raises(ValueError, match="wildcard"):
        normalize(entry)


def test_a_last_dot_in_another_script_is_a_last_dot(subtests: pytest.Subtests) -> None:
    for dot in ["。", "．", "｡"]:  # noqa: RUF001  # what IDNA takes for a dot
        with subtests.test(dot=dot):
            assert normalize(f"example.com{dot}") == "example.com"


def test_a_port_has_no_zeros_before_it(subtests: pytest.Subtests) -> None:
    """Browsers send ports without leading zeros, so such an entry would match nothing."""
    for entry, form in [
        ("https://example.com:0443", "https://example.com"),
        ("http://example.com:00080", "http://example.com"),
        ("example.com:08080", "example.com:8080"),
    ]:
        with subtests.test(entry=entry, form=form):
            assert normalize(entry) == form


@given(st.text(max_size=40))
@example("İ.com")
@example("\u017f.com")
@example("\u00ad.com")
@example("xn--a.com")
@example("xn--")
@example("\u200d.com")
@example("\ud800.com")
@example("[::ffff:1.2.3.4]")
def test_any_text_is_normalized_or_refused_with_a_reason(text: str) -> None:
    try:
        form = normalize(text)
    except ValueError as error:
        form = ""
        refusal = str(error)
    else:
        refusal = ""
    assert bool(form) is not bool(refusal)
    assert form.isascii()
    assert form == form.lower().strip()


@given(st.none() | SCHEMES, st.sampled_from(["", "*."]), HOSTS, PORTS)
def test_normalization_is_idempotent(
    scheme: str | None, wildcard: str, host: str, port: int | None
) -> None:
    form = normalize(format_entry(scheme, wildcard, host, port))
    assert normalize(form) == form


@given(st.none() | SCHEMES, st.sampled_from(["", "*."]), HOSTS, PORTS)
def test_case_space_last_dot_and_slash_make_no_difference(
    scheme: str | None, wildcard: str, host: str, port: int | None
) -> None:
    plain = normalize(format_entry(scheme, wildcard, host, port))
    assert normalize(f"  {format_entry(scheme, wildcard, host.upper() + '.', port)}/ ") == plain
