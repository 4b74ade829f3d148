"""Endpoints that repeat what they were sent: nothing that opens something is stored."""

import base64
import json
from collections.abc import Callable
from urllib.parse import quote

import pytest
from aiohttp import web

from app.domain.deliveries.sending import BODY_BYTES
from app.services import Services
from tests.deliveries.receiver import Receiver
from tests.events.database import run_sql
from tests.peer import answering
from tests.webhooks.factories import create_webhook, read_delivery, rotate_secret, send_test_event
from tests.world import Client
from workers.main import WorkerProcess

TOKEN = "pl+anted/to=ken"
HIDDEN = {"Authorization": f"Bearer {TOKEN}", "Cookie": "id=planted-cookie", "X-Api-Key": "pl4nt"}
SENT = {**HIDDEN, "X-Team": "sales"}


async def _said(client: Client, url: str) -> str:
    """What is stored of the answer to a test event."""
    made = await create_webhook(client, url=url, headers=SENT)
    await rotate_secret(client, made["id"])
    delivery = await send_test_event(client, made["id"])
    (attempt,) = (await read_delivery(client, made["id"], delivery["id"]))["attempts"]
    said: str = attempt["response_body"]
    return said


async def test_an_echo_is_stored_without_what_is_masked(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    said = await _said(developer, f"{receiver.url}/echo")
    assert "X-Team: sales" in said
    assert "Authorization: " in said
    for value in [*HIDDEN.values(), TOKEN, "planted-cookie"]:
        assert value not in said


async def test_an_echo_is_not_in_the_database_either(
    developer: Client, services: Services, courier: WorkerProcess, receiver: Receiver
) -> None:
    await _said(developer, f"{receiver.url}/echo")
    sql = """
    SELECT a::text AS text FROM delivery_attempts a WHERE tenant_id = $1
    UNION ALL SELECT d::text FROM deliveries d WHERE tenant_id = $1
    UNION ALL SELECT w::text FROM work w WHERE tenant_id = $1
    UNION ALL SELECT e::text FROM event_log e WHERE tenant_id = $1
    """
    stored = str([row["text"] for row in await run_sql(services, sql, developer.tenant_id)])
    assert "X-Team: sales" in stored
    for value in [*HIDDEN.values(), TOKEN, "whsec_"]:
        assert value not in stored


WRITINGS: dict[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "json": lambda text: json.dumps({"got": text}),
    "url": quote,
    "base 64": lambda text: base64.b64encode(text.encode()).decode(),
    "hex": lambda text: text.encode().hex(),
}


@pytest.mark.parametrize("writing", WRITINGS)
async def test_an_echo_in_another_writing_is_not_stored(
    developer: Client, courier: WorkerProcess, writing: str
) -> None:
    write = WRITINGS[writing]

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(text="you sent " + write(request.headers["Authorization"]))

    async with answering(answer) as url:
        said = await _said(developer, url)
    assert said.startswith("you sent ")
    assert write(HIDDEN["Authorization"]) not in said


async def test_the_token_alone_is_not_stored(developer: Client, courier: WorkerProcess) -> None:
    async def answer(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(text="unknown token " + request.headers["Authorization"].split()[1])

    async with answering(answer) as url:
        said = await _said(developer, url)
    assert said.startswith("unknown token ")
    assert TOKEN not in said


@pytest.mark.parametrize("fits", [3, 10, len(HIDDEN["Authorization"]) - 1])
@pytest.mark.parametrize("repeated", [0, 50])
async def test_a_value_that_is_cut_off_is_not_stored_in_part(
    developer: Client, courier: WorkerProcess, fits: int, repeated: int
) -> None:
    """The answer is kept up to 16 KiB; an echo lies across that border."""

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        value = request.headers["Authorization"]
        before = (value + " ") * repeated
        filler = "." * (BODY_BYTES - len(before) - fits)
        return web.Response(text=before + filler + value + "." * 50_000)

    async with answering(answer) as url:
        said = await _said(developer, url)
    assert len(said.encode()) <= BODY_BYTES
    assert HIDDEN["Authorization"][:fits] not in said


@pytest.mark.parametrize("letter", [".", "ü", "☕"])
async def test_a_long_answer_is_kept_up_to_16_kib(
    developer: Client, courier: WorkerProcess, letter: str
) -> None:
    async def answer(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(text=letter * 40_000)

    async with answering(answer) as url:
        said = await _said(developer, url)
    assert set(said) == {letter}
    assert BODY_BYTES - 1024 < len(said.encode()) <= BODY_BYTES
