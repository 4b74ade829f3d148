"""Requests of the profile and its picture."""

import asyncio
import io
from typing import Any
from urllib.parse import urlsplit

import httpx
from PIL import Image

from app.services import Services
from tests.world import Client

PATH = "/api/v1/profile"
AVATAR_PATH = f"{PATH}/avatar"


async def get_profile(caller: Client, **headers: str) -> dict[str, Any]:
    answer = await caller.get(PATH, headers=headers)
    assert answer.status_code == 200, answer.text
    profile: dict[str, Any] = answer.json()
    return profile


def draw_picture(kind: str, size: tuple[int, int] = (40, 20), **options: Any) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, "red").save(out, kind, **options)
    return out.getvalue()


async def upload_avatar(
    caller: Client, content: bytes, name: str = "me.png", declared: str = "image/png"
) -> httpx.Response:
    return await caller("POST", AVATAR_PATH, files={"avatar": (name, content, declared)})


async def set_avatar(caller: Client, content: bytes | None = None) -> str:
    """Sets the picture of the caller; returns the path that serves it."""
    answer = await upload_avatar(caller, draw_picture("PNG") if content is None else content)
    assert answer.status_code == 200, answer.text
    url: str = answer.json()["avatar_url"]
    return urlsplit(url).path


def list_stored_avatars(services: Services) -> set[str]:
    """Returns the keys of all pictures in the store."""
    folder = services.settings.data_dir / "files" / "files"
    return {path.name.removeprefix("avatar_") for path in folder.glob("*/avatar_*")}


async def is_avatar_stored(services: Services, path: str) -> bool:
    """True when there is a file for the path that serves a picture."""
    return path.rpartition("/")[2] in await asyncio.to_thread(list_stored_avatars, services)
