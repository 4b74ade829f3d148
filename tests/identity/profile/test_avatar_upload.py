"""POST /api/v1/profile/avatar: which files are accepted, and what is served."""

import io
from typing import Any
from urllib.parse import urlsplit

import pytest
from PIL import Image

from app.services import Services
from tests.assertions import until
from tests.identity.accounts.values import ROLES
from tests.identity.profile.api_calls import (
    AVATAR_PATH,
    draw_picture,
    get_profile,
    set_avatar,
    upload_avatar,
)
from tests.world import Client, World

pytestmark = pytest.mark.usefixtures("scripts_here")
MEGABYTE = 1024 * 1024
MEDIA_TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp"}


async def _load_picture(caller: Client, path: str) -> Image.Image:
    return Image.open(io.BytesIO((await caller.get(path)).content))


async def test_an_upload_returns_the_address_of_the_picture(
    developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Drawn again in a process without rights.
    monkeypatch.undo()
    answer = await upload_avatar(developer, draw_picture("PNG"))
    assert answer.status_code == 200
    assert set(answer.json()) == {"avatar_url", "message"}
    url: str = answer.json()["avatar_url"]
    assert url.startswith(f"{services.settings.public_url}/api/v1/avatars/")
    assert (await get_profile(developer))["avatar_url"] == url
    # It cannot be guessed: 256 random bits, and nothing of the user.
    key = url.rpartition("/")[2]
    assert len(key) == 43
    assert developer.user_id not in key


async def test_a_picture_is_served_smaller_and_without_what_is_hidden_in_it(
    world: World, subtests: pytest.Subtests
) -> None:
    """To callers without a login, with its media type, at most 512 pixels wide and high."""
    cases: list[tuple[str, tuple[int, int], tuple[int, int]]] = [
        ("JPEG", (1024, 512), (512, 256)),
        ("WEBP", (300, 900), (171, 512)),
        ("PNG", (1, 1), (1, 1)),
    ]
    assert {kind for kind, *_ in cases} == MEDIA_TYPES.keys()
    exif = Image.Exif()
    exif[0x010E] = "taken at home"
    for kind, size, expected in cases:
        developer = await world.user()
        content = draw_picture(kind, size, exif=exif.tobytes()) + b"<script>alert(1)</script>"
        assert b"taken at home" in content
        answer = await world.anonymous().get(await set_avatar(developer, content))
        with subtests.test(kind=kind):
            assert answer.status_code == 200
            assert answer.headers["content-type"] == MEDIA_TYPES[kind]
            picture = Image.open(io.BytesIO(answer.content))
            assert (picture.format, picture.size) == (kind, expected)
            hidden = (b"taken at home", b"<script>")
            assert [word for word in hidden if word in answer.content] == []


async def test_a_picture_is_served_with_protective_headers(
    developer: Client, anonymous: Client, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, str]] = [
        ("x-content-type-options", "nosniff"),
        ("content-disposition", "attachment"),
        ("cross-origin-resource-policy", "cross-origin"),
        ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
    ]
    answer = await anonymous.get(await set_avatar(developer))
    for header, value in cases:
        with subtests.test(header):
            assert answer.headers[header] == value


async def test_the_media_type_depends_on_neither_name_nor_declared_type(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, str, str]] = [
        ("PNG", "../../../etc/me.svg", "image/svg+xml"),
        ("PNG", "a" * 300 + ".png", ""),
        ("JPEG", "\u202egnp.png", "image/png"),
    ]
    for kind, name, declared in cases:
        developer = await world.user()
        anonymous = world.anonymous()
        with subtests.test(kind=kind, name=name):
            url = (await upload_avatar(developer, draw_picture(kind), name, declared)).json()[
                "avatar_url"
            ]
            answer = await anonymous.get(urlsplit(url).path)
            assert answer.headers["content-type"] == MEDIA_TYPES[kind]


async def test_a_file_that_is_no_picture_is_refused(
    developer: Client, subtests: pytest.Subtests
) -> None:
    """`tests/identity/profile/test_refused_images.py` has many more."""
    files = {
        "svg": b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
        "empty": b"",
        "a gif behind a signature": b"\x89PNG\r\n\x1a\n" + draw_picture("GIF"),
        "half of a picture": draw_picture("JPEG", (200, 100))[:500],
    }
    for name, content in files.items():
        with subtests.test(name):
            answer = await upload_avatar(developer, content)
            assert answer.status_code == 415
            assert answer.json()["error"]["code"] == "unsupported_file_type"
            assert set(answer.json()["error"]["details"]) == {"avatar"}


async def test_a_picture_of_too_many_pixels_is_refused(developer: Client) -> None:
    """The file is small, but has 100 MB once it is decoded."""
    out = io.BytesIO()
    Image.new("1", (6000, 6000)).save(out, "PNG")
    answer = await upload_avatar(developer, out.getvalue())
    assert answer.status_code == 415


async def test_a_file_that_is_too_large_is_refused(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for size in (2 * MEGABYTE + 1, 3 * MEGABYTE, 6 * MEGABYTE):
        with subtests.test(size=size):
            content = draw_picture("PNG")
            answer = await upload_avatar(developer, content + bytes(size - len(content)))
            assert answer.status_code == 413
            assert answer.json()["error"]["code"] == "file_too_large"


async def test_a_file_may_have_two_megabytes(developer: Client) -> None:
    content = draw_picture("PNG")
    answer = await upload_avatar(developer, content + bytes(2 * MEGABYTE - len(content)))
    assert answer.status_code == 200


async def test_a_refused_file_does_not_change_the_picture(
    developer: Client, anonymous: Client, subtests: pytest.Subtests
) -> None:
    path = await set_avatar(developer)
    for content in (b"", b"no picture", bytes(3 * MEGABYTE)):
        with subtests.test(content=content[:20]):
            await upload_avatar(developer, content)
            assert (await get_profile(developer))["avatar_url"].endswith(path)
            assert (await anonymous.get(path)).status_code == 200


async def test_a_file_of_another_name_is_refused(developer: Client) -> None:
    answer = await developer("POST", AVATAR_PATH, files={"avatr": ("me.png", draw_picture("PNG"))})
    assert answer.status_code == 422
    assert answer.json()["error"]["details"] == {
        "avatr": "is not a known field; did you mean avatar?"
    }


async def test_anything_but_one_file_is_refused(
    developer: Client, subtests: pytest.Subtests
) -> None:
    cases: dict[str, Any] = {
        "text": {"avatar": (None, "just text")},
        "two files": [
            ("avatar", ("a.png", draw_picture("PNG"))),
            ("avatar", ("b.png", draw_picture("PNG"))),
        ],
    }
    for name, files in cases.items():
        with subtests.test(name):
            answer = await developer("POST", AVATAR_PATH, files=files)
            assert answer.status_code == 422
            assert answer.json()["error"]["details"] == {"avatar": "must be one file"}


async def test_a_body_that_is_no_form_is_refused(
    developer: Client, subtests: pytest.Subtests
) -> None:
    cases: dict[str, dict[str, Any]] = {
        "nothing": {},
        "json": {"json": {"avatar": "text"}},
        "urlencoded": {"data": {"avatar": "text"}},
        "bare": {"content": draw_picture("PNG"), "headers": {"content-type": "image/png"}},
        "no boundary": {"content": b"x", "headers": {"content-type": "multipart/form-data"}},
        "another boundary": {
            "content": b"x",
            "headers": {"content-type": "multipart/form-data; boundary=y"},
        },
    }
    for name, body in cases.items():
        with subtests.test(name):
            answer = await developer("POST", AVATAR_PATH, **body)
            assert answer.status_code == 422
            assert answer.json()["error"]["code"] == "validation_error"


async def test_a_photograph_is_rotated_by_its_orientation(developer: Client) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    path = await set_avatar(developer, draw_picture("JPEG", (40, 20), exif=exif.tobytes()))
    assert (await _load_picture(developer, path)).size == (20, 40)


async def test_serving_a_picture_holds_no_connection(
    developer: Client, anonymous: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await set_avatar(developer)
    pool: Any = services.db.engine.pool
    reads = []

    async def wait_for_connections(_files: Any, key: str) -> bytes:
        # Others of this process may have one for a moment.
        await until(lambda: pool.checkedout() == 0)
        reads.append(key)
        return b""

    monkeypatch.setattr(type(services.files), "read", wait_for_connections)
    await anonymous.get(path)
    assert len(reads) == 1


async def test_a_picture_keeps_its_transparency(developer: Client) -> None:
    out = io.BytesIO()
    Image.new("RGBA", (8, 8), (255, 0, 0, 0)).save(out, "PNG")
    served = await _load_picture(developer, await set_avatar(developer, out.getvalue()))
    assert served.convert("RGBA").getchannel("A").getextrema() == (0, 0)


async def test_users_of_every_role_may_set_their_own_picture(
    world: World, subtests: pytest.Subtests
) -> None:
    for role in ROLES:
        with subtests.test(role=role):
            user = await world.user(role)
            # The body is looked at, so the caller may send one.
            answer = await user("POST", AVATAR_PATH, files={"avatar": (None, "just text")})
            assert answer.status_code == 422
    path = await set_avatar(user)
    assert (await get_profile(user))["avatar_url"].endswith(path)


async def test_super_admin_acting_in_another_tenant_sets_its_own_picture(
    super_admin: Client, admin: Client
) -> None:
    super_admin.http.headers["x-tenant-id"] = admin.tenant_id
    path = await set_avatar(super_admin)
    assert (await get_profile(super_admin))["avatar_url"].endswith(path)
    assert (await get_profile(admin))["avatar_url"] is None
