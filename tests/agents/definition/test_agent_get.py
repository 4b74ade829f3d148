"""GET /api/v1/agents/:id, and access to agents."""

import pytest

from tests.agents.definition.factories import AGENT_KEYS, BODY, NO_AGENT, PATH, create_agent
from tests.world import Client, World

FULL_KEYS = AGENT_KEYS | {"tools", "knowledge_base", "sub_agents"}


async def test_a_full_agent_has_every_field(developer: Client) -> None:
    agent = await create_agent(developer, description="Sells", status="published")
    answer = await developer.get(f"{PATH}/{agent['id']}")
    assert answer.status_code == 200
    assert set(answer.json()) == FULL_KEYS
    assert answer.json() == {
        **agent,
        "tools": [],
        "knowledge_base": {"enabled": False, "document_count": 0, "chunk_count": 0},
        "sub_agents": [],
    }


async def test_a_full_agent_has_its_sub_agents_in_order(developer: Client) -> None:
    parent, other = (
        await create_agent(developer, name="P"),
        await create_agent(developer, name="Other"),
    )
    path = f"{PATH}/{parent['id']}"
    attached = await developer.post(f"{path}/sub-agents/attach", {"agent_id": other["id"]})
    direct = await developer.post(f"{path}/sub-agents/direct", {**BODY, "name": "Own"})
    assert (attached.status_code, direct.status_code) == (201, 201)
    assert (await developer.get(path)).json()["sub_agents"] == [
        {"id": other["id"], "name": "Other", "relationship_type": "template"},
        {"id": direct.json()["id"], "name": "Own", "relationship_type": "direct"},
    ]


_ROUTES: list[tuple[str, str]] = [
    ("GET", ""),
    ("PUT", ""),
    ("DELETE", ""),
    ("GET", "/status"),
    ("GET", "/stats"),
    ("GET", "/logs"),
    ("GET", "/conversations"),
]


async def test_a_missing_agent_is_not_found(developer: Client, subtests: pytest.Subtests) -> None:
    for bad_id in (NO_AGENT, "x", "x" * 3000, "%25"):
        for method, tail in _ROUTES:
            with subtests.test(bad_id=bad_id, method=method, tail=tail):
                content = {"json": {"name": "New"}} if method == "PUT" else {}
                answer = await developer(method, f"{PATH}/{bad_id}{tail}", **content)
                assert answer.status_code == 404
                assert answer.json()["error"]["code"] == "agent_not_found"


async def test_another_tenants_agent_is_not_found(world: World, subtests: pytest.Subtests) -> None:
    for method in ("GET", "PUT", "DELETE"):
        developer = await world.user()
        with subtests.test(method=method):
            owner = await world.user()
            agent = await create_agent(owner)
            content = {"json": {"name": "Mine"}} if method == "PUT" else {}
            answer = await developer(method, f"{PATH}/{agent['id']}", **content)
            assert answer.status_code == 404
            assert answer.json()["error"]["code"] == "agent_not_found"
            assert (await owner.get(f"{PATH}/{agent['id']}")).json()["name"] == "Shop"


async def test_super_admin_reads_any_agent_unless_a_header_selects_another_tenant(
    super_admin: Client, developer: Client
) -> None:
    agent = await create_agent(developer)
    headers = {"x-tenant-id": super_admin.tenant_id}
    assert (await super_admin.get(f"{PATH}/{agent['id']}")).status_code == 200
    assert (await super_admin.get(f"{PATH}/{agent['id']}", headers=headers)).status_code == 404


async def test_how_an_agent_works_is_hidden_from_those_who_may_not_change_it(
    world: World, subtests: pytest.Subtests
) -> None:
    for role in ("viewer", "agent_user"):
        developer = await world.user()
        with subtests.test(role=role):
            agent = await create_agent(developer)
            caller = await world.user(role, developer.tenant_id)
            names = ("id", "name", "description", "status", "created_at", "updated_at")
            shown = {name: agent[name] for name in names}
            hidden = {"primary_model": "", "temperature": None}
            (summary,) = (await caller.get(PATH)).json()["data"]
            assert summary == {**shown, **hidden}
            nothing = {"enabled": False, "document_count": 0, "chunk_count": 0}
            assert (await caller.get(f"{PATH}/{agent['id']}")).json() == {
                **shown,
                **hidden,
                "system_prompt": "",
                "max_tokens": None,
                "version": 1,
                "tools": [],
                "sub_agents": [],
                "knowledge_base": nothing,
            }


async def test_roles_without_the_permission_cannot_change_agents(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, str, str]] = [
        ("viewer", "POST", "agents:write"),
        ("viewer", "PUT", "agents:write"),
        ("viewer", "DELETE", "agents:delete"),
        ("agent_user", "POST", "agents:write"),
        ("agent_user", "PUT", "agents:write"),
        ("agent_user", "DELETE", "agents:delete"),
    ]
    for role, method, required in cases:
        developer = await world.user()
        with subtests.test(role=role, method=method):
            agent = await create_agent(developer)
            caller = await world.user(role, developer.tenant_id)
            path = PATH if method == "POST" else f"{PATH}/{agent['id']}"
            content = {} if method == "DELETE" else {"json": BODY}
            answer = await caller(method, path, **content)
            assert answer.status_code == 403
            assert answer.json()["error"]["details"] == {"required": required, "your_role": role}
            assert (await caller.get(f"{PATH}/{agent['id']}")).status_code == 200
