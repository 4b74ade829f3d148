"""Routes that exist only in tests, for what all routes have in common."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import msgspec
from litestar import Response, get, post
from litestar.datastructures import UploadFile
from litestar.params import JSONBody, MultipartBody
from litestar.types import Empty
from litestar.utils.scope.state import ScopeState
from sqlalchemy import select, text

from app.domain.platform.events import service as events
from app.domain.platform.events.events import SystemTest
from app.http.dependencies import HttpRequest, Principal, Services, Tx
from app.http.sse import EventStream
from app.kit.ids import new_id
from db.models import Invitation


class Nested(msgspec.Struct):
    count: int


class Form(msgspec.Struct):
    name: str
    nested: Nested
    age: int = 0


class Upload(msgspec.Struct):
    name: str


class FileForm(msgspec.Struct):
    file: UploadFile


@post("/test/failing-commit", public=True, include_in_schema=False)
async def failing_commit(tx: Tx) -> dict[str, str]:
    """Writes a row that makes the commit fail."""
    raw = await tx.raw()
    await raw.execute("""
        CREATE TEMP TABLE later (id int) ON COMMIT DROP;
        CREATE FUNCTION pg_temp.refuse() RETURNS trigger LANGUAGE plpgsql
            AS 'BEGIN RAISE EXCEPTION ''no''; END';
        CREATE CONSTRAINT TRIGGER late AFTER INSERT ON later DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION pg_temp.refuse();
        INSERT INTO later VALUES (1);
    """)
    return {"status": "created"}


@post("/test/form", public=True, include_in_schema=False)
async def form(data: JSONBody[Form]) -> Form:
    return data


@post("/test/counted", signed_in=True, include_in_schema=False)
async def counted(tx: Tx, data: JSONBody[dict[str, Any]]) -> dict[str, str]:
    """Writes one row each time it runs."""
    event_id = new_id("evt")
    await (await tx.session()).execute(
        text(
            "INSERT INTO event_log (tenant_id, id, type, correlation_id, data) "
            "VALUES (:tenant, :id, 'test.counted', 'cor_test', '{}')"
        ),
        {"tenant": tx.scope, "id": event_id},
    )
    if data.get("fail"):
        raise RuntimeError("a secret detail: hunter2")
    return {"id": event_id}


@post("/test/upload", upload=True, signed_in=True, include_in_schema=False)
async def upload(tx: Tx, data: MultipartBody[Upload]) -> dict[str, str]:
    """Answers with another id each time it runs."""
    return {"name": data.name, "id": new_id("upl")}


@post("/test/file", upload=True, idempotent="long_running", signed_in=True, include_in_schema=False)
async def read_file(request: HttpRequest, data: MultipartBody[FileForm]) -> dict[str, Any]:
    """Tells whether the whole body is still in memory."""
    body_is_kept = ScopeState.from_scope(request.scope).body is not Empty
    return {"file": (await data.file.read()).decode(), "body_is_kept": body_is_kept}


@get("/test/crash", public=True, include_in_schema=False)
async def crash() -> None:
    raise RuntimeError("a secret detail: hunter2")


@post("/test/chat", cost="chat", signed_in=True, include_in_schema=False)
async def chat() -> dict[str, str]:
    return {}


@get("/test/forgetful", signed_in=True, include_in_schema=False)
async def unscoped(tx: Tx) -> list[str]:
    """Selects all invitations, without a tenant condition of its own."""
    return list(await (await tx.session()).scalars(select(Invitation.id)))


# The stream below waits for it after its first chunk.
# A test that clears it holds streams back until it is set again.
stream_end = asyncio.Event()
stream_end.set()


@post("/test/stream", signed_in=True, include_in_schema=False)
async def stream(services: Services, principal: Principal) -> Response[bytes]:
    """Emits an event, then sends a stream that lasts until `stream_end` is set."""
    async with services.db.tx(principal.tenant_id) as tx:
        await events.emit(tx, SystemTest("Hi"), tenant_id=principal.tenant_id)

    async def send_chunks() -> AsyncGenerator[bytes, None]:
        yield b": first\n\n"
        await stream_end.wait()
        yield b": last\n\n"

    return EventStream(send_chunks())


ROUTES = [failing_commit, form, counted, upload, read_file, crash, chat, unscoped, stream]
