"""The audit trail as people read it: every deed, by whom, the latest first."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from app.domain.vault.decrypted import CredentialUser
from app.domain.vault.errors import AccessDenied
from app.services import Services
from tests.peer import answering
from tests.vault.making import PATH, actions, create, grant, opened, trail, tried, wrong
from tests.world import Client, World

FIELDS = {
    "id",
    "credential_id",
    "action",
    "actor_id",
    "actor_type",
    "integration",
    "ip_address",
    "success",
    "created_at",
}


async def test_a_row_has_every_field(admin: Client) -> None:
    made = await create(admin)
    (row,) = await trail(admin, made["id"])
    assert set(row) == FIELDS
    assert row["id"].startswith("aud_")
    assert row["credential_id"] == made["id"]
    assert row["created_at"].endswith("Z")
    assert {name: row[name] for name in FIELDS - {"id", "credential_id", "created_at"}} == {
        "action": "created",
        "actor_id": admin.user_id,
        "actor_type": "user",
        "integration": None,
        "ip_address": admin.address,
        "success": True,
    }


async def _update(admin: Client, one: str, _rule: str) -> None:
    await admin.put(one, {"description": "New"})


async def _update_secrets(admin: Client, one: str, _rule: str) -> None:
    await admin.put(f"{one}/secrets", {"secrets": {"token": "new"}})


async def _reveal(admin: Client, one: str, _rule: str) -> None:
    await admin.get(f"{one}/reveal")


async def _grant(admin: Client, one: str, _rule: str) -> None:
    await grant(admin, one.rpartition("/")[2], CredentialUser("channel", "chn_1"))


async def _revoke(admin: Client, one: str, rule: str) -> None:
    await admin.delete(f"{one}/access/{rule}")


async def _delete(admin: Client, one: str, _rule: str) -> None:
    await admin.delete(one)


Deed = Callable[[Client, str, str], Awaitable[None]]


@pytest.mark.parametrize(
    ("deed", "action", "integration"),
    [
        (_update, "updated", None),
        (_update_secrets, "secrets_updated", None),
        (_reveal, "revealed", None),
        (_grant, "access_granted", "channel:chn_1"),
        (_revoke, "access_revoked", "workflow:wfl_1"),
        (_delete, "deleted", None),
    ],
)
async def test_a_deed_is_written_down_once_with_who_did_it(
    admin: Client, deed: Deed, action: str, integration: str | None
) -> None:
    made = await create(admin)
    rule = await grant(admin, made["id"])
    await deed(admin, f"{PATH}/{made['id']}", rule["id"])
    found = await trail(admin)
    assert [row["action"] for row in found] == [action, "access_granted", "created"]
    told = {name: found[0][name] for name in FIELDS - {"id", "created_at"}}
    assert told == {
        "credential_id": made["id"],
        "action": action,
        "actor_id": admin.user_id,
        "actor_type": "user",
        "integration": integration,
        "ip_address": admin.address,
        "success": True,
    }


async def test_a_change_of_fields_and_secrets_is_two_deeds(admin: Client) -> None:
    made = await create(admin)
    await admin.put(f"{PATH}/{made['id']}", {"name": "New", "secrets": {"token": "new"}})
    assert sorted(await actions(admin, made["id"])) == ["created", "secrets_updated", "updated"]


@pytest.mark.parametrize(("status", "success"), [(200, True), (401, False)])
async def test_a_test_is_written_down_with_how_it_went(
    admin: Client, status: int, *, success: bool
) -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(status=status)

    async with answering(answer) as url:
        made = await create(admin, metadata={"test_url": url})
        await tried(admin, made["id"])
    latest = (await trail(admin, made["id"]))[0]
    assert (latest["action"], latest["success"]) == ("tested", success)
    assert (latest["actor_id"], latest["ip_address"]) == (admin.user_id, admin.address)


async def test_what_was_refused_for_being_wrong_is_no_deed(admin: Client) -> None:
    made = await create(admin)
    one = f"{PATH}/{made['id']}"
    await admin.put(one, {"name": ""})
    await admin.put(f"{one}/secrets", {"secrets": {}})
    await admin.post(f"{one}/access", {"integration_type": "tool", "integration_id": "x"})
    await admin.post(f"{one}/test")
    assert await actions(admin) == ["created"]


async def test_the_trail_of_one_is_apart_from_the_others(admin: Client, services: Services) -> None:
    first, second = await create(admin), await create(admin)
    await grant(admin, first["id"])
    await opened(services, admin, first["id"])
    with pytest.raises(AccessDenied):
        await opened(services, admin, second["id"])
    assert await actions(admin, first["id"]) == ["used", "access_granted", "created"]
    assert await actions(admin, second["id"]) == ["denied", "created"]
    every = await trail(admin)
    assert [row["credential_id"] for row in every] == [
        second["id"],
        first["id"],
        first["id"],
        second["id"],
        first["id"],
    ]


async def test_the_trail_comes_in_pages(admin: Client) -> None:
    made = await create(admin)
    for number in range(6):
        await admin.put(f"{PATH}/{made['id']}", {"name": str(number)})
    whole = await trail(admin)
    for path in (f"{PATH}/audit", f"{PATH}/{made['id']}/audit"):
        pages: list[dict[str, Any]] = []
        for page in (1, 2, 3):
            answer = (await admin.get(path, params={"page": page, "per_page": 3})).json()
            assert answer["pagination"] == {
                "page": page,
                "per_page": 3,
                "total": 7,
                "total_pages": 3,
            }
            pages += answer["data"]
        assert pages == whole
    moments = [row["created_at"] for row in whole]
    assert moments == sorted(moments, reverse=True)


@pytest.mark.parametrize("query", [{"page": 0}, {"per_page": 0}, {"per_page": 101}])
async def test_a_bad_page_is_named(admin: Client, query: dict[str, int]) -> None:
    made = await create(admin)
    for path in (f"{PATH}/audit", f"{PATH}/{made['id']}/audit"):
        assert set(wrong(await admin.get(path, params=query))) == set(query)


async def test_each_tenant_has_a_trail_of_its_own(world: World) -> None:
    here, there = await world.user("tenant_admin"), await world.user("tenant_admin")
    ours, theirs = await create(here), await create(there)
    assert [row["credential_id"] for row in await trail(here)] == [ours["id"]]
    assert [row["credential_id"] for row in await trail(there)] == [theirs["id"]]
