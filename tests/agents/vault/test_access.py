"""Access rules, and the use of a credential by an integration."""

import asyncio
from typing import Any

import pytest

from app.crypto.keyring import Keyring
from app.domain.agents.vault.decrypted import IntegrationRef, seal_context
from app.domain.agents.vault.errors import AccessDenied
from app.domain.agents.vault.types import BearerTokenSecrets
from app.services import Services
from tests.agents.vault.api import (
    PATH,
    WORKFLOW,
    get_credential,
    list_actions,
    list_audit,
    list_rules,
    read_invalid_fields,
    unseal_credential,
)
from tests.agents.vault.factories import create_agent, create_credential, create_tool, grant_access
from tests.assertions import refused
from tests.database import run_sql
from tests.world import Client, World

# Rules


async def test_a_rule_is_granted_and_listed(admin: Client) -> None:
    credential = await create_credential(admin)
    tool = await create_tool(admin)
    rule = await grant_access(admin, credential["id"], IntegrationRef("tool", tool))
    assert set(rule) == {
        "id",
        "integration_type",
        "integration_id",
        "integration_name",
        "created_by",
        "created_at",
    }
    assert rule["integration_name"] == "Add"
    assert rule["id"].startswith("acr_")
    assert (rule["integration_type"], rule["integration_id"]) == ("tool", tool)
    assert rule["created_by"] == admin.user_id
    assert rule["created_at"].endswith("Z")
    assert await list_rules(admin, credential["id"]) == [rule]


async def test_each_kind_of_integration_may_have_a_rule(admin: Client) -> None:
    credential = await create_credential(admin)
    users = [
        IntegrationRef("agent", await create_agent(admin)),
        IntegrationRef("tool", await create_tool(admin)),
        IntegrationRef("workflow", "wfl_1"),
        IntegrationRef("channel", "chn_1"),
    ]
    rules = [await grant_access(admin, credential["id"], user) for user in users]
    assert await list_rules(admin, credential["id"]) == rules
    assert [rule["integration_name"] for rule in rules] == ["A", "Add", None, None]


async def test_the_same_rule_twice_is_a_conflict(admin: Client) -> None:
    credential = await create_credential(admin)
    rule = await grant_access(admin, credential["id"])
    body = {"integration_type": WORKFLOW.type, "integration_id": WORKFLOW.id}
    refused(await admin.post(f"{PATH}/{credential['id']}/access", body), 409, "conflict")
    assert await list_rules(admin, credential["id"]) == [rule]


async def test_the_same_rule_at_the_same_moment_is_granted_once(admin: Client) -> None:
    credential = await create_credential(admin)
    body = {"integration_type": WORKFLOW.type, "integration_id": WORKFLOW.id}
    requests = [admin.post(f"{PATH}/{credential['id']}/access", body) for _ in range(5)]
    answers = [answer.status_code for answer in await asyncio.gather(*requests)]
    assert sorted(answers) == [201, 409, 409, 409, 409]
    assert len(await list_rules(admin, credential["id"])) == 1


_INVALID_BODIES: list[tuple[dict[str, Any], str]] = [
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
]


async def test_a_wrong_rule_is_named(admin: Client, subtests: pytest.Subtests) -> None:
    credential = await create_credential(admin)
    for body, field in _INVALID_BODIES:
        with subtests.test(body=body, field=field):
            answer = await admin.post(f"{PATH}/{credential['id']}/access", body)
            assert set(read_invalid_fields(answer)) == {field}
    assert await list_rules(admin, credential["id"]) == []


async def test_an_agent_id_is_not_accepted_as_a_tool(admin: Client) -> None:
    credential = await create_credential(admin)
    body = {"integration_type": "tool", "integration_id": await create_agent(admin)}
    answer = await admin.post(f"{PATH}/{credential['id']}/access", body)
    assert set(read_invalid_fields(answer)) == {"integration_id"}


async def test_another_tenant_s_tool_gets_no_rule(world: World, subtests: pytest.Subtests) -> None:
    for role in ("tenant_admin", "super_admin"):
        with subtests.test(role=role):
            owner, stranger = await world.user("tenant_admin"), await world.user("tenant_admin")
            granter = owner if role == "tenant_admin" else await world.user(role)
            credential = await create_credential(owner)
            body = {"integration_type": "tool", "integration_id": await create_tool(stranger)}
            answer = await granter.post(f"{PATH}/{credential['id']}/access", body)
            assert set(read_invalid_fields(answer)) == {"integration_id"}


async def test_a_rule_is_revoked(admin: Client) -> None:
    credential = await create_credential(admin)
    rule = await grant_access(admin, credential["id"])
    answer = await admin.delete(f"{PATH}/{credential['id']}/access/{rule['id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert await list_rules(admin, credential["id"]) == []
    second_answer = await admin.delete(f"{PATH}/{credential['id']}/access/{rule['id']}")
    refused(second_answer, 404, "access_rule_not_found")


async def test_a_rule_is_revoked_only_at_its_own_credential(admin: Client) -> None:
    credential, other = await create_credential(admin), await create_credential(admin)
    rule = await grant_access(admin, credential["id"])
    answer = await admin.delete(f"{PATH}/{other['id']}/access/{rule['id']}")
    refused(answer, 404, "access_rule_not_found")
    assert await list_rules(admin, credential["id"]) == [rule]


async def test_a_rule_is_deleted_with_its_tool(admin: Client, services: Services) -> None:
    credential = await create_credential(admin)
    tool = await create_tool(admin)
    await grant_access(admin, credential["id"], IntegrationRef("tool", tool))
    remaining = await grant_access(admin, credential["id"])
    assert (await admin.delete(f"/v1/tools/{tool}")).status_code == 204
    assert await list_rules(admin, credential["id"]) == [remaining]
    with pytest.raises(AccessDenied):
        await unseal_credential(services, admin, credential["id"], IntegrationRef("tool", tool))


async def test_a_rule_is_deleted_with_its_agent(admin: Client) -> None:
    credential = await create_credential(admin)
    agent = await create_agent(admin)
    await grant_access(admin, credential["id"], IntegrationRef("agent", agent))
    remaining = await grant_access(admin, credential["id"])
    assert (await admin.delete(f"/api/v1/agents/{agent}")).status_code == 204
    assert await list_rules(admin, credential["id"]) == [remaining]


# Use


async def test_a_rule_opens_the_secrets(admin: Client, services: Services) -> None:
    credential = await create_credential(admin, metadata={"header": "X-Key"})
    await grant_access(admin, credential["id"])
    decrypted = await unseal_credential(services, admin, credential["id"])
    assert decrypted.secrets == BearerTokenSecrets("planted-token")
    assert (decrypted.id, decrypted.tenant_id, decrypted.type) == (
        credential["id"],
        admin.tenant_id,
        credential["type"],
    )
    assert decrypted.metadata == {"header": "X-Key"}


async def test_every_use_is_in_the_audit_log(admin: Client, services: Services) -> None:
    credential = await create_credential(admin)
    await grant_access(admin, credential["id"])
    for _ in range(2):
        await unseal_credential(services, admin, credential["id"])
    rows = await list_audit(admin, credential["id"])
    assert [row["action"] for row in rows[:2]] == ["used", "used"]
    assert rows[0]["success"] is True
    assert (rows[0]["actor_type"], rows[0]["actor_id"]) == ("workflow", "wfl_1")
    assert rows[0]["integration"] == "workflow:wfl_1"
    assert rows[0]["ip_address"] is None


async def test_a_use_sets_last_used_at_and_not_updated_at(
    admin: Client, services: Services
) -> None:
    credential = await create_credential(admin)
    await grant_access(admin, credential["id"])
    await unseal_credential(services, admin, credential["id"])
    updated = await get_credential(admin, credential["id"])
    assert updated["last_used_at"] > credential["created_at"]
    assert updated["updated_at"] == credential["updated_at"]


async def test_an_integration_without_its_own_rule_is_denied(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    cases: list[IntegrationRef] = [
        IntegrationRef("workflow", "wfl_2"),
        IntegrationRef("channel", "wfl_1"),
        IntegrationRef("tool", "wfl_1"),
        IntegrationRef("workflow", "WFL_1"),
        IntegrationRef("workflow", "wfl_1 "),
    ]
    for user in cases:
        admin = await world.user("tenant_admin")
        with subtests.test(user=user):
            credential = await create_credential(admin)
            await grant_access(admin, credential["id"])
            with pytest.raises(AccessDenied, match="has no access rule"):
                await unseal_credential(services, admin, credential["id"], user)
            latest = (await list_audit(admin, credential["id"]))[0]
            assert (latest["action"], latest["success"]) == ("denied", False)
            assert (latest["actor_type"], latest["actor_id"]) == (user.type, user.id)
            assert latest["integration"] == f"{user.type}:{user.id}"
            assert (await get_credential(admin, credential["id"]))["last_used_at"] is None


async def test_a_rule_that_was_revoked_opens_nothing(admin: Client, services: Services) -> None:
    credential = await create_credential(admin)
    rule = await grant_access(admin, credential["id"])
    await unseal_credential(services, admin, credential["id"])
    await admin.delete(f"{PATH}/{credential['id']}/access/{rule['id']}")
    with pytest.raises(AccessDenied):
        await unseal_credential(services, admin, credential["id"])


async def test_a_rule_of_another_credential_opens_nothing(
    admin: Client, services: Services
) -> None:
    credential, other = await create_credential(admin), await create_credential(admin)
    await grant_access(admin, other["id"])
    with pytest.raises(AccessDenied):
        await unseal_credential(services, admin, credential["id"])


async def test_another_tenant_opens_nothing_with_a_rule(world: World, services: Services) -> None:
    owner, stranger = await world.user("tenant_admin"), await world.user("tenant_admin")
    credential = await create_credential(owner)
    await grant_access(owner, credential["id"])
    with pytest.raises(AccessDenied, match="no longer exists"):
        await unseal_credential(services, stranger, credential["id"])
    assert await list_audit(stranger) == []
    assert await list_actions(owner, credential["id"]) == ["access_granted", "created"]


async def test_a_deleted_credential_opens_nothing(admin: Client, services: Services) -> None:
    credential = await create_credential(admin)
    await grant_access(admin, credential["id"])
    await admin.delete(f"{PATH}/{credential['id']}")
    with pytest.raises(AccessDenied, match="no longer exists"):
        await unseal_credential(services, admin, credential["id"])


async def test_secrets_under_a_lost_key_are_refused_with_a_message(
    admin: Client, services: Services
) -> None:
    credential = await create_credential(admin)
    await grant_access(admin, credential["id"])
    sealed_secrets = Keyring.parse(Keyring.generate("lost")).seal(
        b"{}", seal_context(admin.tenant_id, credential["id"])
    )
    await run_sql(
        services,
        "UPDATE credentials SET secrets = $2 WHERE id = $1",
        credential["id"],
        sealed_secrets,
    )
    with pytest.raises(AccessDenied, match="cannot be decrypted"):
        await unseal_credential(services, admin, credential["id"])


async def test_concurrent_uses_and_updates_do_not_deadlock(
    admin: Client, services: Services
) -> None:
    """Both lock the credential before the audit chain."""
    credential = await create_credential(admin)
    await grant_access(admin, credential["id"])
    path = f"{PATH}/{credential['id']}"
    changes = [admin.put(path, {"name": f"Name {number}"}) for number in range(20)]
    uses = [unseal_credential(services, admin, credential["id"]) for _ in range(20)]
    results = await asyncio.gather(*changes, *uses, return_exceptions=True)
    assert [result for result in results if isinstance(result, BaseException)] == []
    statuses = {getattr(result, "status_code", 200) for result in results}
    assert statuses == {200}
    assert (await list_actions(admin, credential["id"])).count("used") == 20
