"""Redaction of secrets in responses, in any encoding."""

import base64
import itertools
import json
import time
from collections.abc import Callable
from html import escape
from urllib.parse import quote, quote_plus

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from yarl import URL

from app.net.redaction import Redactor

# Characters that at least one encoding changes.
AWKWARD = 'p@ss w/rd+"quo\'te"&<é>🌍=%\\:;?#~'


def _encodings(secret: str) -> dict[str, str]:
    raw = secret.encode()
    html = escape(secret, quote=True)
    return {
        "plain": secret,
        "quoted": quote(secret, safe=""),
        "quoted but for slashes": quote(secret),
        "a form": quote_plus(secret),
        "small hex digits": quote(secret, safe="").replace("%", "\0").lower().replace("\0", "%"),
        "a query": URL("http://h/").with_query({"k": secret}).raw_query_string[2:],
        "a path": URL("http://h/").joinpath(secret).raw_path[1:],
        "json": json.dumps(secret, ensure_ascii=False)[1:-1],
        "ascii json": json.dumps(secret)[1:-1],
        "json with slashes escaped": json.dumps(secret)[1:-1].replace("/", "\\/"),
        "html": html,
        "html with numbers": html.replace("&quot;", "&#34;").replace("&#x27;", "&#39;"),
        "base64": base64.b64encode(raw).decode(),
        "base64 without an end": base64.b64encode(raw).decode().rstrip("="),
        "urlsafe base64": base64.urlsafe_b64encode(raw).decode(),
        "base64 in a url": quote(base64.b64encode(raw).decode(), safe=""),
        "hex": raw.hex(),
        "big hex": raw.hex().upper(),
    }


def test_a_secret_that_overlaps_itself_very_often_hides_the_whole_text() -> None:
    """Listing every occurrence would take the product of both lengths."""
    assert Redactor(["a" * 4096]).text("before " + "a" * 200_000) == "[redacted]"


def test_a_secret_is_redacted_in_every_usual_encoding(subtests: pytest.Subtests) -> None:
    cases: list[str] = [AWKWARD, "plain-secret-0123456789", "ключ-от-двери", "a b c d"]
    for case, encoding in itertools.product(cases, _encodings("")):
        with subtests.test(secret=case, encoding=encoding):
            secret = case.replace("/", "") if "path" in encoding and case == AWKWARD else case
            encoded = _encodings(secret)[encoding]
            # A secret behind several encodings replaces the whole text.
            redacted = Redactor([secret]).text(f"before {encoded} after")
            assert redacted in {"before [redacted] after", "[redacted]"}


def test_no_secret_and_no_text_takes_long(subtests: pytest.Subtests) -> None:
    """A backtracking search would not finish on these."""
    for secret, text in [
        ("\\" * 60 + "b", "\\" * 200),
        ("%" * 60 + "b", "%25" * 200),
        ("&" * 60 + "b", "&amp;" * 200),
        ("/" * 8000 + "b", "/" * 50_000),
        ("a" * 8000 + "b", "a" * 500_000),
    ]:
        with subtests.test(secret=secret, text=text):
            assert Redactor([secret]).text(text) == text


def test_a_secret_is_hidden_in_a_text_that_was_encoded_as_a_whole(
    subtests: pytest.Subtests,
) -> None:
    cases: list[str] = [AWKWARD, "plain-secret-0123456789", "s3cr3t-tökén"]
    more_cases: list[Callable[[bytes], bytes]] = [base64.b64encode, base64.urlsafe_b64encode]
    for secret, encode, before, after in itertools.product(
        cases, more_cases, ("", "a", "ab", "abc", "user:"), ("", "z", "zz", "zzz")
    ):
        with subtests.test(secret=secret, encode=encode.__name__):
            whole = encode(f"{before}{secret}{after}".encode()).decode()
            redacted = Redactor([secret]).text(whole)
            assert "[redacted]" in redacted
            # The remaining characters do not reveal the secret.
            remaining = len(redacted.replace("[redacted]", "")) * 3 // 4 - len(before) - len(after)
            assert remaining <= 6


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: quote(json.dumps(text)),
        lambda text: json.dumps(json.dumps({"echo": json.dumps(text)})),
        lambda text: base64.b64encode(json.dumps({"echo": text}).encode()).decode(),
        lambda text: json.dumps(text).encode().hex(),
        lambda text: escape(quote(text)),
    ],
)
def test_a_secret_behind_several_encodings_is_redacted(
    encode: Callable[[str], str],
) -> None:
    assert "[redacted]" in Redactor(["Abc123-def456_ghi/é&=x"]).text(
        encode("Abc123-def456_ghi/é&=x")
    )


def test_a_binary_value_with_a_secret_is_redacted_as_a_whole() -> None:
    redactor = Redactor(["some-secret"])
    secret = base64.b64encode(b"\xff" + b"some-secret".hex().encode() + b"\xfe").decode()
    other = base64.b64encode(b"\xff\xfe").decode()
    assert redactor.value({"body": {"base64": secret}}) == {"body": {"base64": "[redacted]"}}
    assert redactor.value({"body": {"base64": other}}) == {"body": {"base64": other}}
    assert redactor.value({"base64": "no base64!"}) == {"base64": "no base64!"}


def test_a_text_without_secrets_stays_as_it_is() -> None:
    text = "nothing to see here, dGhpcyBpcyBub3QgaXQ="
    assert Redactor(["some-secret"]).text(text) == text


def test_without_secrets_nothing_is_redacted() -> None:
    assert Redactor([]).value({"a": ["b", 1, None]}) == {"a": ["b", 1, None]}


def test_a_secret_of_three_characters_is_not_redacted() -> None:
    assert Redactor(["abc", ""]).text("abc abcd") == "abc abcd"


def test_values_keys_and_numbers_are_searched() -> None:
    redactor = Redactor(["hunter22", "20240229"])
    value = {"hunter22": ["a hunter22 b", {"x": 20240229}, 20240229.0, 7, True, None, 1.5]}
    assert redactor.value(value) == {
        "[redacted]": ["a [redacted] b", {"x": "[redacted]"}, 20240229.0, 7, True, None, 1.5]
    }


def test_a_number_that_only_contains_a_secret_is_a_number() -> None:
    assert Redactor(["1234"]).value([1234, 512345]) == ["[redacted]", 512345]


def test_secrets_that_overlap_are_redacted_completely() -> None:
    redactor = Redactor(["abcdefgh", "efghijkl"])
    assert redactor.text("xabcdefghijklx") == "x[redacted]x"


def test_a_secret_within_another_is_redacted_completely() -> None:
    redactor = Redactor(["secret", "my-secret-token"])
    assert redactor.text("my-secret-token, secret") == "[redacted], [redacted]"


def test_a_secret_that_overlaps_itself_is_redacted_completely() -> None:
    assert Redactor(["abab"]).text("ababab") == "[redacted]"


def test_each_of_several_secrets_is_hidden() -> None:
    assert Redactor(["first-one", "second-one"]).text("first-one second-one first-one") == (
        "[redacted] [redacted] [redacted]"
    )


def test_regex_characters_in_a_secret_are_literal() -> None:
    assert Redactor(["a.*b(c|d)[e]"]).text("axxb a.*b(c|d)[e]") == "axxb [redacted]"


@given(
    secret=st.text(min_size=4, max_size=40).filter(lambda text: "\ud800" not in text),
    before=st.text(max_size=20),
    after=st.text(max_size=20),
)
@settings(max_examples=200, deadline=None)
def test_no_secret_survives_as_it_is(secret: str, before: str, after: str) -> None:
    redacted = Redactor([secret]).text(f"{before}{secret}{after}")
    assert secret not in redacted.replace("[redacted]", "\0" * 50)


@given(secret=st.text(st.characters(codec="utf-8"), min_size=4, max_size=30))
@settings(max_examples=100, deadline=None)
def test_no_secret_survives_in_json_in_json(secret: str) -> None:
    inner = msgspec.json.encode({"echo": secret}).decode()
    assert Redactor([secret]).value(inner) == '{"echo":"[redacted]"}'


def test_a_long_secret_and_a_long_text_are_searched_in_time() -> None:
    secret = "0123456789abcdef/+=&" * 800
    started = time.process_time()
    redacted = Redactor([secret, "other-secret"]).text("x" * 1_000_000 + secret + "other-secret")
    assert redacted == "x" * 1_000_000 + "[redacted][redacted]"
    assert time.process_time() - started < 5


# A limit of the text


def test_no_part_of_a_secret_remains_at_the_limit(subtests: pytest.Subtests) -> None:
    for length in [0, 1, 80, 90, 99, 100]:
        with subtests.test(length=length):
            secret = "plain-secret-0123456789"
            text = "." * length + secret + " more " + secret
            redacted = Redactor([secret]).text(text, 100)
            assert redacted.replace("[redacted]", "").strip(". more") == ""
            assert redacted.startswith("." * length)


def test_a_limit_keeps_the_beginning_of_a_text() -> None:
    assert Redactor(["some-secret"]).text("abcdef", 4) == "abcd"
    assert Redactor([]).text("abcdef", 4) == "abcd"
    assert Redactor(["some-secret"]).text("abc", 4) == "abc"


def test_replacements_do_not_move_the_end_of_a_text_before_the_limit() -> None:
    secret = "".join(f"{number:03}-" for number in range(80))
    redacted = Redactor([secret]).text(f"{secret} " * 10 + "end", 700)
    assert redacted == "[redacted] [redacted] [redacted]"


def test_a_secret_behind_encodings_at_the_limit_hides_the_text() -> None:
    secret = "é/é&é=é"
    encoded = quote(json.dumps(json.dumps(secret)))
    for length in (50, 80, 90, 95):
        assert Redactor([secret]).text("." * length + encoded, 100) == "[redacted]"


def test_only_the_beginning_of_a_long_text_is_searched() -> None:
    text = "%25&amp;" * 4_000_000
    started = time.process_time()
    assert Redactor(["some-secret"]).text(text, 1000) == text[:1000]
    assert time.process_time() - started < 1


def test_the_replacement_can_be_chosen() -> None:
    assert Redactor(["some-secret"], "***").text("a some-secret") == "a ***"
