"""POST /api/v1/agents."""

import asyncio
from datetime import datetime

import pytest

from app.kit import clock
from app.kit.ids import new_id
from app.services import Services
from tests.agents.definition.api_calls import list_names
from tests.agents.definition.database import fetch_agent
from tests.agents.definition.factories import (
    AGENT_KEYS,
    BODY,
    INVALID_FIELDS,
    PATH,
    READ_ONLY_FIELDS,
    create_agent,
)
from tests.assertions import refused
from tests.world import Client, World


async def test_an_agent_is_created_with_required_fields_only(developer: Client) -> None:
    agent = await create_agent(developer)
    assert set(agent) == AGENT_KEYS
    assert agent["id"].startswith("agt_")
    assert len(agent["id"]) == len("agt_") + 26
    expected = {
        **BODY,
        "description": "",
        "temperature": 0.7,
        "max_tokens": 2048,
        "status": "draft",
        "version": 1,
    }
    assert {name: agent[name] for name in expected} == expected


async def test_an_agent_is_created_with_every_field(developer: Client) -> None:
    fields = {
        "name": "Über-Agent",
        "description": "Two\nlines",
        "primary_model": "anthropic/claude-x",
        "system_prompt": "First\nSecond",
        "temperature": 0.25,
        "max_tokens": 77,
        "status": "published",
    }
    agent = await create_agent(developer, **fields)
    assert {name: agent[name] for name in fields} == fields


async def test_times_are_in_utc(developer: Client) -> None:
    agent = await create_agent(developer)
    assert agent["created_at"].endswith("Z")
    assert agent["updated_at"].endswith("Z")
    age = clock.now() - datetime.fromisoformat(agent["created_at"])
    assert abs(age.total_seconds()) < 60


_BOUNDS: list[tuple[str, object]] = [
    ("name", "x"),
    ("name", "ü" * 100),
    ("description", ""),
    ("description", "x" * 2000),
    ("primary_model", "m"),
    ("primary_model", "x" * 200),
    ("system_prompt", "x" * 100_000),
    ("temperature", 0),
    ("temperature", 0.0),
    ("temperature", 1),
    ("temperature", 1.0),
    ("max_tokens", 1),
    ("max_tokens", 1_000_000),
    ("status", "draft"),
    ("status", "published"),
]


async def test_the_bounds_themselves_are_allowed(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for field, value in _BOUNDS:
        with subtests.test(field=field, value=value):
            agent = await create_agent(developer, **{field: value})
            assert (await developer.get(f"{PATH}/{agent['id']}")).json()[field] == value


async def test_a_wrong_field_of_a_new_agent_is_refused(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for field, value in (*INVALID_FIELDS, ("status", "archived")):
        with subtests.test(field=field, value=value):
            answer = await developer.post(PATH, {**BODY, field: value})
            assert answer.status_code == 422
            assert answer.json()["error"]["code"] == "validation_error"
            assert set(answer.json()["error"]["details"]) == {field}
    assert await list_names(developer) == []


async def test_a_line_break_at_the_end_is_refused(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for field in ("name", "primary_model"):
        with subtests.test(field=field):
            answer = await developer.post(PATH, {**BODY, field: "Shop\n"})
            assert answer.status_code == 422
            assert set(answer.json()["error"]["details"]) == {field}


async def test_all_wrong_and_missing_fields_are_reported_at_once(developer: Client) -> None:
    answer = await developer.post(PATH, {"temperature": 5})
    assert answer.status_code == 422
    fields = set(answer.json()["error"]["details"])
    assert fields == {"name", "primary_model", "system_prompt", "temperature"}


async def test_a_body_that_is_no_object_is_refused(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for content in (b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe"):
        with subtests.test(content=content):
            headers = {"content-type": "application/json"}
            answer = await developer("POST", PATH, content=content, headers=headers)
            assert answer.status_code == 422
            assert answer.json()["error"]["code"] == "validation_error"


async def test_a_misspelt_field_is_refused_with_the_name_that_was_meant(developer: Client) -> None:
    answer = await developer.post(PATH, {**BODY, "max_token": 100, "tools": [{"id": "x"}]})
    details = refused(answer, 422, "validation_error")["details"]
    assert details["max_token"] == "is not a known field; did you mean max_tokens?"
    assert details["tools"].startswith("is not a known field; use one of: name, ")


async def test_read_only_fields_are_ignored_on_create(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for field, value in READ_ONLY_FIELDS.items():
        developer = await world.user()
        with subtests.test(field=field, value=value):
            agent = await create_agent(developer, **{field: value})
            row = await fetch_agent(services, agent["id"])
            assert row[field] != value
            assert row["tenant_id"] == developer.tenant_id


async def test_created_at_cannot_be_set(developer: Client) -> None:
    agent = await create_agent(
        developer, created_at="2000-01-01T00:00:00Z", updated_at="2000-01-01"
    )
    assert not agent["created_at"].startswith("2000")
    assert not agent["updated_at"].startswith("2000")


async def test_two_agents_may_have_the_same_name(developer: Client) -> None:
    first, second = await create_agent(developer), await create_agent(developer)
    assert first["id"] != second["id"]


async def test_super_admin_creates_in_the_tenant_of_the_header(
    super_admin: Client, developer: Client
) -> None:
    headers = {"x-tenant-id": developer.tenant_id}
    created = await super_admin.post(PATH, BODY, headers=headers)
    assert created.status_code == 201
    assert (await developer.get(f"{PATH}/{created.json()['id']}")).status_code == 200


async def test_the_same_idempotency_key_creates_one_agent(developer: Client) -> None:
    headers = {"Idempotency-Key": new_id("key")}
    first = await developer.post(PATH, BODY, headers=headers)
    second = await developer.post(PATH, BODY, headers=headers)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert await list_names(developer) == ["Shop"]


async def test_the_same_idempotency_key_at_the_same_time_creates_one_agent(
    developer: Client,
) -> None:
    headers = {"Idempotency-Key": new_id("key")}
    answers = await asyncio.gather(*(developer.post(PATH, BODY, headers=headers) for _ in range(4)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert await list_names(developer) == ["Shop"]


async def test_an_idempotency_key_with_another_body_is_refused(developer: Client) -> None:
    headers = {"Idempotency-Key": new_id("key")}
    await developer.post(PATH, BODY, headers=headers)
    answer = await developer.post(PATH, {**BODY, "name": "Other"}, headers=headers)
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "idempotency_mismatch"
    assert await list_names(developer) == ["Shop"]


async def test_a_refused_create_does_not_use_up_its_idempotency_key(developer: Client) -> None:
    headers = {"Idempotency-Key": new_id("key")}
    wrong = await developer.post(PATH, {**BODY, "name": ""}, headers=headers)
    right = await developer.post(PATH, BODY, headers=headers)
    assert (wrong.status_code, right.status_code) == (422, 201)
