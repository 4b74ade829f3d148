"""Service keys: created, listed, revoked; what programs do with them."""

from datetime import timedelta
from typing import Any

import pytest

from app.kit import clock
from app.services import Services
from tests.assertions import refused
from tests.database import fetch_rows
from tests.identity.service_keys.keys import KEYS_PATH, as_program, create_key, create_program
from tests.model_server import ModelServer
from tests.scripted_agents import talker
from tests.world import World

_AGENT = {"name": "Agent", "primary_model": "local/smollm2", "system_prompt": "Help."}


@pytest.fixture
async def admin(world: World) -> Any:
    return await world.user("tenant_admin")


async def test_a_key_is_shown_once_and_stored_hashed(admin: Any, services: Services) -> None:
    key = await create_key(admin)
    assert key["key"].startswith("svc_")
    assert key["key"].startswith(key["key_prefix"])
    assert (key["role"], key["agent_ids"], key["created_by"]) == (
        "agent_developer",
        None,
        admin.user_id,
    )
    [listed] = (await admin.get(KEYS_PATH)).json()["data"]
    assert listed == {**{k: v for k, v in key.items() if k != "key"}, "last_used_at": None}
    [row] = await fetch_rows(services, "SELECT * FROM service_keys WHERE id = $1", key["id"])
    assert key["key"] not in str(dict(row))


async def test_a_program_works_with_its_key(admin: Any) -> None:
    program = await create_program(admin)
    created = await program.post("/api/v1/agents", _AGENT)
    assert created.status_code == 201, created.text
    assert (await program.get(f"/api/v1/agents/{created.json()['id']}")).status_code == 200
    answer = await program.get("/api/v1/agents")
    assert answer.headers["x-ratelimit-limit"] == "1000000"
    [listed] = (await admin.get(KEYS_PATH)).json()["data"]
    assert listed["last_used_at"] is not None


async def test_a_program_has_the_permissions_of_its_role(admin: Any) -> None:
    program = await create_program(admin, "viewer")
    refusal = refused(await program.post("/api/v1/agents", _AGENT), 403, "forbidden")
    assert refusal["details"] == {"required": "agents:write", "your_role": "viewer"}
    assert "which this service key does not have" in refusal["message"]


async def test_accounts_and_keys_are_for_people(admin: Any, subtests: pytest.Subtests) -> None:
    program = await create_program(admin, "tenant_admin")
    for method, path, required in (
        ("GET", "/users", "admin:users"),
        ("POST", KEYS_PATH, "admin:keys"),
        ("GET", "/roles/viewer/permissions", "admin:users"),
        ("GET", "/auth/me", "account"),
        ("GET", "/api/v1/mfa/status", "account"),
        ("GET", "/api/v1/profile", "account"),
    ):
        with subtests.test(path=path):
            body = {"name": "x", "role": "viewer"} if method == "POST" else None
            error = refused(await program(method, path, json=body), 403, "forbidden")
            assert error["details"] == {"required": required, "your_role": "tenant_admin"}


async def test_a_revoked_key_stops_at_once(admin: Any) -> None:
    key = await create_key(admin)
    program = as_program(admin, key)
    assert (await program.get("/api/v1/agents")).status_code == 200
    assert (await admin.delete(f"{KEYS_PATH}/{key['id']}")).status_code == 204
    error = refused(await program.get("/api/v1/agents"), 401, "unauthorized")
    assert "revoked" in error["message"]
    assert (await admin.get(KEYS_PATH)).json()["data"] == []
    refused(await admin.delete(f"{KEYS_PATH}/{key['id']}"), 404, "service_key_not_found")


async def test_a_key_expires(admin: Any) -> None:
    key = await create_key(admin, expires_at=(clock.now() + timedelta(hours=1)).isoformat())
    program = as_program(admin, key)
    assert (await program.get("/api/v1/agents")).status_code == 200
    with clock.frozen(clock.now() + timedelta(hours=2)):
        error = refused(await program.get("/api/v1/agents"), 401, "unauthorized")
        assert "expired" in error["message"]


async def test_a_wrong_key_is_refused(admin: Any, subtests: pytest.Subtests) -> None:
    key = await create_key(admin)
    for wrong in ("svc_", "svc_" + "x" * 43, key["key"][:-1], key["key"] + "x"):
        with subtests.test(wrong=wrong):
            program = as_program(admin, {**key, "key": wrong})
            refused(await program.get("/api/v1/agents"), 401, "unauthorized")


async def test_a_wrong_body_is_refused(admin: Any, subtests: pytest.Subtests) -> None:
    past = (clock.now() - timedelta(seconds=1)).isoformat()
    for fields, name in (
        ({"role": "owner"}, "role"),
        ({"name": " "}, "name"),
        ({"expires_at": past}, "expires_at"),
        ({"expires_at": "2027-01-01T00:00:00"}, "expires_at"),
        ({"agent_ids": []}, "agent_ids"),
        ({"agent_ids": ["agt_none"]}, "agent_ids.0"),
    ):
        with subtests.test(fields=fields):
            answer = await admin.post(KEYS_PATH, {"name": "x", "role": "viewer", **fields})
            assert set(refused(answer, 422, "validation_error")["details"]) == {name}


async def test_nobody_creates_or_revokes_a_key_above_their_role(world: World, admin: Any) -> None:
    answer = await admin.post(KEYS_PATH, {"name": "x", "role": "super_admin"})
    assert refused(answer, 403, "forbidden")["details"]["required"] == "role:super_admin"
    operator = await world.user("super_admin", admin.tenant_id)
    key = await create_key(operator, "super_admin")
    refused(await admin.delete(f"{KEYS_PATH}/{key['id']}"), 403, "forbidden")


async def test_a_key_of_a_super_admin_may_choose_a_tenant(world: World, admin: Any) -> None:
    operator = await world.user("super_admin")
    program = await create_program(operator, "super_admin")
    created = await program.post("/api/v1/agents", _AGENT, headers={"x-tenant-id": admin.tenant_id})
    assert (await admin.get(f"/api/v1/agents/{created.json()['id']}")).status_code == 200


async def test_a_program_is_the_actor_of_what_it_does(admin: Any) -> None:
    key = await create_key(admin, "tenant_admin")
    program = as_program(admin, key)
    await program.post("/api/v1/agents", _AGENT)
    log = (await admin.get("/api/v1/event-log", params={"event_type": "agent.created"})).json()
    assert log["data"][0]["actor"] == {"type": "service_key", "id": key["id"], "name": "Import"}
    credential = {"name": "Key", "type": "api_key", "secrets": {"api_key": "x"}}
    created = (await program.post("/v1/credentials", credential)).json()
    path = f"/v1/credentials/{created.get('data', created)['id']}/audit"
    [entry] = (await admin.get(path)).json()["data"]
    assert (entry["actor_type"], entry["actor_id"]) == ("service_key", key["id"])


async def test_creating_and_revoking_are_events(admin: Any) -> None:
    key = await create_key(admin)
    await admin.delete(f"{KEYS_PATH}/{key['id']}")
    log = (await admin.get("/api/v1/event-log")).json()["data"]
    assert [entry["type"] for entry in log][:2] == [
        "system.service_key.revoked",
        "system.service_key.created",
    ]
    assert log[0]["data"] == {"key_id": key["id"], "name": "Import", "role": "agent_developer"}


async def test_a_tenant_has_a_limited_number_of_keys(
    admin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.domain.identity.service_keys.queries.MAX_KEYS", 1)
    key = await create_key(admin)
    refused(await admin.post(KEYS_PATH, {"name": "x", "role": "viewer"}), 409, "conflict")
    await admin.delete(f"{KEYS_PATH}/{key['id']}")
    await create_key(admin)


async def test_keys_are_listed_by_their_creator(world: World, admin: Any) -> None:
    key = await create_key(admin)
    colleague = await world.user("tenant_admin", admin.tenant_id)
    await create_key(colleague)
    listed = await admin.get(KEYS_PATH, params={"created_by": admin.user_id})
    assert [item["id"] for item in listed.json()["data"]] == [key["id"]]


async def test_a_program_has_conversations_of_its_own(
    world: World, models: ModelServer, admin: Any
) -> None:
    talk = await talker(world, models, client=admin)
    program = await create_program(admin)
    reply = (await program.post(f"{talk.path}/chat", {"message": "Hi"})).json()
    path = f"/api/v1/conversations/{reply['conversation_id']}"
    assert (await program.get(path)).json()["user_id"] == program.user_id
    more = {"message": "More", "conversation_id": reply["conversation_id"]}
    assert (await program.post(f"{talk.path}/chat", more)).status_code == 200
    refused(await admin.post(f"{talk.path}/chat", more), 404, "conversation_not_found")


async def test_a_key_for_certain_agents_reaches_no_other(
    world: World, models: ModelServer, admin: Any, subtests: pytest.Subtests
) -> None:
    talk = await talker(world, models, client=admin)
    other = await talk.agent("Other")
    program = await create_program(admin, agent_ids=[talk.agent_id])
    hi = {"messages": [{"role": "user", "content": "Hi"}]}
    for method, path, body in (
        ("GET", talk.path, None),
        ("POST", f"{talk.path}/chat", {"message": "Hi"}),
        ("POST", "/v1/chat/completions", {"model": talk.agent_id, **hi}),
        ("POST", "/v1/responses", {"model": talk.agent_id, "input": "Hi"}),
        ("GET", f"/v1/models/{talk.agent_id}", None),
    ):
        with subtests.test(path=path):
            assert (await program(method, path, json=body)).status_code == 200
    for method, path, body in (
        ("GET", "/api/v1/agents", None),
        ("GET", other.path, None),
        ("POST", f"{other.path}/chat", {"message": "Hi"}),
        ("POST", "/v1/chat/completions", {"model": other.agent_id, **hi}),
        ("POST", "/v1/responses", {"model": other.agent_id, "input": "Hi"}),
        ("POST", f"{talk.path}/sub-agents/attach", {"agent_id": other.agent_id}),
        ("GET", "/v1/tools", None),
    ):
        with subtests.test(path=path, body=body):
            error = refused(await program(method, path, json=body), 403, "forbidden")
            assert error["details"]["required"] == "agents:all"
    listed = (await program.get("/v1/models")).json()["data"]
    assert [model["id"] for model in listed] == [talk.agent_id]
    assert (await program.get(f"/v1/models/{other.agent_id}")).status_code == 404
