"""Custom headers of a tenant: which are sent or dropped, and which names indicate a secret."""

import pytest

from app.net.egress import Egress, custom_headers
from app.net.headers import is_credential, is_reserved_in_delivery, is_secret
from tests.net.egress_servers import Site


def test_ordinary_headers_are_kept() -> None:
    headers = {"Authorization": "Bearer a", "X-Custom": "b", "Accept": "text/plain"}
    assert dict(custom_headers(headers)) == headers


_CASES: list[str] = [
    "Host",
    "HOST",
    " host ",
    "Content-Length",
    "Transfer-Encoding",
    "Connection",
    "Upgrade",
    "X-Service-Token",
    "x-service-name",
    " X-Service-Tenant",
    "X-SERVICE-",
    "Webhook-Id",
    "webhook-signature",
    "\tWebhook-Timestamp",
    "webhook_signature",
    "X_Service_Token",
    "Svix-Id",
    "svix_signature",
    "Content_Length",
    "Content-Encoding",
    "Expect",
    "Keep-Alive",
    "Proxy-Connection",
    "Accept-Encoding",
    "TE",
    "Trailer",
]


def test_a_header_that_only_the_service_sets_is_dropped(subtests: pytest.Subtests) -> None:
    for name in _CASES:
        with subtests.test(name=name):
            assert not custom_headers({name: "x"})


def test_a_delivery_has_its_own_content_type() -> None:
    assert is_reserved_in_delivery("content_type")
    assert dict(custom_headers({"Content-Type": "text/xml"})) == {"Content-Type": "text/xml"}


def test_a_name_indicates_a_credential(subtests: pytest.Subtests) -> None:
    for name in [
        "Authorization",
        "X-API-Key",
        "X_API_Key",
        "X-Bearer",
        "X-Client-Cert",
        "X-OTP",
        "x_pat",
    ]:
        with subtests.test(name=name):
            assert is_credential(name)
            assert is_secret(name)


def test_a_signature_is_secret_but_no_credential(subtests: pytest.Subtests) -> None:
    for name in [
        "X-Signature",
        "X-Hub-Signature-256",
        "x_signature",
        "Sign",
        "X-HMAC",
        "X-Hmac-Sha256",
    ]:
        with subtests.test(name=name):
            assert is_secret(name)
            assert not is_credential(name)


def test_a_part_of_a_word_indicates_nothing(subtests: pytest.Subtests) -> None:
    for name in [
        "X-Pattern",
        "X-Path",
        "X-Design",
        "X-Assigned",
        "X-Certain",
        "X-Option",
        "X-Author",
    ]:
        with subtests.test(name=name):
            assert not is_secret(name)


def test_a_header_with_a_line_break_or_nul_is_dropped(subtests: pytest.Subtests) -> None:
    for name, value in [
        ("X-A", "1\r\nHost: evil.test"),
        ("X-A", "1\nX-Service-Token: abc"),
        ("X-A", "1\r"),
        ("X-A", "a\0b"),
        ("X-A\r\nHost", "evil.test"),
        ("X-A\nHost", "evil.test"),
        ("X-A\0", "b"),
    ]:
        with subtests.test(name=name, value=value):
            assert not custom_headers({name: value})


def test_a_header_whose_name_is_no_token_is_dropped(subtests: pytest.Subtests) -> None:
    for name in ["Host: evil.test", "Host:", "X A", "", "X-\u00e9", "X(a)"]:
        with subtests.test(name=name):
            assert not custom_headers({name: "x"})


async def test_a_custom_header_never_makes_the_request_crash(
    loopback: Egress, site: Site, subtests: pytest.Subtests
) -> None:
    for value in ("a\x0bb", "a\x7fb", "\x1b[31m"):
        with subtests.test(value=value):
            headers = custom_headers({"X-A": value})
            answer = await loopback.request("GET", site.url(), headers=headers)
            assert answer.status == 200
