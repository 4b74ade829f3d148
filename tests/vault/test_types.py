"""The eight types of credentials: which secrets each takes, and what it says of wrong ones."""

from typing import Any

import jsonschema_rs
import pytest

from tests.vault.making import GOOD, PATH, TYPES, create, revealed, wrong
from tests.world import Client

NEEDED = {
    "api_key": ["api_key"],
    "oauth2": ["client_id", "client_secret", "token_url"],
    "basic_auth": ["username", "password"],
    "bearer_token": ["token"],
    "database": ["host", "database", "username"],
    "ssh": ["host", "username", "private_key"],
    "smtp": ["host"],
}
# A value of each key that cannot be, with a text in it that must not be repeated.
HIDDEN = "do-not-repeat-me"
BAD: dict[str, list[Any]] = {
    "scopes": [HIDDEN, [5], [""], ["x" * 256], ["x"] * 101, {HIDDEN: 1}],
    "port": [HIDDEN, 0, 65536, 1.5, -1, [HIDDEN], True],
    "ssl_mode": [HIDDEN, 5, None, ""],
    "engine": [HIDDEN, "sqlite", 5],
    "use_tls": [HIDDEN, 1, None],
}
BAD_TEXT: list[Any] = [5, None, [HIDDEN], {HIDDEN: HIDDEN}, HIDDEN + "x" * 20_000]

CASES = [
    (type_, key, bad)
    for type_, good in GOOD.items()
    if type_ != "custom"
    for key in good
    for bad in BAD.get(key, BAD_TEXT)
]


async def _schemas(admin: Client) -> dict[str, Any]:
    answer = await admin.get(f"{PATH}/types")
    assert answer.status_code == 200
    return {item["type"]: item for item in answer.json()["data"]}


async def _wrong(admin: Client, type_: str, secrets: dict[str, Any]) -> set[str]:
    """The names of what is wrong; nobody finds a value there."""
    answer = await admin.post(PATH, {"name": "A", "type": type_, "secrets": secrets})
    details = wrong(answer)
    assert HIDDEN not in answer.text
    assert "planted" not in answer.text
    return set(details)


async def test_the_eight_types_are_listed_with_how_they_are_tried(admin: Client) -> None:
    found = await _schemas(admin)
    assert list(found) == TYPES
    for item in found.values():
        assert set(item) == {"type", "name", "description", "tested_by", "schema"}
        assert item["name"]
        assert item["description"]
        assert item["tested_by"]


@pytest.mark.parametrize("type_", TYPES)
async def test_a_published_schema_takes_what_is_good(admin: Client, type_: str) -> None:
    schema = (await _schemas(admin))[type_]["schema"]
    assert jsonschema_rs.validator_for(schema).is_valid(GOOD[type_])


@pytest.mark.parametrize("type_", NEEDED)
async def test_a_published_schema_knows_every_key_and_those_that_are_needed(
    admin: Client, type_: str
) -> None:
    schema = (await _schemas(admin))[type_]["schema"]
    assert set(schema["properties"]) == set(GOOD[type_])
    assert set(schema["required"]) == set(NEEDED[type_])


async def test_published_schemas_refuse_what_is_bad(admin: Client) -> None:
    schemas = {
        type_: jsonschema_rs.validator_for(item["schema"])
        for type_, item in (await _schemas(admin)).items()
    }
    taken = [
        (type_, key)
        for type_, key, bad in CASES
        if schemas[type_].is_valid({**GOOD[type_], key: bad})
    ]
    taken += [
        (type_, "unknown")
        for type_ in NEEDED
        if schemas[type_].is_valid({**GOOD[type_], "unknown": "x"})
    ]
    taken += [
        (type_, f"without {key}")
        for type_, keys in NEEDED.items()
        for key in keys
        if schemas[type_].is_valid({k: v for k, v in GOOD[type_].items() if k != key})
    ]
    assert taken == []


CUSTOM_BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "secrets"),
    ({str(number): "x" for number in range(51)}, "secrets"),
    ({"good": "x", "bad": 5}, "secrets.bad"),
    ({"bad": None}, "secrets.bad"),
    ({"bad": [HIDDEN]}, "secrets.bad"),
    ({"bad": HIDDEN + "x" * 20_000}, "secrets.bad"),
]


async def test_the_published_schema_of_custom_refuses_what_is_bad(admin: Client) -> None:
    schema = jsonschema_rs.validator_for((await _schemas(admin))["custom"]["schema"])
    cases = [*(bad for bad, _ in CUSTOM_BAD), {"": "x"}, {"x" * 101: "x"}]
    assert [bad for bad in cases if schema.is_valid(bad)] == []


@pytest.mark.parametrize(("secrets", "field"), CUSTOM_BAD)
async def test_a_wrong_custom_secret_is_named_and_not_shown(
    admin: Client, secrets: dict[str, Any], field: str
) -> None:
    assert await _wrong(admin, "custom", secrets) == {field}


async def test_every_wrong_custom_secret_is_named_at_once(admin: Client) -> None:
    secrets = {"a": 5, "b": "fine", "c": None, "x" * 101: "x", "": "x"}
    found = await _wrong(admin, "custom", secrets)
    assert {"secrets.a", "secrets.c", "secrets."} < found
    assert len(found) == 4


async def test_custom_takes_fifty_secrets(admin: Client) -> None:
    given = {f"Header-{number}": "" for number in range(50)}
    made = await create(admin, "custom", given)
    assert await revealed(admin, made["id"]) == given


@pytest.mark.parametrize(("type_", "key"), [(t, k) for t, keys in NEEDED.items() for k in keys])
async def test_a_missing_secret_is_named(admin: Client, type_: str, key: str) -> None:
    secrets = {name: value for name, value in GOOD[type_].items() if name != key}
    assert await _wrong(admin, type_, secrets) == {f"secrets.{key}"}


@pytest.mark.parametrize("type_", NEEDED)
async def test_every_missing_secret_is_named_at_once(admin: Client, type_: str) -> None:
    assert await _wrong(admin, type_, {}) == {f"secrets.{key}" for key in NEEDED[type_]}


@pytest.mark.parametrize("type_", NEEDED)
async def test_an_unknown_secret_is_named_and_not_shown(admin: Client, type_: str) -> None:
    secrets = {**GOOD[type_], "unknown": HIDDEN, "another": HIDDEN}
    assert await _wrong(admin, type_, secrets) == {"secrets.unknown", "secrets.another"}


@pytest.mark.parametrize(
    ("type_", "key"), [(type_, key) for type_ in NEEDED for key in GOOD[type_]]
)
async def test_a_wrong_secret_is_named_and_not_shown(admin: Client, type_: str, key: str) -> None:
    for bad in BAD.get(key, BAD_TEXT):
        found = await _wrong(admin, type_, {**GOOD[type_], key: bad})
        assert len(found) == 1
        assert next(iter(found)).startswith(f"secrets.{key}"), bad


@pytest.mark.parametrize("type_", NEEDED)
async def test_new_secrets_are_judged_like_the_first_ones(admin: Client, type_: str) -> None:
    made = await create(admin, type_)
    for path, body in (
        (f"{PATH}/{made['id']}/secrets", {"secrets": {"unknown": HIDDEN}}),
        (f"{PATH}/{made['id']}", {"secrets": {"unknown": HIDDEN}}),
    ):
        answer = await admin.put(path, body)
        keys = {f"secrets.{key}" for key in {"unknown", *NEEDED[type_]}}
        assert set(wrong(answer)) == keys
        assert HIDDEN not in answer.text
    assert await revealed(admin, made["id"]) == GOOD[type_]


@pytest.mark.parametrize("type_", NEEDED)
async def test_what_is_needed_is_enough(admin: Client, type_: str) -> None:
    secrets = {key: GOOD[type_][key] for key in NEEDED[type_]}
    made = await create(admin, type_, secrets)
    assert made["secret_keys"] == sorted(NEEDED[type_])
    assert await revealed(admin, made["id"]) == secrets


@pytest.mark.parametrize(
    "url",
    [
        "not an address",
        "ftp://login.example.com/token",
        "http://login.example.com/token",
        f"https://me:{HIDDEN}@login.example.com/token",
        "https://10.0.0.1/token",
        "https://169.254.169.254/token",
        "https://[::1]/token",
        "https://0x7f.2/token",
        "https://2130706434/token",
    ],
)
async def test_a_token_url_that_must_not_be_asked_is_refused(admin: Client, url: str) -> None:
    secrets = {**GOOD["oauth2"], "token_url": url}
    assert await _wrong(admin, "oauth2", secrets) == {"secrets.token_url"}


async def test_a_secret_may_be_any_text(admin: Client) -> None:
    token = 'ü \t"\\\r\n\u2028😀' + "x" * 10_000
    made = await create(admin, secrets={"token": token})
    assert await revealed(admin, made["id"]) == {"token": token}


async def test_a_nul_in_a_secret_is_refused(admin: Client) -> None:
    body = {"name": "A", "type": "bearer_token", "secrets": {"token": "a\0b"}}
    assert wrong(await admin.post(PATH, body))
