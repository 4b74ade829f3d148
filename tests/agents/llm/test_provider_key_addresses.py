"""The `base_url` of a provider key."""

import pytest

from tests.agents.llm.provider_keys import PATH, create_key, invalid_fields, key_body, list_keys
from tests.net.blocked_addresses import SAMPLE_URLS
from tests.world import Client, World

_CASES: list[tuple[str, str]] = [
    ("https://models.example.com/v1", "https://models.example.com/v1"),
    ("https://models.example.com/v1/", "https://models.example.com/v1"),
    ("https://models.example.com", "https://models.example.com"),
    ("HTTPS://Models.Example.COM/v1", "https://models.example.com/v1"),
    ("https://models.example.com:8443/a/b/v1", "https://models.example.com:8443/a/b/v1"),
    ("https://93.184.216.34/v1", "https://93.184.216.34/v1"),
    ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1"),
    ("http://localhost:8080/v1", "http://localhost:8080/v1"),
    ("https://127.0.0.1/v1", "https://127.0.0.1/v1"),
]


async def test_an_address_is_stored_in_normal_form(world: World, subtests: pytest.Subtests) -> None:
    for base_url, stored in _CASES:
        admin = await world.user("tenant_admin")
        with subtests.test(base_url=base_url, stored=stored):
            assert (await create_key(admin, base_url=base_url))["base_url"] == stored


async def test_a_blocked_address_is_refused(admin: Client) -> None:
    for url in SAMPLE_URLS:
        assert invalid_fields(await admin.post(PATH, key_body(base_url=url))) == {"base_url"}, url
    assert await list_keys(admin) == []


async def test_a_key_is_not_sent_unencrypted_unless_the_operator_allows_it(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[str] = [
        "http://models.example.com/v1",
        "http://93.184.216.34/v1",
        "HTTP://models.example.com",
    ]
    for url in cases:
        admin = await world.user("tenant_admin")
        with subtests.test(url=url):
            answer = await admin.post(PATH, key_body(base_url=url))
            assert invalid_fields(answer) == {"base_url"}
            assert answer.json()["error"]["details"]["base_url"] == "must start with https://"


async def test_an_address_with_credentials_query_or_fragment_is_refused(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[str] = [
        "https://me:pass-word-9@models.example.com/v1",
        "https://pass-word-9@models.example.com/v1",
        "https://:pass-word-9@models.example.com/v1",
        "https://:@models.example.com/v1",
        "https://models.example.com/v1?key=pass-word-9",
        "https://models.example.com/v1#pass-word-9",
        "https://models.example.com/v1?a=b#pass-word-9",
    ]
    for url in cases:
        admin = await world.user("tenant_admin")
        with subtests.test(url=url):
            answer = await admin.post(PATH, key_body(base_url=url))
            assert invalid_fields(answer) == {"base_url"}
            assert "pass-word-9" not in answer.text


async def test_an_address_of_many_kilobytes_is_refused(admin: Client) -> None:
    answer = await admin.post(
        PATH, key_body(base_url="https://models.example.com/" + "x" * 500_000)
    )
    assert invalid_fields(answer) == {"base_url"}
