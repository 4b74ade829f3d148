"""Endpoints that echo their requests: no secret of the request is stored."""

import base64
import json
from collections.abc import Callable
from functools import partial
from urllib.parse import quote

import pytest
from aiohttp import web

from app.domain.messaging.deliveries.sending import BODY_BYTES
from app.services import Services
from tests.database import run_sql
from tests.messaging.deliveries.receiver import Receiver
from tests.messaging.webhooks.factories import (
    create_webhook,
    read_delivery,
    rotate_secret,
    send_test_event,
)
from tests.peer import answering
from tests.world import Client, World
from workers.main import WorkerProcess

TOKEN = "pl+anted/to=ken"
SECRET_HEADERS = {
    "Authorization": f"Bearer {TOKEN}",
    "Cookie": "id=planted-cookie",
    "X-Api-Key": "pl4nt",
}
HEADERS = {**SECRET_HEADERS, "X-Team": "sales"}


async def _read_stored_body(client: Client, url: str) -> str:
    """Returns the stored response body of a test event."""
    webhook = await create_webhook(client, url=url, headers=HEADERS)
    await rotate_secret(client, webhook["id"])
    delivery = await send_test_event(client, webhook["id"])
    (attempt,) = (await read_delivery(client, webhook["id"], delivery["id"]))["attempts"]
    body: str = attempt["response_body"]
    return body


async def _read_stored_answer(client: Client, build_text: Callable[[str], str]) -> str:
    """Returns the stored body of an endpoint whose answer depends on the Authorization header."""

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(text=build_text(request.headers["Authorization"]))

    async with answering(answer) as url:
        return await _read_stored_body(client, url)


async def test_an_echo_is_stored_without_masked_values(
    developer: Client, courier: WorkerProcess, receiver: Receiver
) -> None:
    body = await _read_stored_body(developer, f"{receiver.url}/echo")
    assert "X-Team: sales" in body
    assert "Authorization: " in body
    for value in [*SECRET_HEADERS.values(), TOKEN, "planted-cookie"]:
        assert value not in body


async def test_the_database_has_no_echoed_secret(
    developer: Client, services: Services, courier: WorkerProcess, receiver: Receiver
) -> None:
    await _read_stored_body(developer, f"{receiver.url}/echo")
    sql = """
    SELECT a::text AS text FROM delivery_attempts a WHERE tenant_id = $1
    UNION ALL SELECT d::text FROM deliveries d WHERE tenant_id = $1
    UNION ALL SELECT w::text FROM work w WHERE tenant_id = $1
    UNION ALL SELECT e::text FROM event_log e WHERE tenant_id = $1
    """
    stored = str([row["text"] for row in await run_sql(services, sql, developer.tenant_id)])
    assert "X-Team: sales" in stored
    for value in [*SECRET_HEADERS.values(), TOKEN, "whsec_"]:
        assert value not in stored


ENCODINGS: dict[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "json": lambda text: json.dumps({"got": text}),
    "url": quote,
    "base 64": lambda text: base64.b64encode(text.encode()).decode(),
    "hex": lambda text: text.encode().hex(),
}


def _echo(encode: Callable[[str], str], header: str) -> str:
    return "you sent " + encode(header)


async def test_an_echo_in_another_encoding_is_not_stored(
    world: World, courier: WorkerProcess, subtests: pytest.Subtests
) -> None:
    for encoding, encode in ENCODINGS.items():
        with subtests.test(encoding=encoding):
            developer = await world.user()
            body = await _read_stored_answer(developer, partial(_echo, encode))
            assert body.startswith("you sent ")
            assert encode(SECRET_HEADERS["Authorization"]) not in body


async def test_the_token_alone_is_not_stored(developer: Client, courier: WorkerProcess) -> None:
    body = await _read_stored_answer(
        developer, lambda header: "unknown token " + header.removeprefix("Bearer ")
    )
    assert body.startswith("unknown token ")
    assert TOKEN not in body


def _echo_at_the_cut(length: int, repetitions: int, header: str) -> str:
    start = (header + " ") * repetitions
    filler = "." * (BODY_BYTES - len(start) - length)
    return start + filler + header + "." * 50_000


async def test_a_secret_at_the_cut_is_not_stored_in_part(
    world: World, courier: WorkerProcess, subtests: pytest.Subtests
) -> None:
    """A response body is stored up to 16 KiB; the echo is across that limit."""
    for length in (3, 10, len(SECRET_HEADERS["Authorization"]) - 1):
        for repetitions in (0, 50):
            with subtests.test(length=length, repetitions=repetitions):
                developer = await world.user()

                build_text = partial(_echo_at_the_cut, length, repetitions)
                body = await _read_stored_answer(developer, build_text)
                assert len(body.encode()) <= BODY_BYTES
                assert SECRET_HEADERS["Authorization"][:length] not in body


def _repeat(letter: str, _header: str) -> str:
    return letter * 40_000


async def test_a_long_response_is_stored_up_to_16_kib(
    world: World, courier: WorkerProcess, subtests: pytest.Subtests
) -> None:
    for letter in (".", "ü", "☕"):
        with subtests.test(letter=letter):
            developer = await world.user()
            body = await _read_stored_answer(developer, partial(_repeat, letter))
            assert set(body) == {letter}
            assert BODY_BYTES - 1024 < len(body.encode()) <= BODY_BYTES
