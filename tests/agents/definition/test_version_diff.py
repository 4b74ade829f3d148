"""GET /api/v1/agents/:id/versions/:a/diff/:b."""

from typing import Any

import pytest

from tests.agents.definition.factories import PATH, create_agent
from tests.assertions import refused
from tests.world import Client, World


async def _create_two_versions(caller: Client) -> str:
    """Returns the path of the versions of an agent."""
    agent = await create_agent(caller, temperature=0.5, system_prompt="Be brief.")
    body = {"temperature": 0.9, "system_prompt": "Be kind.", "max_tokens": 7, "name": "New"}
    await caller.put(f"{PATH}/{agent['id']}", body)
    return f"{PATH}/{agent['id']}/versions"


async def _read_diff(caller: Client, path: str) -> dict[str, Any]:
    answer = await caller.get(path)
    assert answer.status_code == 200, answer.text
    data: dict[str, Any] = answer.json()["data"]
    return data


async def test_a_diff_has_the_changes_of_behaviour(developer: Client) -> None:
    path = await _create_two_versions(developer)
    data = await _read_diff(developer, f"{path}/1/diff/2")
    changes = {item.pop("path"): item for item in data.pop("changes")}
    assert data == {"from": 1, "to": 2, "truncated": False}
    assert changes.keys() == {"system_prompt", "temperature", "max_tokens"}
    assert changes["temperature"] == {"op": "changed", "before": 0.5, "after": 0.9}
    assert changes["system_prompt"]["after"] == "Be kind."
    assert changes["max_tokens"]["after"] == 7


async def test_a_diff_has_a_direction(developer: Client) -> None:
    path = await _create_two_versions(developer)
    data = await _read_diff(developer, f"{path}/2/diff/1")
    temperature = next(item for item in data["changes"] if item["path"] == "temperature")
    assert (data["from"], data["to"]) == (2, 1)
    assert (temperature["before"], temperature["after"]) == (0.9, 0.5)


async def test_a_version_does_not_differ_from_itself(developer: Client) -> None:
    path = await _create_two_versions(developer)
    assert (await _read_diff(developer, f"{path}/2/diff/2"))["changes"] == []


async def test_a_missing_version_is_not_found(developer: Client, subtests: pytest.Subtests) -> None:
    path = await _create_two_versions(developer)
    for tail in ("1/diff/3", "3/diff/1", "0/diff/1", "1/diff/x", "1/diff/01", f"{'9' * 30}/diff/1"):
        with subtests.test(tail=tail):
            refused(await developer.get(f"{path}/{tail}"), 404, "version_not_found")


async def test_another_tenants_agent_is_not_found(developer: Client, world: World) -> None:
    path = await _create_two_versions(await world.user())
    refused(await developer.get(f"{path}/1/diff/2"), 404, "agent_not_found")


async def test_a_viewer_compares_no_versions(developer: Client, world: World) -> None:
    path = await _create_two_versions(developer)
    viewer = await world.user("viewer", developer.tenant_id)
    refused(await viewer.get(f"{path}/1/diff/2"), 403, "forbidden")
