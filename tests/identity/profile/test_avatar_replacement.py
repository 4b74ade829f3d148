"""Replaced, removed and unknown pictures."""

import asyncio
from datetime import timedelta

import pytest

from app.domain.identity.profile import service
from app.domain.platform.files import maintenance
from app.kit.errors import Conflict
from app.services import Services
from tests.identity.profile.api_calls import (
    AVATAR_PATH,
    draw_picture,
    get_profile,
    is_avatar_stored,
    list_stored_avatars,
    set_avatar,
    upload_avatar,
)
from tests.lengths import rounds
from tests.world import Client, World

pytestmark = pytest.mark.usefixtures("scripts_here")


async def test_a_new_picture_has_a_new_address_and_deletes_the_old_one(
    developer: Client, anonymous: Client, services: Services
) -> None:
    paths = [await set_avatar(developer), await set_avatar(developer)]
    assert paths[0] != paths[1]
    assert [(await anonymous.get(path)).status_code for path in paths] == [404, 200]
    assert [await is_avatar_stored(services, path) for path in paths] == [False, True]


async def test_of_concurrent_uploads_one_file_is_kept(
    developer: Client, services: Services
) -> None:
    paths = await asyncio.gather(*(set_avatar(developer) for _ in range(rounds(3, 5))))
    stored_paths = [path for path in paths if await is_avatar_stored(services, path)]
    assert len(stored_paths) == 1
    assert (await get_profile(developer))["avatar_url"].endswith(stored_paths[0])


async def test_the_file_of_a_picture_that_is_not_committed_is_swept(
    developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_args: object) -> None:
        raise Conflict("The event is not stored")

    kept_path = await set_avatar(developer)
    before = list_stored_avatars(services)
    with monkeypatch.context() as patched:
        patched.setattr(service, "_emit_updated", fail)
        assert (await upload_avatar(developer, draw_picture("PNG"))).status_code == 409
    assert len(list_stored_avatars(services) - before) == 1
    monkeypatch.setattr(maintenance, "_MAX_UPLOAD_TIME", timedelta(days=-1))
    await maintenance.sweep(services)
    assert list_stored_avatars(services) <= before
    assert await is_avatar_stored(services, kept_path)


async def test_a_removed_picture_is_gone(
    developer: Client, anonymous: Client, services: Services
) -> None:
    path = await set_avatar(developer)
    answers = [await developer.delete(AVATAR_PATH) for _ in range(2)]
    assert [(answer.status_code, set(answer.json())) for answer in answers] == [
        (200, {"message"})
    ] * 2
    assert answers[0].content == answers[1].content
    assert (await get_profile(developer))["avatar_url"] is None
    answer = await anonymous.get(path)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "avatar_not_found"
    assert not await is_avatar_stored(services, path)


async def test_removing_a_picture_does_not_affect_other_users(
    world: World, developer: Client, anonymous: Client
) -> None:
    colleague = await world.user("viewer", developer.tenant_id)
    await set_avatar(developer)
    path = await set_avatar(colleague)
    await developer.delete(AVATAR_PATH)
    assert (await anonymous.get(path)).status_code == 200


async def test_an_unknown_picture_is_404(anonymous: Client, subtests: pytest.Subtests) -> None:
    cases: list[str] = ["unknown", "x" * 43, "x" * 500, "%2e%2e", "%25", "me.png"]
    for key in cases:
        with subtests.test(key=key):
            answer = await anonymous.get(f"/api/v1/avatars/{key}")
            assert answer.status_code == 404
            assert answer.json()["error"]["code"] == "avatar_not_found"


async def test_no_address_reaches_other_files(
    developer: Client, anonymous: Client, subtests: pytest.Subtests
) -> None:
    cases: list[str] = [
        "..%2f..%2f..%2fetc%2fpasswd",
        "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "..%5c..%5cetc%5cpasswd",
        "%2fetc%2fpasswd",
        "..%2favatars%2f{key}",
        "{key}%2f..%2f{key}",
    ]
    valid_key = (await set_avatar(developer)).rpartition("/")[2]
    for key in cases:
        with subtests.test(key=key):
            answer = await anonymous.get(f"/api/v1/avatars/{key.format(key=valid_key)}")
            assert answer.status_code == 404
