"""GET and PUT /api/v1/profile."""

from datetime import datetime

import pytest

from app.kit import clock
from tests.identity.accounts.values import ROLES, USER_KEYS
from tests.identity.profile.api_calls import AVATAR_PATH, PATH, get_profile
from tests.world import Client, World

KEYS = USER_KEYS | {"avatar_url", "timezone", "language", "has_chosen_language"}


async def test_a_profile_is_the_user_with_picture_time_zone_and_language(developer: Client) -> None:
    profile = await get_profile(developer)
    me = (await developer.get("/auth/me")).json()
    assert set(profile) == KEYS
    own = {"avatar_url": None, "timezone": "UTC", "language": "en", "has_chosen_language": False}
    assert profile == {**me, **own}


async def test_a_profile_says_whether_its_language_was_chosen(developer: Client) -> None:
    await developer.put(PATH, {"timezone": "Europe/Berlin"})
    assert (await get_profile(developer))["has_chosen_language"] is False
    # Also when it is the default.
    await developer.put(PATH, {"language": "en"})
    assert (await get_profile(developer))["has_chosen_language"] is True


async def test_users_of_every_role_have_a_profile(world: World, subtests: pytest.Subtests) -> None:
    for role in ROLES:
        with subtests.test(role=role):
            user = await world.user(role)
            profile = await get_profile(user)
            assert (profile["id"], profile["role"]) == (user.user_id, role)


async def test_a_profile_contains_no_password(developer: Client) -> None:
    text = (await developer.get(PATH)).text
    assert [word for word in ("argon2", "password", "avatar_key") if word in text] == []


async def test_super_admin_acting_in_another_tenant_gets_its_own_profile(
    super_admin: Client, admin: Client
) -> None:
    profile = await get_profile(super_admin, **{"x-tenant-id": admin.tenant_id})
    assert (profile["id"], profile["tenant_id"]) == (super_admin.user_id, super_admin.tenant_id)


async def test_the_profile_needs_a_login(anonymous: Client, subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, str]] = [
        ("GET", PATH),
        ("PUT", PATH),
        ("POST", AVATAR_PATH),
        ("DELETE", AVATAR_PATH),
    ]
    for method, path in cases:
        with subtests.test(method=method, path=path):
            assert (await anonymous(method, path)).status_code == 401


ALL_FIELDS = {
    "first_name": "Ada",
    "last_name": "Lovelace",
    "timezone": "Europe/London",
    "language": "en-GB",
}


async def test_a_change_returns_the_changed_profile(developer: Client) -> None:
    answer = await developer.put(PATH, ALL_FIELDS)
    body = answer.json()
    assert answer.status_code == 200
    assert set(body) == {*ALL_FIELDS, "id", "updated_at"}
    assert {name: body[name] for name in ALL_FIELDS} == ALL_FIELDS
    assert body["id"] == developer.user_id


async def test_the_time_of_a_change_is_in_utc(developer: Client) -> None:
    updated_at = (await developer.put(PATH, ALL_FIELDS)).json()["updated_at"]
    assert updated_at.endswith("Z")
    assert abs((clock.now() - datetime.fromisoformat(updated_at)).total_seconds()) < 60


async def test_a_changed_profile_is_stored(developer: Client) -> None:
    changed = (await developer.put(PATH, ALL_FIELDS)).json()
    profile = await get_profile(developer)
    assert {name: profile[name] for name in changed} == changed


async def test_omitted_fields_are_not_changed(world: World, subtests: pytest.Subtests) -> None:
    for name, value in ALL_FIELDS.items():
        developer = await world.user()
        with subtests.test(name=name):
            before = await get_profile(developer)
            await developer.put(PATH, {name: value})
            after = await get_profile(developer)
            assert {**after, "updated_at": ""} == {
                **before,
                name: value,
                "has_chosen_language": name == "language",
                "updated_at": "",
            }


async def test_an_empty_change_changes_nothing(developer: Client) -> None:
    before = await get_profile(developer)
    answer = await developer.put(PATH, {})
    assert answer.status_code == 200
    assert {**await get_profile(developer), "updated_at": ""} == {**before, "updated_at": ""}


async def test_users_of_every_role_change_their_own_profile(
    world: World, subtests: pytest.Subtests
) -> None:
    for role in ROLES:
        with subtests.test(role=role):
            answer = await (await world.user(role)).put(PATH, ALL_FIELDS)
            assert answer.status_code == 200


async def test_a_change_does_not_affect_other_users(world: World, developer: Client) -> None:
    colleague = await world.user("viewer", developer.tenant_id)
    before = await get_profile(colleague)
    await developer.put(PATH, ALL_FIELDS)
    assert await get_profile(colleague) == before


async def test_super_admin_acting_in_another_tenant_changes_its_own_profile(
    super_admin: Client, admin: Client
) -> None:
    before = await get_profile(admin)
    answer = await super_admin.put(PATH, ALL_FIELDS, headers={"x-tenant-id": admin.tenant_id})
    assert answer.json()["id"] == super_admin.user_id
    assert (await get_profile(super_admin))["last_name"] == "Lovelace"
    assert await get_profile(admin) == before


_CASES: list[tuple[str, object]] = [
    ("role", "super_admin"),
    ("tenant_id", "ten_other"),
    ("email", "other@example.com"),
    ("id", "usr_other"),
    ("email_verified", True),
    ("mfa_enabled", True),
    ("status", "inactive"),
    ("avatar_url", "http://elsewhere.example/a.png"),
    ("created_at", "2000-01-01T00:00:00Z"),
    ("nickname", "Countess"),
]


async def test_no_other_field_of_a_profile_can_be_set(
    world: World, subtests: pytest.Subtests
) -> None:
    for field, value in _CASES:
        developer = await world.user()
        with subtests.test(field=field, value=value):
            before = await get_profile(developer)
            answer = await developer.put(PATH, {"timezone": "UTC", field: value})
            assert answer.status_code in {200, 422}
            assert {**await get_profile(developer), "updated_at": ""} == {
                **before,
                "updated_at": "",
            }


async def test_any_iana_time_zone_is_accepted(world: World, subtests: pytest.Subtests) -> None:
    cases: list[str] = [
        "UTC",
        "Europe/London",
        "America/Argentina/Buenos_Aires",
        "Etc/GMT+5",
        "Asia/Kolkata",
    ]
    for zone in cases:
        developer = await world.user()
        with subtests.test(zone=zone):
            await developer.put(PATH, {"timezone": zone})
            assert (await get_profile(developer))["timezone"] == zone


_INVALID_ZONES: list[object] = [
    "",
    " ",
    "europe/london",
    "EUROPE/LONDON",
    "utc",
    " UTC",
    "UTC\n",
    "Europe",
    "Europe/Atlantis",
    "+01:00",
    "UTC+1",
    "../etc/passwd",
    "../../etc/passwd",
    "/etc/passwd",
    "/usr/share/zoneinfo/UTC",
    "Europe/../UTC",
    "posixrules",
    "localtime",
    "Factory",
    "right/UTC",
    "tzdata.zi",
    "x" * 65,
    None,
    5,
    ["UTC"],
]


async def test_an_invalid_time_zone_is_refused(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for zone in _INVALID_ZONES:
        with subtests.test(zone=zone):
            answer = await developer.put(PATH, {"timezone": zone})
            assert answer.status_code == 422
            assert answer.json()["error"]["code"] == "validation_error"
            assert set(answer.json()["error"]["details"]) == {"timezone"}


async def test_a_language_is_stored_in_its_standard_form(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, str]] = [
        ("en", "en"),
        ("EN", "en"),
        ("en-gb", "en-GB"),
        ("PT-br", "pt-BR"),
        ("zh-hant-tw", "zh-Hant-TW"),
        ("es-419", "es-419"),
        ("iw", "he"),
        ("de-CH-1996", "de-CH-1996"),
    ]
    for tag, expected in cases:
        developer = await world.user()
        with subtests.test(tag=tag, expected=expected):
            answer = await developer.put(PATH, {"language": tag})
            assert answer.json()["language"] == expected
            assert (await get_profile(developer))["language"] == expected


_INVALID_TAGS: list[object] = [
    "",
    " ",
    "e",
    "english",
    "xx",
    "en_GB",
    "en-",
    "-en",
    "en--GB",
    " en",
    "en\n",
    "en GB",
    "en-GB; q=0.5",
    "../en",
    "*",
    "\u0435n",
    "x" * 36,
    None,
    5,
    ["en"],
]


async def test_an_invalid_language_is_refused(developer: Client, subtests: pytest.Subtests) -> None:
    for tag in _INVALID_TAGS:
        with subtests.test(tag=tag):
            answer = await developer.put(PATH, {"language": tag})
            assert answer.status_code == 422
            assert set(answer.json()["error"]["details"]) == {"language"}


_INVALID_VALUES: list[object] = [
    "",
    " \t",
    "Ada\nBcc: x",
    "Ada\x1b[31m",
    "x" * 101,
    None,
    5,
    ["Ada"],
]


async def test_an_invalid_name_is_refused(developer: Client, subtests: pytest.Subtests) -> None:
    for field in ("first_name", "last_name"):
        for value in _INVALID_VALUES:
            with subtests.test(field=field, value=value):
                answer = await developer.put(PATH, {field: value})
                assert answer.status_code == 422
                assert set(answer.json()["error"]["details"]) == {field}


async def test_names_are_stored_without_surrounding_spaces(developer: Client) -> None:
    answer = await developer.put(PATH, {"first_name": " Ada ", "last_name": "  King Noel "})
    assert (answer.json()["first_name"], answer.json()["last_name"]) == ("Ada", "King Noel")


async def test_an_invalid_time_zone_and_language_are_both_reported(developer: Client) -> None:
    answer = await developer.put(PATH, {"timezone": "Mars/Base", "language": "martian"})
    assert set(answer.json()["error"]["details"]) == {"timezone", "language"}


async def test_a_refused_change_changes_nothing(developer: Client) -> None:
    before = await get_profile(developer)
    await developer.put(PATH, {**ALL_FIELDS, "timezone": "Mars/Base"})
    assert await get_profile(developer) == before
