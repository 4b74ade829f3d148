"""Who may use a credential: rules, and the one way to its secrets besides revealing them."""

import asyncio
from typing import Any

import pytest

from app.domain.vault.decrypted import CredentialUser, seal_context
from app.domain.vault.errors import AccessDenied
from app.domain.vault.types import BearerTokenSecrets
from app.kit.crypto import Keyring
from app.services import Services
from tests.asking import refused
from tests.vault.making import (
    PATH,
    WORKFLOW,
    actions,
    create,
    grant,
    make_agent,
    make_tool,
    opened,
    shown,
    sql,
    trail,
    wrong,
)
from tests.world import Client, World


async def _rules(caller: Client, credential_id: str) -> list[dict[str, Any]]:
    answer = await caller.get(f"{PATH}/{credential_id}/access")
    assert answer.status_code == 200
    assert set(answer.json()) == {"data"}
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


# Rules


async def test_a_rule_is_granted_and_listed(admin: Client) -> None:
    made = await create(admin)
    tool = await make_tool(admin)
    rule = await grant(admin, made["id"], CredentialUser("tool", tool))
    assert set(rule) == {"id", "integration_type", "integration_id", "created_by", "created_at"}
    assert rule["id"].startswith("acr_")
    assert (rule["integration_type"], rule["integration_id"]) == ("tool", tool)
    assert rule["created_by"] == admin.user_id
    assert rule["created_at"].endswith("Z")
    assert await _rules(admin, made["id"]) == [rule]


async def test_each_kind_of_integration_may_have_a_rule(admin: Client) -> None:
    made = await create(admin)
    users = [
        CredentialUser("agent", await make_agent(admin)),
        CredentialUser("tool", await make_tool(admin)),
        CredentialUser("workflow", "wfl_1"),
        CredentialUser("channel", "chn_1"),
    ]
    rules = [await grant(admin, made["id"], user) for user in users]
    assert await _rules(admin, made["id"]) == rules


async def test_the_same_rule_twice_is_a_conflict(admin: Client) -> None:
    made = await create(admin)
    rule = await grant(admin, made["id"])
    body = {"integration_type": WORKFLOW.type, "integration_id": WORKFLOW.id}
    refused(await admin.post(f"{PATH}/{made['id']}/access", body), 409, "conflict")
    assert await _rules(admin, made["id"]) == [rule]


async def test_the_same_rule_at_the_same_moment_is_granted_once(admin: Client) -> None:
    made = await create(admin)
    body = {"integration_type": WORKFLOW.type, "integration_id": WORKFLOW.id}
    asked = [admin.post(f"{PATH}/{made['id']}/access", body) for _ in range(5)]
    answers = [answer.status_code for answer in await asyncio.gather(*asked)]
    assert sorted(answers) == [201, 409, 409, 409, 409]
    assert len(await _rules(admin, made["id"])) == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"integration_type": "tool", "integration_id": "tool_nothing"}, "integration_id"),
        ({"integration_type": "agent", "integration_id": "agt_nothing"}, "integration_id"),
        ({"integration_type": "user", "integration_id": "usr_x"}, "integration_type"),
        ({"integration_type": None, "integration_id": "x"}, "integration_type"),
        ({"integration_id": "x"}, "integration_type"),
        ({"integration_type": "workflow"}, "integration_id"),
        ({"integration_type": "workflow", "integration_id": ""}, "integration_id"),
        ({"integration_type": "workflow", "integration_id": "a b"}, "integration_id"),
        ({"integration_type": "workflow", "integration_id": "x" * 65}, "integration_id"),
        ({"integration_type": "workflow", "integration_id": 5}, "integration_id"),
    ],
)
async def test_a_wrong_rule_is_named(admin: Client, body: dict[str, Any], field: str) -> None:
    made = await create(admin)
    answer = await admin.post(f"{PATH}/{made['id']}/access", body)
    assert set(wrong(answer)) == {field}
    assert await _rules(admin, made["id"]) == []


async def test_an_agent_is_no_tool(admin: Client) -> None:
    made = await create(admin)
    body = {"integration_type": "tool", "integration_id": await make_agent(admin)}
    answer = await admin.post(f"{PATH}/{made['id']}/access", body)
    assert set(wrong(answer)) == {"integration_id"}


@pytest.mark.parametrize("role", ["tenant_admin", "super_admin"])
async def test_another_tenant_s_tool_gets_no_rule(world: World, role: str) -> None:
    here, there = await world.user("tenant_admin"), await world.user("tenant_admin")
    granter = here if role == "tenant_admin" else await world.user(role)
    made = await create(here)
    body = {"integration_type": "tool", "integration_id": await make_tool(there)}
    answer = await granter.post(f"{PATH}/{made['id']}/access", body)
    assert set(wrong(answer)) == {"integration_id"}


async def test_a_rule_is_revoked(admin: Client) -> None:
    made = await create(admin)
    rule = await grant(admin, made["id"])
    answer = await admin.delete(f"{PATH}/{made['id']}/access/{rule['id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert await _rules(admin, made["id"]) == []
    again = await admin.delete(f"{PATH}/{made['id']}/access/{rule['id']}")
    refused(again, 404, "access_rule_not_found")


async def test_a_rule_is_revoked_only_where_it_is(admin: Client) -> None:
    made, other = await create(admin), await create(admin)
    rule = await grant(admin, made["id"])
    answer = await admin.delete(f"{PATH}/{other['id']}/access/{rule['id']}")
    refused(answer, 404, "access_rule_not_found")
    assert await _rules(admin, made["id"]) == [rule]


async def test_a_rule_goes_with_its_tool(admin: Client, services: Services) -> None:
    made = await create(admin)
    tool = await make_tool(admin)
    await grant(admin, made["id"], CredentialUser("tool", tool))
    kept = await grant(admin, made["id"])
    assert (await admin.delete(f"/v1/tools/{tool}")).status_code == 204
    assert await _rules(admin, made["id"]) == [kept]
    with pytest.raises(AccessDenied):
        await opened(services, admin, made["id"], CredentialUser("tool", tool))


async def test_a_rule_goes_with_its_agent(admin: Client) -> None:
    made = await create(admin)
    agent = await make_agent(admin)
    await grant(admin, made["id"], CredentialUser("agent", agent))
    kept = await grant(admin, made["id"])
    assert (await admin.delete(f"/api/v1/agents/{agent}")).status_code == 204
    assert await _rules(admin, made["id"]) == [kept]


# Use


async def test_a_rule_opens_the_secrets(admin: Client, services: Services) -> None:
    made = await create(admin, metadata={"header": "X-Key"})
    await grant(admin, made["id"])
    found = await opened(services, admin, made["id"])
    assert found.secrets == BearerTokenSecrets("planted-token")
    assert (found.id, found.tenant_id, found.type) == (made["id"], admin.tenant_id, made["type"])
    assert found.metadata == {"header": "X-Key"}


async def test_every_use_is_written_down(admin: Client, services: Services) -> None:
    made = await create(admin)
    await grant(admin, made["id"])
    for _ in range(2):
        await opened(services, admin, made["id"])
    found = await trail(admin, made["id"])
    assert [entry["action"] for entry in found[:2]] == ["used", "used"]
    assert found[0]["success"] is True
    assert (found[0]["actor_type"], found[0]["actor_id"]) == ("workflow", "wfl_1")
    assert found[0]["integration"] == "workflow:wfl_1"
    assert found[0]["ip_address"] is None


async def test_a_use_is_remembered_and_is_no_change(admin: Client, services: Services) -> None:
    made = await create(admin)
    await grant(admin, made["id"])
    await opened(services, admin, made["id"])
    used = await shown(admin, made["id"])
    assert used["last_used_at"] > made["created_at"]
    assert used["updated_at"] == made["updated_at"]


@pytest.mark.parametrize(
    "user",
    [
        CredentialUser("workflow", "wfl_2"),
        CredentialUser("channel", "wfl_1"),
        CredentialUser("tool", "wfl_1"),
        CredentialUser("workflow", "WFL_1"),
        CredentialUser("workflow", "wfl_1 "),
    ],
)
async def test_without_a_rule_for_exactly_this_nothing_opens(
    admin: Client, services: Services, user: CredentialUser
) -> None:
    made = await create(admin)
    await grant(admin, made["id"])
    with pytest.raises(AccessDenied, match="has no access rule"):
        await opened(services, admin, made["id"], user)
    latest = (await trail(admin, made["id"]))[0]
    assert (latest["action"], latest["success"]) == ("denied", False)
    assert (latest["actor_type"], latest["actor_id"]) == (user.type, user.id)
    assert latest["integration"] == f"{user.type}:{user.id}"
    assert (await shown(admin, made["id"]))["last_used_at"] is None


async def test_a_rule_that_was_revoked_opens_nothing(admin: Client, services: Services) -> None:
    made = await create(admin)
    rule = await grant(admin, made["id"])
    await opened(services, admin, made["id"])
    await admin.delete(f"{PATH}/{made['id']}/access/{rule['id']}")
    with pytest.raises(AccessDenied):
        await opened(services, admin, made["id"])


async def test_a_rule_of_another_credential_opens_nothing(
    admin: Client, services: Services
) -> None:
    made, other = await create(admin), await create(admin)
    await grant(admin, other["id"])
    with pytest.raises(AccessDenied):
        await opened(services, admin, made["id"])


async def test_another_tenant_opens_nothing_with_a_rule(world: World, services: Services) -> None:
    here, there = await world.user("tenant_admin"), await world.user("tenant_admin")
    made = await create(here)
    await grant(here, made["id"])
    with pytest.raises(AccessDenied, match="does not exist"):
        await opened(services, there, made["id"])
    assert await trail(there) == []
    assert await actions(here, made["id"]) == ["access_granted", "created"]


async def test_a_deleted_credential_opens_nothing(admin: Client, services: Services) -> None:
    made = await create(admin)
    await grant(admin, made["id"])
    await admin.delete(f"{PATH}/{made['id']}")
    with pytest.raises(AccessDenied, match="does not exist"):
        await opened(services, admin, made["id"])


async def test_secrets_under_a_lost_key_are_refused_in_words(
    admin: Client, services: Services
) -> None:
    made = await create(admin)
    await grant(admin, made["id"])
    lost = Keyring.parse(Keyring.generate("lost")).seal(
        b"{}", seal_context(admin.tenant_id, made["id"])
    )
    await sql(services, "UPDATE credentials SET secrets = $2 WHERE id = $1", made["id"], lost)
    with pytest.raises(AccessDenied, match="does not open"):
        await opened(services, admin, made["id"])


async def test_uses_and_changes_at_the_same_moment_are_not_in_each_other_s_way(
    admin: Client, services: Services
) -> None:
    """They lock the credential and the end of the trail in the same order."""
    made = await create(admin)
    await grant(admin, made["id"])
    path = f"{PATH}/{made['id']}"
    changes = [admin.put(path, {"name": f"Name {number}"}) for number in range(20)]
    uses = [opened(services, admin, made["id"]) for _ in range(20)]
    found = await asyncio.gather(*changes, *uses, return_exceptions=True)
    assert [answer for answer in found if isinstance(answer, BaseException)] == []
    statuses = {getattr(answer, "status_code", 200) for answer in found}
    assert statuses == {200}
    assert (await actions(admin, made["id"])).count("used") == 20
