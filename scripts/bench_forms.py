"""Measures public submissions against a bare insert of the same row, and the figures of a form."""

import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import asyncpg
import msgspec
import psutil
from litestar import Litestar, Request, post
from load import CLIENTS, per_second

from app.kit.ids import new_id
from tests.world import Client, World

_ROUNDS = 3
_SUBMISSIONS = 100_000
_REQUESTS = 40
_FIELDS: list[dict[str, Any]] = [
    {"id": "name", "type": "text", "label": "Your name", "required": True},
    {"id": "email", "type": "email", "label": "Your e-mail", "required": True},
    {
        "id": "topic",
        "type": "select",
        "label": "Topic",
        "options": [{"value": "sales", "label": "Sales"}, {"value": "help", "label": "Help"}],
    },
    {"id": "guests", "type": "number", "label": "Guests", "validation": {"min": 1, "max": 10}},
    {"id": "comment", "type": "textarea", "label": "Comment"},
]
_INSERT = """
INSERT INTO form_submissions
    (tenant_id, id, form_id, version, data, custom_metadata, source, ip_address, user_agent,
     page_url, referrer, answered, completion_seconds, fingerprint, errors)
VALUES ($1, $2, $3, 1, $4::json, '{}', 'public', '127.0.0.1', '', '', '', '11111', NULL, $5, '[]')
"""
# Half of them answer the optional fields, in 200 days, from five sources.
_ADD_HISTORY = """
INSERT INTO form_submissions
    (tenant_id, id, form_id, version, data, custom_metadata, source, ip_address, user_agent,
     page_url, referrer, answered, completion_seconds, fingerprint, errors, created_at)
SELECT $1::text, 'sbm_' || right($2::text, 12) || lpad(n::text, 14, '0'), $2::text, 1,
       json_build_object('name', 'Person ' || n, 'email', n || '@example.com'), '{}',
       (ARRAY['public', 'embed', 'api', 'conversation', 'campaign'])[1 + n % 5], '192.0.2.1', '',
       '', '', CASE WHEN n % 2 = 0 THEN '11000' ELSE '111' || n % 4 / 2 || n % 8 / 4 END,
       n % 600, n, '[]', now() - n % 200 * interval '1 day'
FROM generate_series(1, $3::int) n
"""
_ADD_COUNT = (
    "INSERT INTO form_counts (tenant_id, form_id, part, submissions) VALUES ($1, $2, 0, $3)"
)
_ADD_VIEWS = """
INSERT INTO form_views (tenant_id, form_id, day, views)
SELECT $1, $2, current_date - n, 1000 FROM generate_series(0, 199) n
"""

Row = Callable[..., None]


# The bare counterpart


@post("/insert/{tenant_id:str}/{form_id:str}")
async def bare_insert(
    request: Request,  # type: ignore[type-arg]
    tenant_id: str,
    form_id: str,
    data: dict[str, Any],
) -> dict[str, Any]:
    submission_id = new_id("sbm")
    answers = msgspec.json.encode(data["data"]).decode()
    async with request.app.state.pool.acquire() as connection:
        await connection.execute(
            _INSERT, tenant_id, submission_id, form_id, answers, hash(submission_id)
        )
    return {"data": {"submission_id": submission_id, "status": "received"}}


def bare_app() -> Litestar:
    async def start(app: Litestar) -> None:
        url = os.environ["PARLEY_DATABASE_URL"]
        app.state.pool = await asyncpg.create_pool(url, min_size=10, max_size=20)

    return Litestar([bare_insert], on_startup=[start], openapi_config=None)


# The rows of the table


async def bench(world: World, ports: dict[str, int], worker_pids: Sequence[int], row: Row) -> None:
    """Workers do not run meanwhile: what follows a submission is not part of the bare insert."""
    user = await world.user("tenant_admin")
    form = await _create_form(user)
    ours_path = f"/api/v1/public/forms/{form['slug']}/submit"
    bare_path = f"/insert/{user.tenant_id}/{form['id']}"
    pairs = []
    with _suspended(worker_pids):
        p95 = await _time_analytics(world, user)
        for _ in range(_ROUNDS):
            ours = await _rate(ports["parley"], ours_path)
            pairs.append((ours, await _rate(ports["bare_forms"], bare_path)))
    row("analytics, 100,000 submissions", f"{p95:.0f} ms", "", "p95", "≤ 200 ms",
        holds=p95 <= 200)  # fmt: skip
    ours, bare = (statistics.median(rates) for rates in zip(*pairs, strict=True))
    share = ours / bare
    row("public submission of a form", f"{ours:.0f}/s", f"{bare:.0f}/s", f"{share:.0%}", "≥ 40 %",
        holds=share >= 0.4)  # fmt: skip


@contextmanager
def _suspended(pids: Sequence[int]) -> Iterator[None]:
    processes = [psutil.Process(pid) for pid in pids]
    try:
        for process in processes:
            process.suspend()
        yield
    finally:
        for process in processes:
            process.resume()


async def _create_form(user: Client) -> dict[str, Any]:
    answer = await user.post("/api/v1/forms", {"name": "Measured", "fields": _FIELDS})
    answer.raise_for_status()
    form: dict[str, Any] = answer.json()["data"]
    (await user.post(f"/api/v1/forms/{form['id']}/publish")).raise_for_status()
    return form


async def _rate(port: int, path: str) -> float:
    return await per_second(
        port, [[_build_request(path, client, n) for n in range(50)] for client in range(CLIENTS)]
    )


def _build_request(path: str, client: int, number: int) -> bytes:
    answers = {
        "name": f"Person {number} of {client}",
        "email": f"person{number}@example.com",
        "topic": "sales",
        "guests": 1 + number % 10,
        "comment": "We look forward to it.",
    }
    body = msgspec.json.encode({"data": answers})
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _time_analytics(world: World, user: Client) -> float:
    form = await _create_form(user)
    async with world.services.db.tx(user.tenant_id) as tx:
        raw = await tx.raw()
        await raw.execute(_ADD_HISTORY, user.tenant_id, form["id"], _SUBMISSIONS)
        await raw.execute(_ADD_COUNT, user.tenant_id, form["id"], _SUBMISSIONS)
        await raw.execute(_ADD_VIEWS, user.tenant_id, form["id"])
    async with world.services.db.tx(user.tenant_id, autocommit=True) as tx:
        # As the server does by itself soon after so many rows.
        await (await tx.raw()).execute("VACUUM ANALYZE form_submissions")
    durations = []
    for _ in range(_REQUESTS):
        started = time.perf_counter()
        answer = await user.get(f"/api/v1/forms/{form['id']}/analytics")
        durations.append((time.perf_counter() - started) * 1000)
        assert answer.json()["data"]["total_submissions"] == _SUBMISSIONS
    return statistics.quantiles(durations, n=20)[-1]
