"""What a tenant may store: counted exactly, for all kinds of files."""

import asyncio
from collections import Counter

import pytest

from app.domain.agents.knowledge import maintenance
from app.security.plans import PLANS, plan_of
from app.services import Services
from tests.assertions import refused
from tests.database import run_sql
from tests.identity.profile.api_calls import AVATAR_PATH, draw_picture, set_avatar, upload_avatar
from tests.platform.files.api import (
    MEGABYTE,
    PATH,
    count_rows,
    is_stored,
    read_usage,
    send_file,
    stored_files,
    upload,
)
from tests.world import Client, World

_AGENT = {"name": "Agent", "primary_model": "openai/gpt-4o", "system_prompt": "Be."}
_SET_USAGE = """
INSERT INTO storage_usage AS u (tenant_id, used_bytes, file_count) VALUES ($1, $2, 1)
ON CONFLICT (tenant_id) DO UPDATE SET used_bytes = excluded.used_bytes
"""
# A worker may count events and documents meanwhile; less than nothing counts as nothing.
_LEAVE_OUT_THE_REST = """
INSERT INTO storage_usage (tenant_id, other_bytes) VALUES ($1, -1000000000)
"""


@pytest.fixture
async def small(world: World, services: Services) -> Client:
    """A user of a tenant that may store a megabyte of files."""
    limits = {"requests_per_minute": 1_000_000, "storage_mb": 1}
    tenant_id = await world.tenant("enterprise", limits)
    await run_sql(services, _LEAVE_OUT_THE_REST, tenant_id)
    return await world.user("agent_developer", tenant_id)


async def _use(services: Services, tenant_id: str, used_bytes: int) -> None:
    await run_sql(services, _SET_USAGE, tenant_id, used_bytes)


def test_the_plans_have_their_storage() -> None:
    storage = {name: plan.storage_mb for name, plan in PLANS.items()}
    assert storage == {"free": 1024, "pro": 10_240, "team": 102_400, "enterprise": 512_000}
    assert plan_of("enterprise", {"storage_mb": 7}).storage_mb == 7
    assert plan_of("free", {"storage_mb": 7}).storage_mb == 1024


async def test_usage_follows_uploads_and_deletions(small: Client) -> None:
    none = {"used_bytes": 0, "limit_bytes": MEGABYTE, "file_bytes": 0, "file_count": 0}
    assert await read_usage(small) == none
    first = await upload(small, b"12345")
    await upload(small, b"678")
    assert await read_usage(small) == none | {"used_bytes": 8, "file_bytes": 8, "file_count": 2}
    await small.delete(f"{PATH}/{first['id']}")
    assert await read_usage(small) == none | {"used_bytes": 3, "file_bytes": 3, "file_count": 1}


async def test_a_tenant_stores_exactly_its_limit(small: Client, services: Services) -> None:
    await upload(small, bytes(MEGABYTE - 1))
    error = refused(await send_file(small, b"12"), 413, "quota_exceeded")
    details = error["details"]
    assert (details["used_bytes"], details["limit_bytes"]) == (MEGABYTE - 1, MEGABYTE)
    assert details["by_kind"]["files"] == MEGABYTE - 1
    assert "DELETE /api/v1/files/{file_id}" in error["message"]
    await upload(small, b"1")
    refused(await send_file(small, b"1"), 413, "quota_exceeded")
    assert (await read_usage(small))["used_bytes"] == MEGABYTE
    assert len(stored_files(services, small.tenant_id)) == 2


async def test_a_tenant_over_its_limit_keeps_its_files_and_deletes_them(
    small: Client, services: Services
) -> None:
    """As after a change to a smaller plan."""
    file = await upload(small)
    await _use(services, small.tenant_id, 2 * MEGABYTE)
    refused(await send_file(small, b"1"), 413, "quota_exceeded")
    assert (await small.get(f"{PATH}/{file['id']}/content")).content == b"content"
    assert (await small.delete(f"{PATH}/{file['id']}")).status_code == 204


async def test_of_parallel_uploads_only_those_pass_that_fit(
    small: Client, services: Services
) -> None:
    content = bytes(300 * 1024)
    answers = await asyncio.gather(*(send_file(small, content) for _ in range(8)))
    statuses = Counter(answer.status_code for answer in answers)
    assert statuses == {201: 3, 413: 5}
    usage = await read_usage(small)
    assert (usage["used_bytes"], usage["file_count"]) == (3 * len(content), 3)
    assert len(stored_files(services, small.tenant_id)) == 3
    assert await count_rows(services, small.tenant_id) == 3


async def test_parallel_deletions_of_a_file_are_counted_once(small: Client) -> None:
    file = await upload(small, b"12345")
    await upload(small, b"1")
    path = f"{PATH}/{file['id']}"
    answers = await asyncio.gather(*(small.delete(path) for _ in range(6)))
    assert sorted(answer.status_code for answer in answers) == [204, *[404] * 5]
    assert (await read_usage(small))["used_bytes"] == 1


async def test_a_body_that_cannot_fit_is_refused_before_it_is_read(
    small: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = []

    async def record(key: str, *_args: object) -> None:
        keys.append(key)

    monkeypatch.setattr(services.files, "put_stream", record)
    answer = await send_file(small, bytes(2 * MEGABYTE))
    refused(answer, 413, "quota_exceeded")
    assert keys == []


async def test_pictures_are_counted_and_replaced(small: Client, services: Services) -> None:
    await set_avatar(small)
    first = await read_usage(small)
    assert (first["used_bytes"] > 0, first["file_count"]) == (True, 1)
    # Only the picture that is replaced makes room for the new one.
    await _use(services, small.tenant_id, MEGABYTE)
    await set_avatar(small)
    assert await read_usage(small) == first | {"used_bytes": MEGABYTE, "file_bytes": MEGABYTE}
    await small.delete(AVATAR_PATH)
    assert (await read_usage(small))["file_count"] == 0
    await _use(services, small.tenant_id, MEGABYTE)
    answer = await upload_avatar(small, draw_picture("PNG"))
    refused(answer, 413, "quota_exceeded")
    assert (await small.get("/api/v1/profile")).json()["avatar_url"] is None


async def test_the_picture_of_a_deleted_user_is_not_counted(world: World, admin: Client) -> None:
    user = await world.user("viewer", admin.tenant_id)
    await set_avatar(user)
    assert (await admin.delete(f"/users/{user.user_id}")).status_code in {200, 204}
    assert (await read_usage(admin))["file_count"] == 0


async def _train(caller: Client, agent_id: str, **files: bytes) -> int:
    parts = [("files", (f"{name}.txt", content)) for name, content in files.items()]
    answer = await caller("POST", f"/api/v1/agents/{agent_id}/train", files=parts)
    return answer.status_code


async def test_documents_are_counted_replaced_and_deleted(
    small: Client, services: Services
) -> None:
    agent_id = (await small.post("/api/v1/agents", _AGENT)).json()["id"]
    assert await _train(small, agent_id, a=b"12345", b=b"678") == 202
    assert (await read_usage(small))["used_bytes"] == 8
    assert await _train(small, agent_id, a=b"1") == 202
    assert (await read_usage(small))["used_bytes"] == 4
    documents = (await small.get(f"/api/v1/agents/{agent_id}/documents?sort=name")).json()["data"]
    await small.delete(f"/api/v1/agents/{agent_id}/documents/{documents[0]['id']}")
    usage = await read_usage(small)
    assert (usage["used_bytes"], usage["file_count"]) == (3, 1)
    await small.delete(f"/api/v1/agents/{agent_id}")
    await maintenance.remove_agent(services, agent_id)
    usage = await read_usage(small)
    assert (usage["used_bytes"], usage["file_count"]) == (0, 0)


async def test_documents_beyond_the_limit_are_refused_together(
    small: Client, services: Services
) -> None:
    agent_id = (await small.post("/api/v1/agents", _AGENT)).json()["id"]
    half = b"x" * (700 * 1024)
    assert await _train(small, agent_id, a=half, b=half) == 413
    assert (await read_usage(small))["used_bytes"] == 0
    assert (await small.get(f"/api/v1/agents/{agent_id}/documents")).json()["data"] == []
    assert agent_id not in await services.files.list_folders("documents/")
    assert await _train(small, agent_id, a=half) == 202


async def test_a_document_from_before_files_were_counted_is_still_read_and_replaced(
    small: Client, services: Services
) -> None:
    agent_id = (await small.post("/api/v1/agents", _AGENT)).json()["id"]
    await _train(small, agent_id, a=b"old")
    (row,) = await run_sql(
        services, "DELETE FROM files WHERE owner_id = $1 RETURNING key", agent_id
    )
    await _use(services, small.tenant_id, 0)
    (document,) = (await small.get(f"/api/v1/agents/{agent_id}/documents")).json()["data"]
    path = f"/api/v1/agents/{agent_id}/documents/{document['id']}/content"
    assert (await small.get(path)).content == b"old"
    await _train(small, agent_id, a=b"newer")
    assert (await read_usage(small))["used_bytes"] == 5
    assert not await is_stored(services, row["key"])
