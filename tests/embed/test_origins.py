"""Entries of allowed_domains and the origins that they let in: pure, no server."""

import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.domain.embed.origins import is_allowed, matching_entries, normalize

# Entries in their one form


@pytest.mark.parametrize(
    ("entry", "form"),
    [
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
    ],
)
def test_an_entry_is_brought_into_one_form(entry: str, form: str) -> None:
    assert normalize(entry) == form


@pytest.mark.parametrize(
    "entry",
    [
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
    ],
)
def test_what_names_no_host_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match=r"host|port|IPv6|wildcard"):
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


@pytest.mark.parametrize("dot", ["。", "．", "｡"])  # noqa: RUF001  # what IDNA takes for a dot
def test_a_last_dot_in_another_script_is_a_last_dot(dot: str) -> None:
    assert normalize(f"example.com{dot}") == "example.com"


@pytest.mark.parametrize(
    ("entry", "form"),
    [
        ("https://example.com:0443", "https://example.com"),
        ("http://example.com:00080", "http://example.com"),
        ("example.com:08080", "example.com:8080"),
    ],
)
def test_a_port_has_no_zeros_before_it(entry: str, form: str) -> None:
    """No browser sends such an origin, so that the entry would never let anybody in."""
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
def test_any_text_is_taken_or_refused_in_words(text: str) -> None:
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


_LABEL = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=4)
_NAMES = st.lists(_LABEL, min_size=2, max_size=4).map(".".join).map(lambda name: f"x{name}.com")
_SCHEMES = st.sampled_from(["http", "https"])
_PORTS = st.none() | st.sampled_from([80, 443, 8080]) | st.integers(1, 65535)


def _written(scheme: str | None, wild: str, host: str, port: int | None) -> str:
    return (f"{scheme}://" if scheme else "") + wild + host + (f":{port}" if port else "")


@given(st.none() | _SCHEMES, st.sampled_from(["", "*."]), _NAMES, _PORTS)
def test_the_form_of_a_form_is_itself(
    scheme: str | None, wild: str, host: str, port: int | None
) -> None:
    form = normalize(_written(scheme, wild, host, port))
    assert normalize(form) == form


@given(st.none() | _SCHEMES, st.sampled_from(["", "*."]), _NAMES, _PORTS)
def test_case_space_last_dot_and_slash_make_no_difference(
    scheme: str | None, wild: str, host: str, port: int | None
) -> None:
    plain = normalize(_written(scheme, wild, host, port))
    assert normalize(f"  {_written(scheme, wild, host.upper() + '.', port)}/ ") == plain


# Origins


_HOST_CASES = [
    # entry, origin, let in
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


@pytest.mark.parametrize(
    ("entry", "origin", "expected"),
    _HOST_CASES + _WILD_CASES + _ORIGIN_CASES + _PORT_CASES + _ADDRESS_CASES + _NAME_CASES,
)
def test_an_entry_lets_in_what_it_names_and_nothing_else(
    entry: str, origin: str, *, expected: bool
) -> None:
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


@pytest.mark.parametrize("origin", _NO_ORIGINS)
def test_what_no_browser_sends_for_a_site_is_let_in_by_no_entry(origin: str) -> None:
    forms = ["example.com", "*.com", "https://example.com", "http://example.com", "null"]
    forms += ["example.com:443", "*.example.com", "https://*.example.com", "evil.com"]
    assert not is_allowed(forms, origin)


@pytest.mark.parametrize("origin", [*_NO_ORIGINS, None])
def test_a_star_is_for_everybody(origin: str | None) -> None:
    assert is_allowed(["*"], origin)


@pytest.mark.parametrize("origin", [*_NO_ORIGINS, None, "https://example.com"])
def test_without_entries_there_is_no_rule(origin: str | None) -> None:
    assert is_allowed([], origin)


@pytest.mark.parametrize(
    "entry", ["example.com", "*.example.com", "https://example.com", "null", "localhost"]
)
def test_no_origin_is_let_in_by_no_other_entry(entry: str) -> None:
    assert not is_allowed([entry], None)


def test_one_fitting_entry_among_many_is_enough() -> None:
    entries = ["a.com", "*.b.com", "https://c.com", "d.com:8080"]
    assert is_allowed(entries, "https://x.b.com")
    assert not is_allowed(entries, "https://b.com")


@pytest.mark.parametrize("host", ["[::1]", "[2001:db8::1]", "127.0.0.1", "10.0.0.1"])
def test_no_wildcard_lets_an_address_in(host: str) -> None:
    found = matching_entries(f"http://{host}:8080") - {"*"}
    assert found
    assert not any("*" in entry for entry in found)


@given(st.text(max_size=60))
def test_any_text_can_be_asked_about(text: str) -> None:
    assert "*" in matching_entries(text)


@given(st.text(string.ascii_letters + string.digits + "./:@#?\\-_[]* ,\n", max_size=40))
def test_what_follows_an_origin_never_passes_for_it(tail: str) -> None:
    origin = f"https://example.com{tail}"
    plain = tail == "" or (tail[0] == ":" and tail[1:].isdigit() and len(tail) <= 6)
    assert is_allowed(["example.com"], origin) is plain


@given(st.text(string.ascii_letters + string.digits + "./:@#?\\-_[]* ,\n", max_size=40))
def test_what_precedes_a_host_never_passes_for_it(head: str) -> None:
    origin = f"https://{head}example.com"
    assert is_allowed(["example.com"], origin) is (head == "")


def _oracle(
    entry: tuple[str | None, str, str, int | None], origin: tuple[str, str, int | None]
) -> bool:
    """The same rules, told the long way."""
    scheme, wild, host, port = entry
    from_scheme, from_host, from_port = origin
    default = {"http": 80, "https": 443}
    reached = from_port or default[from_scheme]
    if scheme is not None and (scheme, port or default[scheme]) != (from_scheme, reached):
        return False
    if port is not None and port != reached:
        return False
    return from_host.endswith(f".{host}") if wild else from_host == host


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
    st.tuples(st.none() | _SCHEMES, st.sampled_from(["", "*."]), _FEW_HOSTS, _FEW_PORTS),
    st.tuples(_SCHEMES, _FEW_HOSTS, _FEW_PORTS),
)
def test_entries_and_origins_fit_as_the_rules_say(
    entry: tuple[str | None, str, str, int | None], origin: tuple[str, str, int | None]
) -> None:
    scheme, wild, host, port = entry
    if wild and host == "127.0.0.1":
        wild = ""
    form = normalize(_written(scheme, wild, host, port))
    from_scheme, from_host, from_port = origin
    expected = _oracle((scheme, wild, host, port), origin)
    assert is_allowed([form], _written(from_scheme, "", from_host, from_port)) is expected


@given(_NAMES, _LABEL, _SCHEMES, _PORTS)
def test_a_wildcard_is_for_what_is_below_it_alone(
    host: str, label: str, scheme: str, port: int | None
) -> None:
    wild = [normalize(f"*.{host}")]
    assert is_allowed(wild, _written(scheme, "", f"{label}.{host}", port))
    assert not is_allowed(wild, _written(scheme, "", host, port))
    assert not is_allowed(wild, _written(scheme, "", label + host, port))
    assert not is_allowed(wild, _written(scheme, "", f"{label}.{host}.{label}", port))


@pytest.mark.parametrize("head", [".", "..", "a..", ".a."])
def test_an_empty_part_is_no_name_below_a_wildcard(head: str) -> None:
    assert not is_allowed(["*.example.com"], f"https://{head}example.com")
