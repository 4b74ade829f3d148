"""The metadata of credentials: its limits, and the keys that Parley uses."""

from typing import Any

import pytest

from tests.agents.vault.api import PATH, get_credential, read_invalid_fields
from tests.agents.vault.factories import build_body, create_credential
from tests.assertions import refused
from tests.world import Client, World


async def test_metadata_is_returned_unchanged(admin: Client) -> None:
    metadata = {"owner": "support", "list": [1, 2.5, None, True], "map": {"ü": {"deep": []}}}
    credential = await create_credential(admin, metadata=metadata)
    assert (await get_credential(admin, credential["id"]))["metadata"] == metadata


def _build_nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"x": value}
    return value


async def test_metadata_has_limits(world: World, subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"text": "x" * 16_400}, "metadata"),
        ({"x" * 16_400: 1}, "metadata"),
        (_build_nested(17), "metadata"),
        (_build_nested(200), "metadata"),
        ({"text": "nul\0"}, "body"),
    ]
    for metadata, field in cases:
        admin = await world.user("tenant_admin")
        with subtests.test(metadata=metadata, field=field):
            answer = await admin.post(PATH, build_body(metadata=metadata))
            assert set(read_invalid_fields(answer)) == {field}
            credential = await create_credential(admin)
            answer = await admin.put(f"{PATH}/{credential['id']}", {"metadata": metadata})
            assert set(read_invalid_fields(answer)) == {field}


async def test_metadata_may_be_as_large_as_the_limit(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[dict[str, Any]] = [{"x": "x" * (16_384 - 8)}, _build_nested(16)]
    for metadata in cases:
        admin = await world.user("tenant_admin")
        with subtests.test(metadata=metadata):
            assert (await create_credential(admin, metadata=metadata))["metadata"] == metadata


async def test_metadata_that_cannot_be_decoded_is_refused(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[bytes] = [
        b"[" * 100_000,
        b'{"x": ' * 100_000,
        b'{"n": 1e400}',
        b'{"t": "\\ud800"}',
    ]
    for content in cases:
        admin = await world.user("tenant_admin")
        with subtests.test(content=content):
            body = b'{"name": "A", "type": "bearer_token", "secrets": {"token": "t"}, "metadata": '
            headers = {"content-type": "application/json"}
            answer = await admin("POST", PATH, content=body + content + b"}", headers=headers)
            assert set(read_invalid_fields(answer)) == {"body"}


async def test_a_very_large_number_in_metadata_is_returned_unchanged(admin: Client) -> None:
    credential = await create_credential(admin, metadata={"n": 10**400})
    assert (await get_credential(admin, credential["id"]))["metadata"] == {"n": 10**400}


_CASES: list[object] = [
    5,
    "",
    "not an address",
    "ftp://example.com",
    "http://example.com/me",
    "https://me:pass-word-9@example.com/me",
    "https://10.0.0.1/me",
    "https://169.254.169.254/latest/meta-data",
    "http://[::1]/me",
]


async def test_a_test_url_that_may_not_be_requested_is_refused(
    world: World, subtests: pytest.Subtests
) -> None:
    for url in _CASES:
        admin = await world.user("tenant_admin")
        with subtests.test(url=url):
            answer = await admin.post(PATH, build_body(metadata={"test_url": url}))
            assert set(read_invalid_fields(answer)) == {"metadata.test_url"}
            assert "pass-word-9" not in answer.text
            credential = await create_credential(admin)
            answer = await admin.put(f"{PATH}/{credential['id']}", {"metadata": {"test_url": url}})
            assert set(read_invalid_fields(answer)) == {"metadata.test_url"}


async def test_changing_where_secrets_are_sent_needs_the_reveal_permission(
    world: World, subtests: pytest.Subtests
) -> None:
    for key in ("test_url", "allowed_hosts"):
        admin = await world.user("tenant_admin")
        with subtests.test(key=key):
            credential = await create_credential(admin)
            developer = await world.user("agent_developer", admin.tenant_id)
            value = "https://evil.example.com/" if key == "test_url" else ["evil.example.com"]
            path = f"{PATH}/{credential['id']}"
            answer = await developer.put(path, {"metadata": {key: value}})
            assert refused(answer, 403, "forbidden")["details"]["required"] == "credentials:reveal"
            assert (await admin.put(path, {"metadata": {key: value}})).status_code == 200


async def test_allowed_hosts_are_a_list_of_names(world: World, subtests: pytest.Subtests) -> None:
    cases: list[object] = ["evil.example.com", [1], [""], {}]
    for hosts in cases:
        admin = await world.user("tenant_admin")
        with subtests.test(hosts=hosts):
            answer = await admin.post(PATH, build_body(metadata={"allowed_hosts": hosts}))
            fields = read_invalid_fields(answer)
            assert all(field.startswith("metadata.allowed_hosts") for field in fields)
