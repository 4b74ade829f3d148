"""Custom headers of a tenant: which are sent, and which are dropped."""

import pytest

from app.kit.egress import Egress, custom_headers
from tests.kit.egress_servers import Site


def test_ordinary_headers_are_kept() -> None:
    headers = {"Authorization": "Bearer a", "X-Custom": "b", "Accept": "text/plain"}
    assert dict(custom_headers(headers)) == headers


@pytest.mark.parametrize(
    "name",
    [
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
    ],
)
def test_a_header_that_only_the_service_sets_is_dropped(name: str) -> None:
    assert not custom_headers({name: "x"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-A", "1\r\nHost: evil.test"),
        ("X-A", "1\nX-Service-Token: abc"),
        ("X-A", "1\r"),
        ("X-A", "a\0b"),
        ("X-A\r\nHost", "evil.test"),
        ("X-A\nHost", "evil.test"),
        ("X-A\0", "b"),
    ],
)
def test_a_header_with_a_line_break_or_nul_is_dropped(name: str, value: str) -> None:
    assert not custom_headers({name: value})


@pytest.mark.parametrize("name", ["Host: evil.test", "Host:", "X A", "", "X-\u00e9", "X(a)"])
def test_a_header_whose_name_is_no_token_is_dropped(name: str) -> None:
    assert not custom_headers({name: "x"})


@pytest.mark.parametrize("value", ["a\x0bb", "a\x7fb", "\x1b[31m"])
async def test_a_custom_header_never_makes_the_request_crash(
    loopback: Egress, site: Site, value: str
) -> None:
    headers = custom_headers({"X-A": value})
    answer = await loopback.request("GET", site.url(), headers=headers)
    assert answer.status == 200
