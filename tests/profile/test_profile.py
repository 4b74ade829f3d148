"""One's own profile and picture."""

import asyncio
import io
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from PIL import Image

from app.kit import clock
from app.kit.files import FileNotStored
from app.services import Services
from tests.world import Client, World

PATH = "/api/v1/profile"
AVATAR = f"{PATH}/avatar"
KEYS = {
    "id",
    "email",
    "first_name",
    "last_name",
    "role",
    "tenant_id",
    "email_verified",
    "mfa_enabled",
    "status",
    "last_login_at",
    "created_at",
    "updated_at",
    "avatar_url",
    "timezone",
    "language",
}
ROLES = ["super_admin", "tenant_admin", "agent_developer", "agent_user", "viewer"]
MEGABYTE = 1024 * 1024


async def _profile(caller: Client, **headers: str) -> dict[str, Any]:
    answer = await caller.get(PATH, headers=headers)
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


# Get


async def test_a_profile_is_the_user_with_picture_zone_and_language(developer: Client) -> None:
    shown = await _profile(developer)
    me = (await developer.get("/auth/me")).json()
    assert set(shown) == KEYS
    assert shown == {**me, "avatar_url": None, "timezone": "UTC", "language": "en"}


@pytest.mark.parametrize("role", ROLES)
async def test_everybody_has_a_profile(world: World, role: str) -> None:
    user = await world.user(role)
    shown = await _profile(user)
    assert (shown["id"], shown["role"]) == (user.user_id, role)


async def test_a_profile_shows_no_password(developer: Client) -> None:
    text = (await developer.get(PATH)).text
    assert [word for word in ("argon2", "password", "avatar_key") if word in text] == []


async def test_acting_in_another_tenant_super_admin_still_sees_its_own_profile(
    super_admin: Client, admin: Client
) -> None:
    shown = await _profile(super_admin, **{"x-tenant-id": admin.tenant_id})
    assert (shown["id"], shown["tenant_id"]) == (super_admin.user_id, super_admin.tenant_id)


@pytest.mark.parametrize(
    ("method", "path"), [("GET", PATH), ("PUT", PATH), ("POST", AVATAR), ("DELETE", AVATAR)]
)
async def test_nobody_has_a_profile_without_a_login(
    anonymous: Client, method: str, path: str
) -> None:
    assert (await anonymous(method, path)).status_code == 401


# Change


WHOLE = {
    "first_name": "Ada",
    "last_name": "Lovelace",
    "timezone": "Europe/London",
    "language": "en-GB",
}


async def test_a_changed_profile_is_answered(developer: Client) -> None:
    answer = await developer.put(PATH, WHOLE)
    body = answer.json()
    assert answer.status_code == 200
    assert set(body) == {*WHOLE, "id", "updated_at"}
    assert {name: body[name] for name in WHOLE} == WHOLE
    assert body["id"] == developer.user_id


async def test_the_time_of_a_change_is_told_in_utc(developer: Client) -> None:
    told = (await developer.put(PATH, WHOLE)).json()["updated_at"]
    assert told.endswith("Z")
    assert abs((clock.now() - datetime.fromisoformat(told)).total_seconds()) < 60


async def test_a_changed_profile_is_there_when_it_is_read_again(developer: Client) -> None:
    changed = (await developer.put(PATH, WHOLE)).json()
    shown = await _profile(developer)
    assert {name: shown[name] for name in changed} == changed


@pytest.mark.parametrize("name", WHOLE)
async def test_what_is_left_out_of_a_change_stays_as_it_was(developer: Client, name: str) -> None:
    before = await _profile(developer)
    await developer.put(PATH, {name: WHOLE[name]})
    after = await _profile(developer)
    assert {**after, "updated_at": ""} == {**before, name: WHOLE[name], "updated_at": ""}


async def test_an_empty_change_changes_nothing(developer: Client) -> None:
    before = await _profile(developer)
    answer = await developer.put(PATH, {})
    assert answer.status_code == 200
    assert {**await _profile(developer), "updated_at": ""} == {**before, "updated_at": ""}


@pytest.mark.parametrize("role", ROLES)
async def test_everybody_changes_their_own_profile(world: World, role: str) -> None:
    answer = await (await world.user(role)).put(PATH, WHOLE)
    assert answer.status_code == 200


async def test_a_change_leaves_others_alone(world: World, developer: Client) -> None:
    colleague = await world.user("viewer", developer.tenant_id)
    before = await _profile(colleague)
    await developer.put(PATH, WHOLE)
    assert await _profile(colleague) == before


async def test_acting_in_another_tenant_super_admin_still_changes_its_own_profile(
    super_admin: Client, admin: Client
) -> None:
    before = await _profile(admin)
    answer = await super_admin.put(PATH, WHOLE, headers={"x-tenant-id": admin.tenant_id})
    assert answer.json()["id"] == super_admin.user_id
    assert (await _profile(super_admin))["last_name"] == "Lovelace"
    assert await _profile(admin) == before


@pytest.mark.parametrize(
    ("field", "value"),
    [
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
    ],
)
async def test_no_other_field_of_a_profile_can_be_set(
    developer: Client, field: str, value: object
) -> None:
    before = await _profile(developer)
    answer = await developer.put(PATH, {"timezone": "UTC", field: value})
    assert answer.status_code == 200
    assert {**await _profile(developer), "updated_at": ""} == {**before, "updated_at": ""}


@pytest.mark.parametrize(
    "zone", ["UTC", "Europe/London", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "Asia/Kolkata"]
)
async def test_a_zone_is_any_of_the_iana_list(developer: Client, zone: str) -> None:
    await developer.put(PATH, {"timezone": zone})
    assert (await _profile(developer))["timezone"] == zone


@pytest.mark.parametrize(
    "zone",
    [
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
    ],
)
async def test_what_is_no_zone_is_named(developer: Client, zone: object) -> None:
    answer = await developer.put(PATH, {"timezone": zone})
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "validation_error"
    assert set(answer.json()["error"]["details"]) == {"timezone"}


@pytest.mark.parametrize(
    ("tag", "kept"),
    [
        ("en", "en"),
        ("EN", "en"),
        ("en-gb", "en-GB"),
        ("PT-br", "pt-BR"),
        ("zh-hant-tw", "zh-Hant-TW"),
        ("es-419", "es-419"),
        ("iw", "he"),
        ("de-CH-1996", "de-CH-1996"),
    ],
)
async def test_a_language_is_kept_in_its_usual_form(developer: Client, tag: str, kept: str) -> None:
    answer = await developer.put(PATH, {"language": tag})
    assert answer.json()["language"] == kept
    assert (await _profile(developer))["language"] == kept


@pytest.mark.parametrize(
    "tag",
    [
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
    ],
)
async def test_what_is_no_language_is_named(developer: Client, tag: object) -> None:
    answer = await developer.put(PATH, {"language": tag})
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"language"}


@pytest.mark.parametrize("field", ["first_name", "last_name"])
@pytest.mark.parametrize(
    "value", ["", " \t", "Ada\nBcc: x", "Ada\x1b[31m", "x" * 101, None, 5, ["Ada"]]
)
async def test_what_is_no_name_is_named(developer: Client, field: str, value: object) -> None:
    answer = await developer.put(PATH, {field: value})
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {field}


async def test_names_are_kept_without_the_space_around_them(developer: Client) -> None:
    answer = await developer.put(PATH, {"first_name": " Ada ", "last_name": "  King Noel "})
    assert (answer.json()["first_name"], answer.json()["last_name"]) == ("Ada", "King Noel")


async def test_a_wrong_zone_and_a_wrong_language_are_both_named(developer: Client) -> None:
    answer = await developer.put(PATH, {"timezone": "Mars/Base", "language": "martian"})
    assert set(answer.json()["error"]["details"]) == {"timezone", "language"}


async def test_a_refused_change_changes_nothing(developer: Client) -> None:
    before = await _profile(developer)
    await developer.put(PATH, {**WHOLE, "timezone": "Mars/Base"})
    assert await _profile(developer) == before


# The picture


def _drawn(kind: str, size: tuple[int, int] = (40, 20), **options: Any) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, "red").save(out, kind, **options)
    return out.getvalue()


PICTURES = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp"}


async def _upload(
    caller: Client, content: bytes, name: str = "me.png", declared: str = "image/png"
) -> httpx.Response:
    return await caller("POST", AVATAR, files={"avatar": (name, content, declared)})


async def _set(caller: Client, content: bytes | None = None) -> str:
    """Gives the caller a picture; the path that it is served at."""
    answer = await _upload(caller, _drawn("PNG") if content is None else content)
    assert answer.status_code == 200, answer.text
    url: str = answer.json()["avatar_url"]
    return urlsplit(url).path


async def _served(caller: Client, path: str) -> Image.Image:
    return Image.open(io.BytesIO((await caller.get(path)).content))


@pytest.mark.parametrize("kind", PICTURES)
async def test_a_stored_picture_is_answered(
    developer: Client, services: Services, kind: str
) -> None:
    answer = await _upload(developer, _drawn(kind))
    assert answer.status_code == 200
    assert set(answer.json()) == {"avatar_url", "message"}
    assert answer.json()["avatar_url"].startswith(f"{services.settings.public_url}/api/v1/avatars/")


async def test_a_profile_tells_the_address_of_the_picture(developer: Client) -> None:
    answer = await _upload(developer, _drawn("PNG"))
    assert (await _profile(developer))["avatar_url"] == answer.json()["avatar_url"]


async def test_the_address_of_a_picture_cannot_be_guessed(developer: Client) -> None:
    """A key of 256 random bits: nothing of the user is in it."""
    key = (await _set(developer)).rpartition("/")[2]
    assert len(key) == 43
    assert developer.user_id not in key


@pytest.mark.parametrize("kind", PICTURES)
async def test_a_picture_is_served_to_everybody_as_what_it_is(
    developer: Client, anonymous: Client, kind: str
) -> None:
    answer = await anonymous.get(await _set(developer, _drawn(kind)))
    assert answer.status_code == 200
    assert answer.headers["content-type"] == PICTURES[kind]
    assert Image.open(io.BytesIO(answer.content)).format == kind


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("x-content-type-options", "nosniff"),
        ("content-disposition", "attachment"),
        ("cross-origin-resource-policy", "cross-origin"),
        ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
    ],
)
async def test_a_picture_is_served_so_that_it_is_nothing_but_a_picture(
    developer: Client, anonymous: Client, header: str, value: str
) -> None:
    answer = await anonymous.get(await _set(developer))
    assert answer.headers[header] == value


@pytest.mark.parametrize(
    ("kind", "name", "declared"),
    [
        ("PNG", "me.svg", "image/svg+xml"),
        ("PNG", "me.html", "text/html"),
        ("PNG", "me.jpg", "image/jpeg"),
        ("PNG", "../../../etc/passwd", "image/png"),
        ("PNG", "a" * 300 + ".png", ""),
        ("PNG", "\u202egnp.exe", "image/png"),
        ("JPEG", "me.png", "image/png"),
        ("WEBP", "me.gif", "application/octet-stream"),
    ],
)
async def test_neither_name_nor_declared_type_decides_what_a_picture_is(
    developer: Client, anonymous: Client, kind: str, name: str, declared: str
) -> None:
    url = (await _upload(developer, _drawn(kind), name, declared)).json()["avatar_url"]
    answer = await anonymous.get(urlsplit(url).path)
    assert answer.headers["content-type"] == PICTURES[kind]


UNSUPPORTED = {
    "svg": b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
    "html": b"<!doctype html><script>alert(1)</script>",
    "gif": _drawn("GIF"),
    "bmp": _drawn("BMP"),
    "tiff": _drawn("TIFF"),
    "ico": _drawn("ICO"),
    "empty": b"",
    "text": b"just text",
    "zeros": bytes(1000),
    "only a signature": b"\x89PNG\r\n\x1a\n",
    "a gif behind a signature": b"\x89PNG\r\n\x1a\n" + _drawn("GIF"),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
async def test_what_is_no_picture_is_refused(developer: Client, name: str) -> None:
    answer = await _upload(developer, UNSUPPORTED[name])
    assert answer.status_code == 415
    assert answer.json()["error"]["code"] == "unsupported_file_type"
    assert set(answer.json()["error"]["details"]) == {"avatar"}


@pytest.mark.parametrize("kind", PICTURES)
async def test_a_truncated_picture_is_refused(developer: Client, kind: str) -> None:
    whole = _drawn(kind, (200, 100))
    answer = await _upload(developer, whole[: len(whole) // 2])
    assert answer.status_code == 415
    assert answer.json()["error"]["code"] == "unsupported_file_type"


async def test_a_picture_of_too_many_pixels_is_refused(developer: Client) -> None:
    """Small as a file, and 100 MB once it is decoded."""
    answer = await _upload(developer, _drawn("PNG", (6000, 6000)))
    assert answer.status_code == 415


@pytest.mark.parametrize("size", [2 * MEGABYTE + 1, 3 * MEGABYTE, 6 * MEGABYTE])
async def test_a_file_that_is_too_large_is_refused(developer: Client, size: int) -> None:
    content = _drawn("PNG")
    answer = await _upload(developer, content + bytes(size - len(content)))
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "file_too_large"


async def test_a_file_may_have_two_megabytes(developer: Client) -> None:
    content = _drawn("PNG")
    answer = await _upload(developer, content + bytes(2 * MEGABYTE - len(content)))
    assert answer.status_code == 200


@pytest.mark.parametrize("content", [b"", b"no picture", bytes(3 * MEGABYTE)])
async def test_a_refused_file_leaves_the_picture_as_it_was(
    developer: Client, anonymous: Client, content: bytes
) -> None:
    path = await _set(developer)
    await _upload(developer, content)
    assert (await _profile(developer))["avatar_url"].endswith(path)
    assert (await anonymous.get(path)).status_code == 200


async def test_a_missing_file_is_named(developer: Client) -> None:
    answer = await developer("POST", AVATAR, files={"picture": ("me.png", _drawn("PNG"))})
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {"avatar"}


@pytest.mark.parametrize(
    "files",
    [
        {"avatar": (None, "just text")},
        [("avatar", ("a.png", _drawn("PNG"))), ("avatar", ("b.png", _drawn("PNG")))],
    ],
    ids=["text", "two files"],
)
async def test_what_is_not_one_file_is_named(developer: Client, files: Any) -> None:
    answer = await developer("POST", AVATAR, files=files)
    assert answer.status_code == 422
    assert answer.json()["error"]["details"] == {"avatar": "must be one file"}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"json": {"avatar": "text"}},
        {"data": {"avatar": "text"}},
        {"content": _drawn("PNG"), "headers": {"content-type": "image/png"}},
        {"content": b"x", "headers": {"content-type": "multipart/form-data"}},
        {"content": b"x", "headers": {"content-type": "multipart/form-data; boundary=y"}},
    ],
    ids=["nothing", "json", "urlencoded", "bare", "no boundary", "another boundary"],
)
async def test_what_is_no_form_is_refused(developer: Client, body: dict[str, Any]) -> None:
    answer = await developer("POST", AVATAR, **body)
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "validation_error"


@pytest.mark.parametrize(
    ("kind", "size", "drawn"),
    [
        ("PNG", (1024, 512), (512, 256)),
        ("JPEG", (1024, 512), (512, 256)),
        ("WEBP", (300, 900), (171, 512)),
        ("PNG", (40, 20), (40, 20)),
        ("PNG", (1, 1), (1, 1)),
    ],
)
async def test_a_picture_is_at_most_512_pixels_wide_and_high(
    developer: Client, kind: str, size: tuple[int, int], drawn: tuple[int, int]
) -> None:
    path = await _set(developer, _drawn(kind, size))
    assert (await _served(developer, path)).size == drawn


@pytest.mark.parametrize("kind", PICTURES)
async def test_nothing_that_the_file_carried_besides_is_served(
    developer: Client, anonymous: Client, kind: str
) -> None:
    exif = Image.Exif()
    exif[0x010E] = "taken at home"
    content = _drawn(kind, exif=exif.tobytes()) + b"<script>alert(1)</script>"
    assert b"taken at home" in content
    served = (await anonymous.get(await _set(developer, content))).content
    assert [word for word in (b"taken at home", b"<script>") if word in served] == []


async def test_a_photograph_is_shown_upright(developer: Client) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    path = await _set(developer, _drawn("JPEG", (40, 20), exif=exif.tobytes()))
    assert (await _served(developer, path)).size == (20, 40)


@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
async def test_a_picture_stays_transparent_where_it_was(developer: Client, kind: str) -> None:
    out = io.BytesIO()
    Image.new("RGBA", (8, 8), (255, 0, 0, 0)).save(out, kind, lossless=True)
    served = await _served(developer, await _set(developer, out.getvalue()))
    assert served.convert("RGBA").getchannel("A").getextrema() == (0, 0)


@pytest.mark.parametrize("role", ROLES)
async def test_everybody_sets_their_own_picture(world: World, role: str) -> None:
    user = await world.user(role)
    path = await _set(user)
    assert (await _profile(user))["avatar_url"].endswith(path)


async def test_acting_in_another_tenant_super_admin_still_sets_its_own_picture(
    super_admin: Client, admin: Client
) -> None:
    super_admin.http.headers["x-tenant-id"] = admin.tenant_id
    path = await _set(super_admin)
    assert (await _profile(super_admin))["avatar_url"].endswith(path)
    assert (await _profile(admin))["avatar_url"] is None


# A new picture, and none


async def _stored(services: Services, path: str) -> bool:
    try:
        await services.files.read(f"avatars/{path.rpartition('/')[2]}")
    except FileNotStored:
        return False
    return True


async def test_a_new_picture_has_a_new_address(developer: Client) -> None:
    assert await _set(developer) != await _set(developer)


async def test_a_new_picture_makes_the_old_address_404(
    developer: Client, anonymous: Client
) -> None:
    paths = [await _set(developer), await _set(developer)]
    assert [(await anonymous.get(path)).status_code for path in paths] == [404, 200]


async def test_a_new_picture_makes_the_old_file_disappear(
    developer: Client, services: Services
) -> None:
    paths = [await _set(developer), await _set(developer)]
    assert [await _stored(services, path) for path in paths] == [False, True]


async def test_of_pictures_set_at_once_one_file_stays(
    developer: Client, services: Services
) -> None:
    paths = await asyncio.gather(*(_set(developer) for _ in range(5)))
    kept = [path for path in paths if await _stored(services, path)]
    assert len(kept) == 1
    assert (await _profile(developer))["avatar_url"].endswith(kept[0])


async def test_removing_the_picture_answers_with_a_message(developer: Client) -> None:
    await _set(developer)
    answer = await developer.delete(AVATAR)
    assert (answer.status_code, set(answer.json())) == (200, {"message"})


async def test_a_removed_picture_is_gone_from_the_profile(developer: Client) -> None:
    await _set(developer)
    await developer.delete(AVATAR)
    assert (await _profile(developer))["avatar_url"] is None


async def test_a_removed_picture_is_404(developer: Client, anonymous: Client) -> None:
    path = await _set(developer)
    await developer.delete(AVATAR)
    answer = await anonymous.get(path)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "avatar_not_found"


async def test_the_file_of_a_removed_picture_disappears(
    developer: Client, services: Services
) -> None:
    path = await _set(developer)
    await developer.delete(AVATAR)
    assert not await _stored(services, path)


async def test_removing_no_picture_is_answered_alike(developer: Client) -> None:
    await _set(developer)
    answers = [await developer.delete(AVATAR) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].content == answers[1].content


async def test_removing_ones_picture_leaves_anothers_alone(
    world: World, developer: Client, anonymous: Client
) -> None:
    colleague = await world.user("viewer", developer.tenant_id)
    path = await _set(colleague)
    await developer.delete(AVATAR)
    assert (await anonymous.get(path)).status_code == 200


# Addresses that nobody was given


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
async def test_no_address_leads_out_of_the_pictures(
    developer: Client, anonymous: Client, key: str
) -> None:
    known = (await _set(developer)).rpartition("/")[2]
    answer = await anonymous.get(f"/api/v1/avatars/{key.format(key=known)}")
    assert answer.status_code == 404
