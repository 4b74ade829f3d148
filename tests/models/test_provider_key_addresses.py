"""The `base_url` of a provider key."""

import pytest

from tests.models.provider_keys import PATH, create_key, invalid_fields, key_body, list_keys
from tests.world import Client


@pytest.mark.parametrize(
    ("base_url", "stored"),
    [
        ("https://models.example.com/v1", "https://models.example.com/v1"),
        ("https://models.example.com/v1/", "https://models.example.com/v1"),
        ("https://models.example.com", "https://models.example.com"),
        ("HTTPS://Models.Example.COM/v1", "https://models.example.com/v1"),
        ("https://models.example.com:8443/a/b/v1", "https://models.example.com:8443/a/b/v1"),
        ("https://93.184.216.34/v1", "https://93.184.216.34/v1"),
        ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1"),
        ("http://localhost:8080/v1", "http://localhost:8080/v1"),
        ("https://127.0.0.1/v1", "https://127.0.0.1/v1"),
    ],
)
async def test_an_address_is_stored_in_normal_form(
    admin: Client, base_url: str, stored: str
) -> None:
    assert (await create_key(admin, base_url=base_url))["base_url"] == stored


@pytest.mark.parametrize(
    "host",
    [
        "10.0.0.1",
        "172.16.5.4",
        "192.168.1.1",
        "127.0.0.2",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "255.255.255.255",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:10.0.0.1]",
        "[fd00::1]",
        "[fe80::1]",
        "[64:ff9b::7f00:1]",
        "167772161",
        "0x0a000001",
        "0xa.1",
        "012.0.0.1",
        "10.1",
        "2130706434",
        "10.0.0.1.",
        "\uff11\uff10.0.0.1",
    ],
)
@pytest.mark.parametrize("scheme", ["https", "http"])
async def test_a_private_address_is_refused_unless_the_operator_allows_it(
    admin: Client, scheme: str, host: str
) -> None:
    answer = await admin.post(PATH, key_body(base_url=f"{scheme}://{host}/v1"))
    assert invalid_fields(answer) == {"base_url"}
    assert await list_keys(admin) == []


@pytest.mark.parametrize(
    "url", ["http://models.example.com/v1", "http://93.184.216.34/v1", "HTTP://models.example.com"]
)
async def test_a_key_is_not_sent_unencrypted_unless_the_operator_allows_it(
    admin: Client, url: str
) -> None:
    answer = await admin.post(PATH, key_body(base_url=url))
    assert invalid_fields(answer) == {"base_url"}
    assert answer.json()["error"]["details"]["base_url"] == "must start with https://"


@pytest.mark.parametrize(
    "url",
    [
        "https://me:pass-word-9@models.example.com/v1",
        "https://pass-word-9@models.example.com/v1",
        "https://:pass-word-9@models.example.com/v1",
        "https://:@models.example.com/v1",
        "https://models.example.com/v1?key=pass-word-9",
        "https://models.example.com/v1#pass-word-9",
        "https://models.example.com/v1?a=b#pass-word-9",
    ],
)
async def test_an_address_with_credentials_query_or_fragment_is_refused(
    admin: Client, url: str
) -> None:
    answer = await admin.post(PATH, key_body(base_url=url))
    assert invalid_fields(answer) == {"base_url"}
    assert "pass-word-9" not in answer.text


@pytest.mark.parametrize(
    "url",
    [
        "models.example.com/v1",
        "//models.example.com/v1",
        "/v1",
        "https://",
        "https:///v1",
        "https:models.example.com",
        "ftp://models.example.com/v1",
        "file:///etc/passwd",
        "unix:///run/model.sock",
        "javascript:alert(1)",
        "https://models.example.com:99999/v1",
        "https://models.example.com:port/v1",
        "https://[::1/v1",
        "http://",
        "not an address",
    ],
)
async def test_an_invalid_url_is_refused(admin: Client, url: str) -> None:
    assert invalid_fields(await admin.post(PATH, key_body(base_url=url))) == {"base_url"}


async def test_an_address_of_many_kilobytes_is_refused(admin: Client) -> None:
    answer = await admin.post(
        PATH, key_body(base_url="https://models.example.com/" + "x" * 500_000)
    )
    assert invalid_fields(answer) == {"base_url"}
