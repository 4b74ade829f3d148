"""Requests of files."""

from pathlib import Path
from typing import Any

import httpx

from app.kit.files import FileNotStored
from app.services import Services
from tests.database import fetch_rows
from tests.world import Client

PATH = "/api/v1/files"
MEGABYTE = 1024 * 1024


async def send_file(
    caller: Client, content: bytes = b"content", name: str = "a.txt", **options: Any
) -> httpx.Response:
    return await caller("POST", PATH, files={"file": (name, content)}, **options)


async def upload(
    caller: Client, content: bytes = b"content", name: str = "a.txt"
) -> dict[str, Any]:
    answer = await send_file(caller, content, name)
    assert answer.status_code == 201, answer.text
    file: dict[str, Any] = answer.json()["data"]
    return file


async def list_names(caller: Client, **query: str) -> list[str]:
    answer = await caller.get(PATH, params=query)
    assert answer.status_code == 200, answer.text
    return [file["filename"] for file in answer.json()["data"]]


async def read_usage(caller: Client) -> dict[str, Any]:
    answer = await caller.get(f"{PATH}/usage")
    assert answer.status_code == 200, answer.text
    usage: dict[str, Any] = answer.json()
    return usage


def content_path(file: dict[str, Any]) -> str:
    return f"{PATH}/{file['id']}/content"


def stored_files(services: Services, tenant_id: str) -> list[Path]:
    """Returns all files in the tenant's folder of the store, complete or not."""
    folder = services.settings.data_dir / "files" / "files" / tenant_id
    return sorted(path for path in folder.rglob("*") if path.is_file())


async def is_stored(services: Services, key: str) -> bool:
    try:
        await services.files.read(key)
    except FileNotStored:
        return False
    return True


async def count_rows(services: Services, tenant_id: str) -> int:
    sql = "SELECT count(*) AS count FROM files WHERE tenant_id = $1"
    count: int = (await fetch_rows(services, sql, tenant_id))[0]["count"]
    return count
