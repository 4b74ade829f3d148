"""Replaced, removed and unknown pictures."""

import asyncio

import pytest

from app.services import Services
from tests.profile.api_calls import AVATAR_PATH, get_profile, is_avatar_stored, set_avatar
from tests.world import Client, World


async def test_a_new_picture_has_a_new_address(developer: Client) -> None:
    assert await set_avatar(developer) != await set_avatar(developer)


async def test_a_new_picture_makes_the_old_address_404(
    developer: Client, anonymous: Client
) -> None:
    paths = [await set_avatar(developer), await set_avatar(developer)]
    assert [(await anonymous.get(path)).status_code for path in paths] == [404, 200]


async def test_a_new_picture_deletes_the_old_file(developer: Client, services: Services) -> None:
    paths = [await set_avatar(developer), await set_avatar(developer)]
    assert [await is_avatar_stored(services, path) for path in paths] == [False, True]


async def test_of_concurrent_uploads_one_file_is_kept(
    developer: Client, services: Services
) -> None:
    paths = await asyncio.gather(*(set_avatar(developer) for _ in range(5)))
    stored_paths = [path for path in paths if await is_avatar_stored(services, path)]
    assert len(stored_paths) == 1
    assert (await get_profile(developer))["avatar_url"].endswith(stored_paths[0])


async def test_removing_the_picture_returns_a_message(developer: Client) -> None:
    await set_avatar(developer)
    answer = await developer.delete(AVATAR_PATH)
    assert (answer.status_code, set(answer.json())) == (200, {"message"})


async def test_a_removed_picture_is_not_in_the_profile(developer: Client) -> None:
    await set_avatar(developer)
    await developer.delete(AVATAR_PATH)
    assert (await get_profile(developer))["avatar_url"] is None


async def test_a_removed_picture_is_404(developer: Client, anonymous: Client) -> None:
    path = await set_avatar(developer)
    await developer.delete(AVATAR_PATH)
    answer = await anonymous.get(path)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "avatar_not_found"


async def test_the_file_of_a_removed_picture_is_deleted(
    developer: Client, services: Services
) -> None:
    path = await set_avatar(developer)
    await developer.delete(AVATAR_PATH)
    assert not await is_avatar_stored(services, path)


async def test_removing_the_picture_twice_gives_the_same_answer(developer: Client) -> None:
    await set_avatar(developer)
    answers = [await developer.delete(AVATAR_PATH) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].content == answers[1].content


async def test_removing_a_picture_does_not_affect_other_users(
    world: World, developer: Client, anonymous: Client
) -> None:
    colleague = await world.user("viewer", developer.tenant_id)
    await set_avatar(developer)
    path = await set_avatar(colleague)
    await developer.delete(AVATAR_PATH)
    assert (await anonymous.get(path)).status_code == 200


@pytest.mark.parametrize("key", ["unknown", "x" * 43, "x" * 500, "%2e%2e", "%25", "me.png"])
async def test_an_unknown_picture_is_404(anonymous: Client, key: str) -> None:
    answer = await anonymous.get(f"/api/v1/avatars/{key}")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "avatar_not_found"


@pytest.mark.parametrize(
    "key",
    [
        "..%2f..%2f..%2fetc%2fpasswd",
        "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "..%5c..%5cetc%5cpasswd",
        "%2fetc%2fpasswd",
        "..%2favatars%2f{key}",
        "{key}%2f..%2f{key}",
    ],
)
async def test_no_address_reaches_other_files(
    developer: Client, anonymous: Client, key: str
) -> None:
    valid_key = (await set_avatar(developer)).rpartition("/")[2]
    answer = await anonymous.get(f"/api/v1/avatars/{key.format(key=valid_key)}")
    assert answer.status_code == 404
