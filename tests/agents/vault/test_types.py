"""The eight types of credentials: their secrets, schemas and validation."""

from typing import Any

import jsonschema_rs
import pytest

from app.domain.agents.vault.types import TYPES
from tests.agents.vault.api import PATH, read_invalid_fields, reveal_secrets
from tests.agents.vault.factories import VALID_SECRETS, create_credential
from tests.world import Client, World

REQUIRED = {
    "api_key": ["api_key"],
    "oauth2": ["client_id", "client_secret", "token_url"],
    "basic_auth": ["username", "password"],
    "bearer_token": ["token"],
    "database": ["host", "database", "username"],
    "ssh": ["host", "username", "private_key"],
    "smtp": ["host"],
}
# Invalid values by key. Responses must not repeat SECRET_TEXT.
SECRET_TEXT = "do-not-repeat-me"
INVALID_VALUES: dict[str, list[Any]] = {
    "scopes": [SECRET_TEXT, [5], [""], ["x" * 256], ["x"] * 101, {SECRET_TEXT: 1}],
    "port": [SECRET_TEXT, 0, 65536, 1.5, -1, [SECRET_TEXT], True],
    "ssl_mode": [SECRET_TEXT, 5, None, ""],
    "engine": [SECRET_TEXT, "sqlite", 5],
    "use_tls": [SECRET_TEXT, 1, None],
}
INVALID_TEXTS: list[Any] = [
    5,
    None,
    [SECRET_TEXT],
    {SECRET_TEXT: SECRET_TEXT},
    SECRET_TEXT + "x" * 20_000,
]

CASES = [
    (type_, key, value)
    for type_, secrets in VALID_SECRETS.items()
    if type_ != "custom"
    for key in secrets
    for value in INVALID_VALUES.get(key, INVALID_TEXTS)
]


async def _list_types(admin: Client) -> dict[str, Any]:
    answer = await admin.get(f"{PATH}/types")
    assert answer.status_code == 200
    return {item["type"]: item for item in answer.json()["data"]}


async def _create_invalid(admin: Client, type_: str, secrets: dict[str, Any]) -> set[str]:
    """Returns the refused fields; the response must not contain a value."""
    answer = await admin.post(PATH, {"name": "A", "type": type_, "secrets": secrets})
    details = read_invalid_fields(answer)
    assert SECRET_TEXT not in answer.text
    assert "planted" not in answer.text
    return set(details)


async def test_the_eight_types_are_listed_with_their_tests(admin: Client) -> None:
    types = await _list_types(admin)
    assert list(types) == list(TYPES)
    for item in types.values():
        assert set(item) == {"type", "name", "description", "tested_by", "schema"}
        assert item["name"]
        assert item["description"]
        assert item["tested_by"]


async def test_a_published_schema_accepts_valid_secrets(
    world: World, subtests: pytest.Subtests
) -> None:
    for type_ in TYPES:
        admin = await world.user("tenant_admin")
        with subtests.test(type_=type_):
            schema = (await _list_types(admin))[type_]["schema"]
            assert jsonschema_rs.validator_for(schema).is_valid(VALID_SECRETS[type_])


async def test_a_published_schema_has_every_key_and_the_required_ones(
    world: World, subtests: pytest.Subtests
) -> None:
    for type_, required in REQUIRED.items():
        admin = await world.user("tenant_admin")
        with subtests.test(type_=type_):
            schema = (await _list_types(admin))[type_]["schema"]
            assert set(schema["properties"]) == set(VALID_SECRETS[type_])
            assert set(schema["required"]) == set(required)


async def test_published_schemas_refuse_invalid_secrets(admin: Client) -> None:
    schemas = {
        type_: jsonschema_rs.validator_for(item["schema"])
        for type_, item in (await _list_types(admin)).items()
    }
    accepted = [
        (type_, key)
        for type_, key, value in CASES
        if schemas[type_].is_valid({**VALID_SECRETS[type_], key: value})
    ]
    accepted += [
        (type_, "unknown")
        for type_ in REQUIRED
        if schemas[type_].is_valid({**VALID_SECRETS[type_], "unknown": "x"})
    ]
    accepted += [
        (type_, f"without {key}")
        for type_, keys in REQUIRED.items()
        for key in keys
        if schemas[type_].is_valid({k: v for k, v in VALID_SECRETS[type_].items() if k != key})
    ]
    assert accepted == []


INVALID_CUSTOM: list[tuple[dict[str, Any], str]] = [
    ({}, "secrets"),
    ({str(number): "x" for number in range(51)}, "secrets"),
    ({"good": "x", "bad": 5}, "secrets.bad"),
    ({"bad": None}, "secrets.bad"),
    ({"bad": [SECRET_TEXT]}, "secrets.bad"),
    ({"bad": SECRET_TEXT + "x" * 20_000}, "secrets.bad"),
]


async def test_the_published_schema_of_custom_refuses_invalid_secrets(admin: Client) -> None:
    schema = jsonschema_rs.validator_for((await _list_types(admin))["custom"]["schema"])
    cases = [*(value for value, _ in INVALID_CUSTOM), {"": "x"}, {"x" * 101: "x"}]
    assert [value for value in cases if schema.is_valid(value)] == []


async def test_a_wrong_custom_secret_is_named_and_not_shown(
    world: World, subtests: pytest.Subtests
) -> None:
    for secrets, field in INVALID_CUSTOM:
        admin = await world.user("tenant_admin")
        with subtests.test(secrets=secrets, field=field):
            assert await _create_invalid(admin, "custom", secrets) == {field}


async def test_every_wrong_custom_secret_is_named_at_once(admin: Client) -> None:
    secrets = {"a": 5, "b": "fine", "c": None, "x" * 101: "x", "": "x"}
    fields = await _create_invalid(admin, "custom", secrets)
    assert {"secrets.a", "secrets.c", "secrets."} < fields
    assert len(fields) == 4


async def test_a_custom_credential_may_have_fifty_secrets(admin: Client) -> None:
    secrets = {f"Header-{number}": "" for number in range(50)}
    credential = await create_credential(admin, "custom", secrets)
    assert await reveal_secrets(admin, credential["id"]) == secrets


async def test_a_missing_secret_is_named(world: World, subtests: pytest.Subtests) -> None:
    for type_, key in [(t, k) for t, keys in REQUIRED.items() for k in keys]:
        admin = await world.user("tenant_admin")
        with subtests.test(type_=type_, key=key):
            secrets = {name: value for name, value in VALID_SECRETS[type_].items() if name != key}
            assert await _create_invalid(admin, type_, secrets) == {f"secrets.{key}"}


async def test_every_missing_secret_is_named_at_once(
    world: World, subtests: pytest.Subtests
) -> None:
    for type_, required in REQUIRED.items():
        admin = await world.user("tenant_admin")
        with subtests.test(type_=type_):
            assert await _create_invalid(admin, type_, {}) == {f"secrets.{key}" for key in required}


async def test_an_unknown_secret_is_named_and_not_shown(
    world: World, subtests: pytest.Subtests
) -> None:
    for type_ in REQUIRED:
        admin = await world.user("tenant_admin")
        with subtests.test(type_=type_):
            secrets = {**VALID_SECRETS[type_], "unknown": SECRET_TEXT, "another": SECRET_TEXT}
            assert await _create_invalid(admin, type_, secrets) == {
                "secrets.unknown",
                "secrets.another",
            }


async def test_a_wrong_secret_is_named_and_not_shown(
    world: World, subtests: pytest.Subtests
) -> None:
    admin = await world.user("tenant_admin")
    for type_, key in [(name, key) for name in REQUIRED for key in VALID_SECRETS[name]]:
        with subtests.test(type_=type_, key=key):
            for value in INVALID_VALUES.get(key, INVALID_TEXTS):
                fields = await _create_invalid(admin, type_, {**VALID_SECRETS[type_], key: value})
                assert len(fields) == 1
                assert next(iter(fields)).startswith(f"secrets.{key}"), value


async def test_new_secrets_are_validated_like_the_first_ones(
    world: World, subtests: pytest.Subtests
) -> None:
    for type_, required in REQUIRED.items():
        admin = await world.user("tenant_admin")
        with subtests.test(type_=type_):
            credential = await create_credential(admin, type_)
            for path, body in (
                (f"{PATH}/{credential['id']}/secrets", {"secrets": {"unknown": SECRET_TEXT}}),
                (f"{PATH}/{credential['id']}", {"secrets": {"unknown": SECRET_TEXT}}),
            ):
                answer = await admin.put(path, body)
                keys = {f"secrets.{key}" for key in {"unknown", *required}}
                assert set(read_invalid_fields(answer)) == keys
                assert SECRET_TEXT not in answer.text
            assert await reveal_secrets(admin, credential["id"]) == VALID_SECRETS[type_]


async def test_the_required_secrets_are_enough(world: World, subtests: pytest.Subtests) -> None:
    for type_, required in REQUIRED.items():
        admin = await world.user("tenant_admin")
        with subtests.test(type_=type_):
            secrets = {key: VALID_SECRETS[type_][key] for key in required}
            credential = await create_credential(admin, type_, secrets)
            assert credential["secret_keys"] == sorted(required)
            assert await reveal_secrets(admin, credential["id"]) == secrets


_CASES: list[str] = [
    "not an address",
    "ftp://login.example.com/token",
    "http://login.example.com/token",
    f"https://me:{SECRET_TEXT}@login.example.com/token",
    "https://10.0.0.1/token",
    "https://169.254.169.254/token",
    "https://[::1]/token",
    "https://0x7f.2/token",
    "https://2130706434/token",
]


async def test_a_token_url_that_may_not_be_requested_is_refused(
    world: World, subtests: pytest.Subtests
) -> None:
    for url in _CASES:
        admin = await world.user("tenant_admin")
        with subtests.test(url=url):
            secrets = {**VALID_SECRETS["oauth2"], "token_url": url}
            assert await _create_invalid(admin, "oauth2", secrets) == {"secrets.token_url"}


async def test_a_secret_may_be_any_text(admin: Client) -> None:
    token = 'ü \t"\\\r\n\u2028😀' + "x" * 10_000
    credential = await create_credential(admin, secrets={"token": token})
    assert await reveal_secrets(admin, credential["id"]) == {"token": token}


async def test_a_nul_in_a_secret_is_refused(admin: Client) -> None:
    body = {"name": "A", "type": "bearer_token", "secrets": {"token": "a\0b"}}
    assert read_invalid_fields(await admin.post(PATH, body))
