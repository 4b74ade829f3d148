"""The auth of tools: secrets of their own, and credentials of the vault."""

from typing import Any

import pytest

from app.services import Services
from tests.agents.tools.tool_requests import (
    FUNCTION_CONFIG,
    FUNCTION_TOOL,
    PATH,
    WEBHOOK_TOOL,
    create_credential,
    create_tool,
    get_tool,
    load_auth_config,
    update_tool,
)
from tests.assertions import refused
from tests.world import Client, World

# Auth


async def test_sealed_auth_opens_unchanged(services: Services, webhook_id: str) -> None:
    assert await load_auth_config(services, webhook_id) == b'{"token":"planted-token-0123456789"}'


async def test_a_tool_names_the_source_of_its_auth(world: World, developer: Client) -> None:
    credential_id = await create_credential(developer)
    own = (await create_tool(developer, **WEBHOOK_TOOL))["id"]
    auth = {"auth_config": {"credential_id": credential_id}}
    shared = (await create_tool(developer, **{**WEBHOOK_TOOL, **auth}))["id"]
    none = (await create_tool(developer, **FUNCTION_TOOL))["id"]
    reader = await world.user("viewer", developer.tenant_id)
    for tool_id, source, shown in [
        (own, "own", None),
        (shared, "credential", credential_id),
        (none, "none", None),
    ]:
        tool = await get_tool(developer, tool_id)
        assert (tool["auth_source"], tool["credential_id"]) == (source, shown)
        seen = await get_tool(reader, tool_id)
        assert (seen["auth_source"], seen["credential_id"]) == (source, None)


async def test_an_update_without_auth_config_keeps_it(
    developer: Client, services: Services, webhook_id: str
) -> None:
    await update_tool(developer, webhook_id, {"name": "New", "config": {"timeout_ms": 9}})
    assert await load_auth_config(services, webhook_id) == b'{"token":"planted-token-0123456789"}'


async def test_an_auth_config_replaces_the_one_before(
    developer: Client, services: Services, webhook_id: str
) -> None:
    await update_tool(developer, webhook_id, {"auth_config": {"token": "other"}})
    assert await load_auth_config(services, webhook_id) == b'{"token":"other"}'


async def test_an_empty_auth_config_deletes_the_stored_auth(
    developer: Client, services: Services, webhook_id: str, subtests: pytest.Subtests
) -> None:
    cases: list[Any] = [None, {}]
    for auth_config in cases:
        with subtests.test(auth_config=auth_config):
            await update_tool(developer, webhook_id, {"auth_config": {"token": "again"}})
            await update_tool(developer, webhook_id, {"auth_config": auth_config})
            assert await load_auth_config(services, webhook_id) is None


async def test_another_auth_type_drops_the_stored_auth(
    developer: Client, services: Services, subtests: pytest.Subtests
) -> None:
    for auth_type in ("none", "basic", "api_key", "oauth2", "custom"):
        with subtests.test(auth_type=auth_type):
            webhook_id = (await create_tool(developer, **WEBHOOK_TOOL))["id"]
            tool = await update_tool(developer, webhook_id, {"auth_type": auth_type})
            assert tool["auth_type"] == auth_type
            assert await load_auth_config(services, webhook_id) is None


async def test_another_auth_type_may_come_with_its_auth(
    developer: Client, services: Services, webhook_id: str
) -> None:
    auth = {"username": "u", "password": "p"}
    await update_tool(developer, webhook_id, {"auth_type": "basic", "auth_config": auth})
    assert await load_auth_config(services, webhook_id) == b'{"username":"u","password":"p"}'


async def test_a_tool_with_a_new_host_needs_its_auth_again(
    developer: Client, services: Services, subtests: pytest.Subtests
) -> None:
    for url in [
        "https://evil.example.com/in",
        "https://hooks.example.com:8443/in",
        "https://hooks.example.com./in",
        "https://hooks.example.com.evil.example/in",
    ]:
        with subtests.test(url=url):
            webhook_id = (await create_tool(developer, **WEBHOOK_TOOL))["id"]
            answer = await developer.put(f"{PATH}/{webhook_id}", {"config": {"url": url}})
            assert set(refused(answer, 422, "validation_error")["details"]) == {"auth_config"}
            assert (await get_tool(developer, webhook_id))["config"] == WEBHOOK_TOOL["config"]
            await update_tool(
                developer, webhook_id, {"config": {"url": url}, "auth_config": {"token": "again"}}
            )
            assert await load_auth_config(services, webhook_id) == b'{"token":"again"}'


async def test_another_path_of_the_same_host_keeps_the_auth(
    developer: Client, services: Services, webhook_id: str
) -> None:
    await update_tool(
        developer, webhook_id, {"config": {"url": "https://hooks.example.com:443/other"}}
    )
    assert await load_auth_config(services, webhook_id) is not None


async def test_another_type_with_another_host_needs_its_auth_again(
    developer: Client, webhook_id: str
) -> None:
    config = {"kind": "mcp", "url": "https://evil.example.com"}
    change = {"tool_type": "custom", "config": config}
    answer = await developer.put(f"{PATH}/{webhook_id}", change)
    assert set(refused(answer, 422, "validation_error")["details"]) == {"auth_config"}


async def test_a_tool_may_get_a_new_host_without_auth(
    developer: Client, services: Services, webhook_id: str
) -> None:
    change = {"config": {"url": "https://evil.example.com"}, "auth_config": None}
    await update_tool(developer, webhook_id, change)
    assert await load_auth_config(services, webhook_id) is None


AUTH_CONFIGS: dict[str, dict[str, Any]] = {
    "api_key": {
        "api_key_value": "v",
        "api_key_header": "X-Key",
        "api_key_location": "query",
    },
    "oauth2": {
        "token_url": "https://login.example.com/token",
        "client_id": "c",
        "client_secret": "s",
        "scope": "a b",
    },
    "basic": {"username": "u", "password": ""},
    "bearer": {"token": "t"},
    "custom": {"headers": {"X-One": "1", "X-Two": "2"}},
}


async def test_every_auth_type_is_accepted_with_every_key(
    developer: Client, services: Services, subtests: pytest.Subtests
) -> None:
    for auth_type, auth_config in AUTH_CONFIGS.items():
        with subtests.test(auth_type=auth_type):
            fields = {**WEBHOOK_TOOL, "auth_type": auth_type, "auth_config": auth_config}
            tool = await create_tool(developer, **fields)
            assert await load_auth_config(services, tool["id"]) is not None


_REQUIRED_KEYS: list[tuple[str, str]] = [
    ("api_key", "api_key_value"),
    ("oauth2", "token_url"),
    ("oauth2", "client_id"),
    ("oauth2", "client_secret"),
    ("basic", "username"),
    ("basic", "password"),
    ("bearer", "token"),
    ("custom", "headers"),
]


async def test_a_missing_key_of_an_auth_config_is_named(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for auth_type, key in _REQUIRED_KEYS:
        with subtests.test(auth_type=auth_type, key=key):
            auth = {name: value for name, value in AUTH_CONFIGS[auth_type].items() if name != key}
            body = {
                **FUNCTION_TOOL,
                **WEBHOOK_TOOL,
                "auth_type": auth_type,
                "auth_config": auth or {"x": 1},
            }
            error = refused(await developer.post(PATH, body), 422, "validation_error")
            assert f"auth_config.{key}" in error["details"]


_INVALID_KEYS: list[tuple[str, str, Any]] = [
    ("api_key", "api_key_location", "cookie"),
    ("api_key", "api_key_header", "two words"),
    ("api_key", "api_key_header", "X\r\nY"),
    ("oauth2", "token_url", "http://169.254.169.254/token"),
    ("oauth2", "token_url", "http://login.example.com/token"),
    ("oauth2", "token_url", "ftp://login.example.com"),
    ("bearer", "token", ""),
    ("bearer", "token", 5),
    ("bearer", "unknown", "x"),
    ("basic", "username", "x" * 256),
    ("custom", "headers", ["x"]),
]


async def test_a_wrong_key_of_an_auth_config_is_named_and_not_repeated(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for auth_type, key, value in _INVALID_KEYS:
        with subtests.test(auth_type=auth_type, key=key, value=value):
            auth = {**AUTH_CONFIGS[auth_type], key: value}
            body = {**FUNCTION_TOOL, **WEBHOOK_TOOL, "auth_type": auth_type, "auth_config": auth}
            error = refused(await developer.post(PATH, body), 422, "validation_error")
            assert {name.split(".")[1] for name in error["details"]} == {key}
            assert not isinstance(value, str) or not value or value not in str(error["details"])


async def test_functions_and_scripts_have_no_auth(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for tool_type in ("function", "script"):
        with subtests.test(tool_type=tool_type):
            config: dict[str, Any] = FUNCTION_CONFIG
            if tool_type == "script":
                config = {"runtime": "bash", "entrypoint": "a.sh", "files": {"a.sh": "true"}}
            body = {
                **FUNCTION_TOOL,
                "tool_type": tool_type,
                "config": config,
                "auth_type": "bearer",
            }
            error = refused(await developer.post(PATH, body), 422, "validation_error")
            assert set(error["details"]) == {"auth_type"}


# Credentials of the vault


async def test_a_tool_may_name_a_credential_of_the_vault(
    developer: Client, services: Services
) -> None:
    credential_id = await create_credential(developer)
    tool = await create_tool(
        developer, **{**WEBHOOK_TOOL, "auth_config": {"credential_id": credential_id}}
    )
    assert (
        await load_auth_config(services, tool["id"])
        == f'{{"credential_id":"{credential_id}"}}'.encode()
    )


async def test_a_credential_that_does_not_fit_is_refused(
    developer: Client, world: World, subtests: pytest.Subtests
) -> None:
    for case in ("unknown", "foreign", "another type"):
        with subtests.test(case=case):
            ids = {"unknown": "crd_none"}
            if case == "foreign":
                ids[case] = await create_credential(await world.user("agent_developer"))
            if case == "another type":
                ids[case] = await create_credential(developer, "api_key")
            body = {**FUNCTION_TOOL, **WEBHOOK_TOOL, "auth_config": {"credential_id": ids[case]}}
            error = refused(await developer.post(PATH, body), 422, "validation_error")
            assert set(error["details"]) == {"auth_config.credential_id"}


async def test_a_new_host_for_a_tool_with_an_access_rule_needs_credentials_write(
    developer: Client, world: World, role_without_credentials: str
) -> None:
    credential_id = await create_credential(developer)
    auth = {"credential_id": credential_id}
    tool = await create_tool(developer, **{**WEBHOOK_TOOL, "auth_config": auth})
    rule = {"integration_type": "tool", "integration_id": tool["id"]}
    answer = await developer.post(f"/v1/credentials/{credential_id}/access", rule)
    assert answer.status_code == 201, answer.text
    caller = await world.user(role_without_credentials, developer.tenant_id)
    change = {"config": {"url": "https://evil.example.com"}, "auth_config": auth}
    answer = await caller.put(f"{PATH}/{tool['id']}", change)
    assert refused(answer, 403, "forbidden")["details"]["required"] == "credentials:write"
    assert (await get_tool(developer, tool["id"]))["config"] == WEBHOOK_TOOL["config"]
    await update_tool(caller, tool["id"], {"name": "Harmless"})
    await update_tool(developer, tool["id"], change)


async def test_a_new_host_for_a_tool_without_an_access_rule_needs_only_tools_write(
    developer: Client, world: World, role_without_credentials: str, webhook_id: str
) -> None:
    caller = await world.user(role_without_credentials, developer.tenant_id)
    change = {"config": {"url": "https://example.com"}, "auth_config": {"token": "x"}}
    assert (await caller.put(f"{PATH}/{webhook_id}", change)).status_code == 200
