"""The tools of an agent: attached, ordered, switched, and run with settings of their own."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from app.services import Services
from db.session import ALL_TENANTS
from tests.asking import refused
from tests.tools.factories import Bench, bench_of
from tests.tools.site import Site, always, open_site
from tests.world import Client, World
from workers.main import WorkerProcess

CODE = "def main(input):\n    return {'code': 'own'}\n"
OTHER_CODE = "def main(input):\n    return {'code': 'override'}\n"
FUNCTION = {"runtime": "python", "code": CODE}
ATTACHED_KEYS = {
    "agent_id",
    "tool_id",
    "is_enabled",
    "display_order",
    "config_override",
    "attached_at",
}
SHOWN_KEYS = (ATTACHED_KEYS - {"agent_id"}) | {"tool_name", "tool_type", "category"}
TOKEN = "planted-own-token"
OVERRIDE_TOKEN = "planted-override-token"
NO_AGENT = "agt_00000000000000000000000000"
NO_TOOL = "tool_00000000000000000000000000"


class Attaching(Bench):
    """An administrator with an agent."""

    agent_id: str

    @property
    def path(self) -> str:
        return f"/v1/agents/{self.agent_id}/tools"

    async def attach(self, tool_id: str, **more: Any) -> httpx.Response:
        return await self.client.post(self.path, {"tool_id": tool_id, **more})

    async def attached(self, tool_id: str, **more: Any) -> dict[str, Any]:
        answer = await self.attach(tool_id, **more)
        assert answer.status_code == 201, answer.text
        assert set(answer.json()) == {"data"}
        made: dict[str, Any] = answer.json()["data"]
        return made

    async def patch(self, tool_id: str, change: object) -> httpx.Response:
        return await self.client("PATCH", f"{self.path}/{tool_id}", json=change)

    async def every(self) -> list[dict[str, Any]]:
        answer = await self.client.get(self.path)
        assert answer.status_code == 200, answer.text
        assert set(answer.json()) == {"data"}
        found: list[dict[str, Any]] = answer.json()["data"]
        return found

    async def function(self, **more: Any) -> str:
        return await self.create("function", FUNCTION, **more)

    async def hook(self, site: Site, **more: Any) -> str:
        """A tool that shows a token to a site."""
        auth = {"auth_type": "bearer", "auth_config": {"token": TOKEN}}
        return await self.create("webhook", {"url": site.url}, **{**auth, **more})

    async def told(self) -> list[dict[str, Any]]:
        params = {"event_type": "agent.updated", "per_page": 100}
        answer = await self.client.get("/api/v1/event-log", params=params)
        found = [entry["data"] for entry in reversed(answer.json()["data"])]
        return [data for data in found if data["agent_id"] == self.agent_id]


@pytest.fixture
async def bench(world: World) -> Attaching:
    made = Attaching((await bench_of(world)).client)
    made.agent_id = await made.agent()
    return made


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with open_site() as made:
        yield made


def _elsewhere(site: Site) -> str:
    """The same site under another host's name."""
    return site.url.replace("127.0.0.1", "localhost")


async def _sealed(services: Services, tool_id: str) -> bytes | None:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        sql = "SELECT override_auth FROM agent_tools WHERE tool_id = $1"
        found: bytes | None = await (await tx.raw()).fetchval(sql, tool_id)
    return found


# Attach and list


async def test_a_tool_is_attached_with_just_its_id(bench: Attaching) -> None:
    tool_id = await bench.function()
    made = await bench.attached(tool_id)
    assert made.pop("attached_at").endswith("Z")
    assert made == {
        "agent_id": bench.agent_id,
        "tool_id": tool_id,
        "is_enabled": True,
        "display_order": 0,
        "config_override": None,
    }


async def test_a_tool_is_attached_with_every_field(bench: Attaching) -> None:
    tool_id = await bench.function()
    fields = {
        "is_enabled": False,
        "display_order": 1_000_000,
        "config_override": {"timeout_ms": 7},
    }
    made = await bench.attached(tool_id, **fields)
    assert set(made) == ATTACHED_KEYS
    assert {name: made[name] for name in fields} == fields


async def test_a_list_shows_what_each_tool_is(bench: Attaching) -> None:
    tool_id = await bench.function(name="Adder", category="crm")
    made = await bench.attached(tool_id, config_override={"timeout_ms": 7})
    (shown,) = await bench.every()
    assert set(shown) == SHOWN_KEYS
    assert shown == {
        **{name: value for name, value in made.items() if name != "agent_id"},
        "tool_name": "Adder",
        "tool_type": "function",
        "category": "crm",
    }


async def test_tools_come_in_the_order_of_their_attaching(bench: Attaching) -> None:
    ids = [await bench.function() for _ in range(3)]
    orders = [(await bench.attached(tool_id))["display_order"] for tool_id in ids]
    assert orders == [0, 1, 2]
    assert [item["tool_id"] for item in await bench.every()] == ids


async def test_tools_come_in_their_own_order_when_they_have_one(bench: Attaching) -> None:
    last, first, middle, later = [await bench.function() for _ in range(4)]
    await bench.attached(last, display_order=9)
    await bench.attached(first, display_order=1)
    await bench.attached(middle, display_order=5)
    assert (await bench.attached(later))["display_order"] == 10
    shown = [item["tool_id"] for item in await bench.every()]
    assert shown == [first, middle, last, later]
    await bench.patch(later, {"display_order": 0})
    assert [item["tool_id"] for item in await bench.every()] == [later, first, middle, last]


async def test_an_agent_shows_its_tools(bench: Attaching) -> None:
    second, first = await bench.function(name="Two"), await bench.function(name="One")
    await bench.attached(second, display_order=2, is_enabled=False)
    await bench.attached(first, display_order=1)
    agent = (await bench.client.get(f"/api/v1/agents/{bench.agent_id}")).json()
    assert agent["tools"] == [
        {"id": first, "name": "One", "tool_type": "function", "is_enabled": True},
        {"id": second, "name": "Two", "tool_type": "function", "is_enabled": False},
    ]


async def test_a_tool_is_attached_once(bench: Attaching) -> None:
    tool_id = await bench.function()
    answers = await asyncio.gather(*(bench.attach(tool_id) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409, 409]
    refused(await bench.attach(tool_id), 409, "conflict")
    assert len(await bench.every()) == 1


async def test_one_tool_serves_several_agents(bench: Attaching) -> None:
    tool_id, other = await bench.function(), await bench.agent()
    await bench.attached(tool_id)
    answer = await bench.client.post(f"/v1/agents/{other}/tools", {"tool_id": tool_id})
    assert answer.status_code == 201
    await bench.client.delete(f"{bench.path}/{tool_id}")
    assert len((await bench.client.get(f"/v1/agents/{other}/tools")).json()["data"]) == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tool_id", None),
        ("tool_id", ""),
        ("tool_id", 5),
        ("is_enabled", None),
        ("is_enabled", "yes"),
        ("display_order", -1),
        ("display_order", 1_000_001),
        ("display_order", "1"),
        ("config_override", []),
        ("config_override", "x"),
    ],
)
async def test_a_wrong_field_is_named(bench: Attaching, field: str, value: object) -> None:
    answer = await bench.attach(**{"tool_id": await bench.function(), field: value})  # type: ignore[arg-type]
    assert set(refused(answer, 422, "validation_error")["details"]) == {field}
    assert await bench.every() == []


async def test_a_tool_must_be_named(bench: Attaching) -> None:
    answer = await bench.client.post(bench.path, {})
    assert set(refused(answer, 422, "validation_error")["details"]) == {"tool_id"}


# Patch and detach


@pytest.mark.parametrize(
    "change",
    [
        {"is_enabled": False},
        {"display_order": 4},
        {"config_override": {"timeout_ms": 9}},
        {"config_override": None},
        {"config_override": {}},
        {"is_enabled": False, "config_override": {"code": "x"}, "display_order": 2},
        {},
    ],
)
async def test_what_is_left_out_of_a_patch_stays(bench: Attaching, change: dict[str, Any]) -> None:
    tool_id = await bench.function()
    await bench.attached(tool_id, config_override={"timeout_ms": 7})
    (before,) = await bench.every()
    answer = await bench.patch(tool_id, change)
    assert (answer.status_code, answer.json()) == (200, {"data": {**before, **change}})
    assert await bench.every() == [{**before, **change}]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"is_enabled": None}, "is_enabled"),
        ({"is_enabled": 1}, "is_enabled"),
        ({"display_order": None}, "display_order"),
        ({"config_override": "x"}, "config_override"),
        ({"config_override": {"timeout_ms": 0}}, "config_override.timeout_ms"),
    ],
)
async def test_a_wrong_field_of_a_patch_is_named_and_changes_nothing(
    bench: Attaching, change: dict[str, Any], field: str
) -> None:
    tool_id = await bench.function()
    await bench.attached(tool_id, config_override={"timeout_ms": 7})
    before = await bench.every()
    answer = await bench.patch(tool_id, {"display_order": 3, **change})
    assert set(refused(answer, 422, "validation_error")["details"]) == {field}
    assert await bench.every() == before


async def test_a_patch_cannot_exchange_the_tool(bench: Attaching) -> None:
    tool_id, other = await bench.function(), await bench.function()
    await bench.attached(tool_id)
    before = await bench.every()
    await bench.patch(tool_id, {"tool_id": other, "agent_id": NO_AGENT, "attached_at": "2020"})
    assert await bench.every() == before


async def test_a_detached_tool_is_gone_from_this_agent_alone(bench: Attaching) -> None:
    tool_id = await bench.function()
    await bench.attached(tool_id)
    answer = await bench.client.delete(f"{bench.path}/{tool_id}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert await bench.every() == []
    assert (await bench.client.get(f"/v1/tools/{tool_id}")).status_code == 200
    refused(await bench.client.delete(f"{bench.path}/{tool_id}"), 404, "tool_not_found")


async def test_a_deleted_agent_leaves_its_tools(bench: Attaching) -> None:
    tool_id = await bench.function()
    await bench.attached(tool_id)
    await bench.client.delete(f"/api/v1/agents/{bench.agent_id}")
    assert (await bench.client.get(f"/v1/tools/{tool_id}")).status_code == 200
    refused(await bench.client.get(bench.path), 404, "agent_not_found")


async def test_each_change_is_told_as_one_of_the_agents_tools(bench: Attaching) -> None:
    tool_id = await bench.function()
    await bench.attached(tool_id)
    await bench.patch(tool_id, {"is_enabled": False})
    await bench.client.delete(f"{bench.path}/{tool_id}")
    told = await bench.told()
    assert [data["changed"] for data in told] == [["tools"]] * 3
    assert {data["version"] for data in told} == {1}


async def test_a_refused_change_is_not_told(bench: Attaching) -> None:
    await bench.attach(NO_TOOL)
    await bench.attach(await bench.function(), config_override={"runtime": "ruby"})
    assert await bench.told() == []


# Whose


async def test_a_tool_that_is_not_there_is_not_found(bench: Attaching) -> None:
    tool_id = await bench.function()
    refused(await bench.attach(NO_TOOL), 404, "tool_not_found")
    refused(await bench.patch(tool_id, {}), 404, "tool_not_found")
    refused(await bench.client.delete(f"{bench.path}/{tool_id}"), 404, "tool_not_found")


async def test_an_agent_that_is_not_there_is_not_found(bench: Attaching) -> None:
    tool_id = await bench.function()
    bench.agent_id = NO_AGENT
    refused(await bench.attach(tool_id), 404, "agent_not_found")
    refused(await bench.patch(tool_id, {}), 404, "agent_not_found")
    for method, path in (("GET", bench.path), ("DELETE", f"{bench.path}/{tool_id}")):
        refused(await bench.client(method, path), 404, "agent_not_found")


async def test_what_is_another_tenants_is_not_there(bench: Attaching, world: World) -> None:
    theirs = await bench_of(world)
    foreign_tool = await theirs.create("function", FUNCTION)
    own_tool, foreign_agent = await bench.function(), await theirs.agent()
    refused(await bench.attach(foreign_tool), 404, "tool_not_found")
    answer = await bench.client.post(f"/v1/agents/{foreign_agent}/tools", {"tool_id": own_tool})
    refused(answer, 404, "agent_not_found")
    assert await bench.every() == []


async def test_not_even_super_admin_attaches_across_tenants(
    bench: Attaching, world: World, super_admin: Client
) -> None:
    foreign_tool = await (await bench_of(world)).create("function", FUNCTION)
    answer = await super_admin.post(bench.path, {"tool_id": foreign_tool})
    refused(answer, 404, "tool_not_found")
    own = await super_admin.post(bench.path, {"tool_id": await bench.function()})
    assert own.status_code == 201


@pytest.mark.parametrize("role", ["viewer", "agent_user"])
@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
async def test_who_only_reads_sees_attachments_and_changes_none(
    bench: Attaching, world: World, role: str, method: str
) -> None:
    tool_id = await bench.function()
    await bench.attached(tool_id)
    caller = await world.user(role, bench.client.tenant_id)
    path = bench.path if method == "POST" else f"{bench.path}/{tool_id}"
    content = {} if method == "DELETE" else {"json": {"tool_id": tool_id}}
    error = refused(await caller(method, path, **content), 403, "forbidden")
    assert error["details"] == {"required": "agents:write", "your_role": role}
    seen = await caller.get(bench.path)
    assert [item["tool_id"] for item in seen.json()["data"]] == [tool_id]


# Overrides


@pytest.mark.parametrize(
    ("override", "field"),
    [
        ({"runtime": "ruby"}, "config_override.runtime"),
        ({"timeout_ms": "1"}, "config_override.timeout_ms"),
        ({"code": None}, "config_override.code"),
        ({"packages": ["no-such-package"]}, "config_override.packages"),
        ({"auth_config": {"token": "x"}}, "config_override.auth_config"),
    ],
)
async def test_a_wrong_key_of_an_override_is_named(
    bench: Attaching, override: dict[str, Any], field: str
) -> None:
    answer = await bench.attach(await bench.function(), config_override=override)
    assert set(refused(answer, 422, "validation_error")["details"]) == {field}


@pytest.mark.parametrize(
    ("override", "field"),
    [
        ({"url": "ftp://example.com"}, "config_override.url"),
        ({"url": "https://10.0.0.1"}, "config_override.url"),
        ({"method": "BREW"}, "config_override.method"),
        ({"auth_config": "x"}, "config_override.auth_config"),
        ({"auth_config": {}}, "config_override.auth_config.token"),
        ({"auth_config": {"token": "x", "y": 1}}, "config_override.auth_config.y"),
        (
            {"url": "http://example.com", "auth_config": {"token": "x"}},
            "config_override.url",
        ),
    ],
)
async def test_a_wrong_key_of_an_override_of_a_webhook_is_named(
    bench: Attaching, site: Site, override: dict[str, Any], field: str
) -> None:
    answer = await bench.attach(await bench.hook(site), config_override=override)
    assert set(refused(answer, 422, "validation_error")["details"]) == {field}


async def test_keys_that_mean_nothing_are_not_kept(bench: Attaching) -> None:
    override = {"timeout_ms": 7, "nonsense": 1}
    made = await bench.attached(await bench.function(), config_override=override)
    assert made["config_override"] == {"timeout_ms": 7}


async def test_a_deep_override_is_refused(bench: Attaching) -> None:
    deep: Any = {}
    for _ in range(40):
        deep = {"a": deep}
    answer = await bench.attach(await bench.function(), config_override={"x": deep})
    assert set(refused(answer, 422, "validation_error")["details"]) == {"config_override"}


async def test_an_override_wins_when_the_tool_runs_for_this_agent(
    bench: Attaching, worker: WorkerProcess
) -> None:
    tool_id = await bench.function()
    await bench.attached(tool_id, config_override={"code": OTHER_CODE})
    assert await bench.output(tool_id, agent_id=bench.agent_id) == {"code": "override"}
    assert await bench.output(tool_id, agent_id=await bench.agent()) == {"code": "own"}
    assert await bench.output(tool_id) == {"code": "own"}
    shown = (await bench.client.get(f"/v1/tools/{tool_id}")).json()["data"]
    assert shown["config"] == FUNCTION


async def test_keys_that_an_override_leaves_out_come_from_the_tool(
    bench: Attaching, site: Site, worker: WorkerProcess
) -> None:
    config = {"url": f"{site.url}/one", "headers": {"X-A": "own"}}
    tool_id = await bench.create("webhook", config)
    await bench.attached(tool_id, config_override={"method": "PUT"})
    await bench.output(tool_id, {"a": 1}, agent_id=bench.agent_id)
    assert (site.last.method, site.last.path) == ("PUT", "/one")
    assert site.last.headers["X-A"] == "own"


async def test_an_override_of_null_takes_a_key_of_the_tool_away(
    bench: Attaching, site: Site, worker: WorkerProcess
) -> None:
    config = {"url": site.url, "headers": {"X-A": "own"}}
    tool_id = await bench.create("webhook", config)
    await bench.attached(tool_id, config_override={"headers": None})
    await bench.output(tool_id, agent_id=bench.agent_id)
    assert "X-A" not in site.last.headers


async def test_a_tool_that_no_longer_fits_its_override_does_not_run(
    bench: Attaching, worker: WorkerProcess, site: Site
) -> None:
    tool_id = await bench.create("webhook", {"url": site.url})
    await bench.attached(tool_id, config_override={"method": "PUT"})
    config = {"base_url": site.url, "endpoints": {"a": {"method": "GET", "path": "/"}}}
    change = {"tool_type": "rest_api", "config": config}
    assert (await bench.client.put(f"/v1/tools/{tool_id}", change)).status_code == 200
    await bench.output(tool_id, agent_id=bench.agent_id)
    assert site.last.method == "GET"


# Overrides and auth


async def test_the_tools_auth_is_shown_where_an_override_stays_at_its_host(
    bench: Attaching, site: Site, worker: WorkerProcess
) -> None:
    tool_id = await bench.hook(site)
    await bench.attached(tool_id, config_override={"url": f"{site.url}/other"})
    await bench.output(tool_id, agent_id=bench.agent_id)
    assert site.last.path == "/other"
    assert site.last.headers["Authorization"] == f"Bearer {TOKEN}"


async def test_the_tools_auth_is_not_shown_to_another_host(
    bench: Attaching, site: Site, worker: WorkerProcess
) -> None:
    tool_id = await bench.hook(site)
    await bench.attached(tool_id, config_override={"url": _elsewhere(site)})
    await bench.output(tool_id, agent_id=bench.agent_id)
    assert site.last.headers["Host"].startswith("localhost")
    assert "Authorization" not in site.last.headers
    await bench.output(tool_id)
    assert site.last.headers["Authorization"] == f"Bearer {TOKEN}"


async def test_the_tools_auth_is_not_shown_to_another_port_either(
    bench: Attaching, site: Site, worker: WorkerProcess
) -> None:
    tool_id = await bench.hook(site)
    async with open_site() as other:
        await bench.attached(tool_id, config_override={"url": other.url})
        await bench.output(tool_id, agent_id=bench.agent_id)
        assert "Authorization" not in other.last.headers
    assert site.seen == []


async def test_an_override_may_bring_auth_of_its_own(
    bench: Attaching, site: Site, worker: WorkerProcess
) -> None:
    tool_id = await bench.hook(site)
    override = {"url": _elsewhere(site), "auth_config": {"token": OVERRIDE_TOKEN}}
    await bench.attached(tool_id, config_override=override)
    await bench.output(tool_id, agent_id=bench.agent_id)
    assert site.last.headers["Authorization"] == f"Bearer {OVERRIDE_TOKEN}"


async def test_auth_of_an_override_is_never_shown(
    bench: Attaching, site: Site, worker: WorkerProcess, services: Services
) -> None:
    tool_id = await bench.hook(site)
    override = {"method": "PUT", "auth_config": {"token": OVERRIDE_TOKEN}}
    made = await bench.attached(tool_id, config_override=override)
    assert made["config_override"] == {"method": "PUT"}
    patched = await bench.patch(tool_id, {"config_override": override})
    agent = await bench.client.get(f"/api/v1/agents/{bench.agent_id}")
    site.answer = always(json.dumps({"you sent": OVERRIDE_TOKEN}))
    output = await bench.output(tool_id, agent_id=bench.agent_id)
    shown = [patched.text, agent.text, str(await bench.every()), str(output)]
    assert OVERRIDE_TOKEN not in "".join(shown)
    assert OVERRIDE_TOKEN.encode() not in (await _sealed(services, tool_id) or b"")
    assert await _sealed(services, tool_id) is not None


async def test_a_new_override_without_auth_forgets_the_one_before(
    bench: Attaching, site: Site, worker: WorkerProcess, services: Services
) -> None:
    tool_id = await bench.hook(site)
    await bench.attached(tool_id, config_override={"auth_config": {"token": OVERRIDE_TOKEN}})
    await bench.patch(tool_id, {"config_override": {"url": _elsewhere(site)}})
    assert await _sealed(services, tool_id) is None
    await bench.output(tool_id, agent_id=bench.agent_id)
    assert "Authorization" not in site.last.headers


async def test_switching_an_attachment_keeps_its_auth(
    bench: Attaching, site: Site, worker: WorkerProcess
) -> None:
    tool_id = await bench.hook(site)
    await bench.attached(tool_id, config_override={"auth_config": {"token": OVERRIDE_TOKEN}})
    for enabled in (False, True):
        await bench.patch(tool_id, {"is_enabled": enabled})
    await bench.output(tool_id, agent_id=bench.agent_id)
    assert site.last.headers["Authorization"] == f"Bearer {OVERRIDE_TOKEN}"


async def test_a_tool_that_is_led_elsewhere_does_not_take_the_agents_auth_along(
    bench: Attaching, site: Site, worker: WorkerProcess
) -> None:
    """What the agent brought was for where the tool led then."""
    tool_id = await bench.hook(site)
    await bench.attached(tool_id, config_override={"auth_config": {"token": OVERRIDE_TOKEN}})
    change = {"config": {"url": _elsewhere(site)}, "auth_config": {"token": "new"}}
    assert (await bench.client.put(f"/v1/tools/{tool_id}", change)).status_code == 200
    await bench.output(tool_id, agent_id=bench.agent_id)
    assert site.last.headers["Authorization"] == "Bearer new"


async def test_an_agents_auth_for_a_place_of_its_own_stays_when_the_tool_is_led_elsewhere(
    bench: Attaching, site: Site, worker: WorkerProcess
) -> None:
    tool_id = await bench.hook(site)
    override = {"url": site.url, "auth_config": {"token": OVERRIDE_TOKEN}}
    await bench.attached(tool_id, config_override=override)
    change = {"config": {"url": _elsewhere(site)}, "auth_config": {"token": "new"}}
    assert (await bench.client.put(f"/v1/tools/{tool_id}", change)).status_code == 200
    await bench.output(tool_id, agent_id=bench.agent_id)
    assert site.last.headers["Authorization"] == f"Bearer {OVERRIDE_TOKEN}"


@pytest.mark.parametrize("auth_type", ["none", "basic"])
async def test_another_auth_type_of_the_tool_drops_the_agents_auth(
    bench: Attaching, site: Site, worker: WorkerProcess, services: Services, auth_type: str
) -> None:
    tool_id = await bench.hook(site)
    await bench.attached(tool_id, config_override={"auth_config": {"token": OVERRIDE_TOKEN}})
    auth = {"username": "u", "password": "p"}
    change = {"auth_type": auth_type, "auth_config": auth if auth_type == "basic" else None}
    assert (await bench.client.put(f"/v1/tools/{tool_id}", change)).status_code == 200
    assert await _sealed(services, tool_id) is None
    await bench.output(tool_id, agent_id=bench.agent_id)
    assert OVERRIDE_TOKEN not in site.last.headers.get("Authorization", "")


# Overrides and credentials


async def _with_credential(bench: Attaching, site: Site) -> tuple[str, str]:
    tool_id = await bench.hook(site)
    credential_id = await bench.credential("bearer_token", {"token": "planted-vault-token"})
    override = {"url": _elsewhere(site), "auth_config": {"credential_id": credential_id}}
    made = await bench.attached(tool_id, config_override=override)
    assert made["config_override"] == {"url": _elsewhere(site)}
    return tool_id, credential_id


async def test_a_credential_of_an_override_needs_a_rule_for_the_agent(
    bench: Attaching, site: Site, worker: WorkerProcess
) -> None:
    tool_id, credential_id = await _with_credential(bench, site)
    assert await bench.code(tool_id, agent_id=bench.agent_id) == "auth_failed"
    await bench.grant(credential_id, tool_id, "tool")
    assert await bench.code(tool_id, agent_id=bench.agent_id) == "auth_failed"
    assert site.seen == []
    rule = await bench.grant(credential_id, bench.agent_id, "agent")
    await bench.output(tool_id, agent_id=bench.agent_id)
    assert site.last.headers["Authorization"] == "Bearer planted-vault-token"
    await bench.client.delete(rule)
    assert await bench.code(tool_id, agent_id=bench.agent_id) == "auth_failed"


@pytest.mark.parametrize("which", ["unknown", "foreign", "another type"])
async def test_a_credential_that_does_not_fit_an_override_is_refused(
    bench: Attaching, site: Site, world: World, which: str
) -> None:
    if which == "unknown":
        credential_id = "crd_none"
    elif which == "foreign":
        credential_id = await (await bench_of(world)).credential("bearer_token", {"token": "x"})
    else:
        credential_id = await bench.credential("api_key", {"api_key": "x"})
    override = {"auth_config": {"credential_id": credential_id}}
    answer = await bench.attach(await bench.hook(site), config_override=override)
    named = refused(answer, 422, "validation_error")["details"]
    assert set(named) == {"config_override.auth_config.credential_id"}


@pytest.fixture
async def careless(world: World, super_admin: Client) -> AsyncIterator[str]:
    """A role that may write agents and tools but no credentials, while the test runs."""
    path = "/roles/viewer/permissions"
    before = (await super_admin.get(path)).json()["permissions"]
    more = {*before, "agents:write", "tools:write"}
    answer = await super_admin.put(path, {"permissions": sorted(more)})
    assert answer.status_code == 200, answer.text
    yield "viewer"
    answer = await super_admin.put(path, {"permissions": before})
    assert answer.status_code == 200, answer.text


async def test_a_credential_is_put_into_an_override_only_by_who_may_write_credentials(
    bench: Attaching, site: Site, world: World, careless: str
) -> None:
    tool_id, credential_id = await _with_credential(bench, site)
    caller = await world.user(careless, bench.client.tenant_id)
    override = {"auth_config": {"credential_id": credential_id}}
    answer = await caller("PATCH", f"{bench.path}/{tool_id}", json={"config_override": override})
    assert refused(answer, 403, "forbidden")["details"]["required"] == "credentials:write"
    own = {"config_override": {"auth_config": {"token": "x"}}}
    assert (await caller("PATCH", f"{bench.path}/{tool_id}", json=own)).status_code == 200


async def test_a_tool_does_not_lead_an_agents_credential_elsewhere(
    bench: Attaching, site: Site, world: World, careless: str, worker: WorkerProcess
) -> None:
    tool_id = await bench.hook(site)
    credential_id = await bench.credential("bearer_token", {"token": "planted-vault-token"})
    override = {"auth_config": {"credential_id": credential_id}}
    await bench.attached(tool_id, config_override=override)
    await bench.grant(credential_id, bench.agent_id, "agent")
    caller = await world.user(careless, bench.client.tenant_id)
    change = {"config": {"url": _elsewhere(site)}, "auth_config": {"token": "mine"}}
    await caller.put(f"/v1/tools/{tool_id}", change)
    await bench.run(tool_id, agent_id=bench.agent_id)
    assert "planted-vault-token" not in site.last.headers.get("Authorization", "")
