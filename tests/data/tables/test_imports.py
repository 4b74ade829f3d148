"""CSV files: imported by a worker, and exported."""

from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from typing import Any

import httpx
import pytest
from litestar import Litestar

from app.domain.data.tables import export, import_queries, imports, row_queries, scan_limit, service
from app.domain.data.tables.columns import Table
from app.domain.data.tables.errors import ExportInterrupted
from app.jobs import work
from app.kit import clock
from app.services import Services
from tests.assertions import refused, wait_until
from tests.data.tables.api import TABLES, add_rows, create_table, list_rows, list_values
from tests.database import fetch_rows, lose_commit_replies
from tests.running_worker import run_worker
from tests.stores import Stores
from tests.world import Client, World
from workers.main import WorkerProcess

COLUMNS: list[dict[str, Any]] = [
    {"name": "code", "type": "text", "required": True, "unique": True},
    {"name": "n", "type": "integer"},
    {"name": "note", "type": "text"},
]


@pytest.fixture(scope="module")
async def importer(app: Litestar, stores: Stores) -> AsyncIterator[WorkerProcess]:
    async with run_worker(stores.settings, "imports") as process:
        yield process


async def start_import(
    client: Client, table: dict[str, Any], content: bytes, **params: Any
) -> dict[str, Any]:
    path = f"{TABLES}/{table['id']}/import"
    answer = await client.http.post(path, files={"file": ("rows.csv", content)}, params=params)
    assert answer.status_code == 202, answer.text
    record: dict[str, Any] = answer.json()["data"]
    return record


async def run_import(
    client: Client, table: dict[str, Any], content: bytes, **params: Any
) -> dict[str, Any]:
    record = await start_import(client, table, content, **params)
    path = f"{TABLES}/{table['id']}/imports/{record['id']}"

    async def find_ended() -> dict[str, Any] | None:
        shown: dict[str, Any] = (await client.get(path)).json()["data"]
        return shown if shown["finished_at"] else None

    ended = await wait_until(find_ended)
    assert ended is not None
    return ended


async def test_wrong_rows_are_reported_and_the_others_are_stored(
    developer: Client, importer: WorkerProcess
) -> None:
    table = await create_table(developer, COLUMNS)
    content = b"\xef\xbb\xbfCODE;n\r\na;1\r\n;2\r\nb;x\r\na;4\r\nc;\r\nd;1;2\r\n"
    ended = await run_import(developer, table, content)
    assert (ended["status"], ended["rows_total"], ended["rows_done"], ended["rows_failed"]) == (
        *("completed", 6, 6),
        4,
    )
    problems = [(item["row"], item.get("column")) for item in ended["errors"]]
    assert problems == [(2, "code"), (3, "n"), (4, "code"), (6, None)]
    assert await list_values(developer, table, "code", sort="code") == ["a", "c"]
    listed = await developer.get(f"{TABLES}/{table['id']}/imports")
    assert [item["id"] for item in listed.json()["data"]] == [ended["id"]]


async def test_all_errors_of_a_large_file_are_listed(
    developer: Client,
    importer: WorkerProcess,
    subtests: pytest.Subtests,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = await create_table(developer, COLUMNS)
    rows = [f"{n},{'x' if n % 3 == 0 else n}" for n in range(1, 451)]
    content = "\n".join(("code,n", *rows)).encode()
    for limit, expected in ((10_000, 150), (120, 120)):
        with subtests.test(limit=limit):
            monkeypatch.setattr(import_queries, "MAX_ERRORS", limit)
            ended = await run_import(developer, table, content, mode="upsert")
            assert (ended["rows_failed"], len(ended["errors"])) == (150, 100)
            path = f"{TABLES}/{table['id']}/imports/{ended['id']}/errors"
            first = (await developer.get(path, params={"per_page": "100"})).json()
            assert first["data"] == ended["errors"]
            assert first["pagination"]["total"] == expected
            last = (await developer.get(path, params={"per_page": "1", "page": expected})).json()
            assert [item["row"] for item in last["data"]] == [3 * expected]


async def test_errors_are_listed_only_for_an_import_of_the_table(developer: Client) -> None:
    table, other = await create_table(developer, COLUMNS), await create_table(developer, COLUMNS)
    record = await start_import(developer, table, b"code\na\n")
    path = f"imports/{record['id']}/errors"
    assert (await developer.get(f"{TABLES}/{table['id']}/{path}")).json()["data"] == []
    refused(await developer.get(f"{TABLES}/{other['id']}/{path}"), 404, "import_not_found")


async def test_an_upsert_changes_the_columns_of_the_file(
    developer: Client, importer: WorkerProcess
) -> None:
    table = await create_table(developer, COLUMNS)
    await add_rows(developer, table, {"code": "a", "n": 1, "note": "kept"}, {"code": "b", "n": 2})
    ended = await run_import(
        developer, table, b"code,n\na,10\nc,30\nc,31\nb,\n", mode="upsert", match="code"
    )
    assert (ended["status"], ended["rows_failed"]) == ("completed", 0)
    assert await list_values(developer, table, "code", sort="code") == ["a", "b", "c"]
    assert await list_values(developer, table, "n", sort="code") == [10, None, 31]
    assert (await list_values(developer, table, "note", sort="code"))[0] == "kept"


async def test_an_upsert_needs_a_unique_column(developer: Client) -> None:
    table = await create_table(developer, [{"name": "n", "type": "integer"}])
    path, files = f"{TABLES}/{table['id']}/import", {"file": ("rows.csv", b"n\n1\n")}
    answer = await developer.http.post(path, files=files, params={"mode": "upsert"})
    message = refused(answer, 422, "validation_error")["details"]["match"]
    assert message.startswith("the table has no unique column")


async def test_an_upsert_that_loses_a_race_updates_the_row(
    developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another transaction inserts the row after the import looked for it."""
    created = await create_table(developer, COLUMNS)
    tenant_id, match = developer.tenant_id, row_queries.match
    calls: list[int] = []

    async def insert_after_match(*args: Any) -> Any:
        matched = await match(*args)
        if not calls:
            await add_rows(developer, created, {"code": "a", "n": 1, "note": "kept"})
        calls.append(1)
        return matched

    monkeypatch.setattr(row_queries, "match", insert_after_match)
    async with services.db.tx(tenant_id) as tx:
        table = await service.load_table(tx, tenant_id, created["id"])
        row = imports.FileRow(1, {"c1": "a", "c2": 2})
        assert await imports.store(tx, table, imports.FileRows([row], []), "c1") == []
    [stored] = (await list_rows(developer, created))["data"]
    assert stored["values"] == {"code": "a", "n": 2, "note": "kept"}


async def test_an_import_beyond_the_rows_of_the_plan_fails_with_a_reason(
    world: World, importer: WorkerProcess
) -> None:
    owner = await world.user(tenant_id=await world.tenant(limits={"data_rows": 1}))
    table = await create_table(owner, COLUMNS)
    ended = await run_import(owner, table, b"code\na\nb\n")
    assert ended["status"] == "failed"
    assert "may have 1 rows together" in ended["error"]
    assert await list_values(owner, table, "code") == []


async def test_an_empty_cell_of_a_new_row_takes_the_default(
    developer: Client, importer: WorkerProcess
) -> None:
    status = {"name": "status", "type": "select", "options": ["new", "won"], "default": "new"}
    table = await create_table(developer, [*COLUMNS, status])
    await run_import(developer, table, b"code,status\na,\nb,won\n")
    assert await list_values(developer, table, "status", sort="code") == ["new", "won"]
    await run_import(developer, table, b"code,status\nb,\n", mode="upsert")
    assert await list_values(developer, table, "status", sort="code") == ["new", None]


async def test_a_file_that_cannot_be_read_fails_the_import_with_a_reason(
    developer: Client, importer: WorkerProcess, subtests: pytest.Subtests
) -> None:
    table = await create_table(developer, COLUMNS)
    for content, reason in (
        (b"", "no header"),
        (b"\x89PNG\r\n", "not a text file"),
        (b"code,other\n1,2\n", "'other'"),
        (b"code,code\n1,2\n", "twice"),
        (b"code\na\n" + b"x" * 600_000, "too long"),
        (b"code\na\n" + b'"' + b"x\n" * 100_000, "line"),
    ):
        with subtests.test(content=content[:20]):
            ended = await run_import(developer, table, content)
            assert ended["status"] == "failed"
            assert reason in ended["error"]
    assert (await list_rows(developer, table))["data"] == []


async def test_an_interrupted_import_goes_on_without_double_rows(
    developer: Client, services: Services, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first worker dies after its first batch, as with kill -9: without another statement."""
    table = await create_table(developer, COLUMNS[1:])
    content = b"n\n" + b"".join(b"%d\n" % number for number in range(1200))
    monkeypatch.setattr(imports, "BATCH", 500)
    store, calls = imports.store, []

    async def fail_second(*args: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            await store(*args)
            raise RuntimeError("killed within the transaction")
        return await store(*args)

    monkeypatch.setattr(imports, "store", fail_second)
    async with run_worker(stores.settings, "imports"):
        ended = await run_import(developer, table, content)
    assert (ended["status"], ended["rows_done"], len(calls)) == ("completed", 1200, 4)
    counted = await fetch_rows(
        services,
        "SELECT count(*) AS n, count(DISTINCT values->>'c1') AS d FROM data_rows"
        " WHERE table_id = $1",
        table["id"],
    )
    assert counted == [{"n": 1200, "d": 1200}]
    assert (await list_rows(developer, table))["pagination"]["total"] == 1200


async def test_a_cancelled_import_stores_nothing_more(
    developer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is due tomorrow: a worker of another test would run it before it is cancelled."""
    table = await create_table(developer, COLUMNS)
    accept_later = partial(work.accept, run_at=clock.now() + timedelta(days=1))
    with monkeypatch.context() as patch:
        patch.setattr(work, "accept", accept_later)
        record = await start_import(developer, table, b"code\na\n")
    path = f"{TABLES}/{table['id']}/imports/{record['id']}"
    answer = await developer.post(f"{path}/cancel")
    assert answer.json()["data"]["status"] == "cancelled"
    refused(await developer.post(f"{path}/cancel"), 409, "conflict")
    refused(await developer.get(f"{path}x"), 404, "import_not_found")


async def test_imports_are_listed_by_status(
    developer: Client, importer: WorkerProcess, subtests: pytest.Subtests
) -> None:
    table = await create_table(developer, COLUMNS)
    ids = {
        status: (await run_import(developer, table, content))["id"]
        for status, content in (("completed", b"code\na\n"), ("failed", b"unknown\na\n"))
    }
    path = f"{TABLES}/{table['id']}/imports"
    for status, expected in (
        ("completed", [ids["completed"]]),
        ("failed", [ids["failed"]]),
        ("cancelled", []),
    ):
        with subtests.test(status=status):
            body = (await developer.get(path, params={"status": status})).json()
            assert [item["id"] for item in body["data"]] == expected
            assert body["pagination"]["total"] == len(expected)
    assert (await developer.get(path)).json()["pagination"]["total"] == len(ids)
    refused(await developer.get(path, params={"status": "ended"}), 422, "validation_error")


async def test_an_export_is_imported_again_unchanged(
    developer: Client, importer: WorkerProcess
) -> None:
    table = await create_table(developer, COLUMNS)
    notes = ["=1+1", "+49", "-x", "@a", "\tb", "'=c", 'say "hi", you', "line\nbreak", None]
    notes += ["\n=x", "\r\n", "\uff1d1", "\uff0b1", "\uff0d1", "\uff20a"]
    rows = [{"code": f"{n:02}", "n": -n, "note": note} for n, note in enumerate(notes)]
    await add_rows(developer, table, *rows)
    answer = await developer.get(f"{TABLES}/{table['id']}/export", params={"sort": "code"})
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''Leads.csv"
    lines = answer.text.split("\r\n")
    assert lines[:3] == ["code,n,note", "00,0,'=1+1", "01,-1,'+49"]
    copy = await create_table(developer, COLUMNS)
    assert (await run_import(developer, copy, answer.content))["rows_failed"] == 0
    assert await list_values(developer, copy, "note", sort="code") == notes


async def test_an_export_has_all_rows_once_in_the_order_of_the_list(
    developer: Client, subtests: pytest.Subtests
) -> None:
    table = await create_table(developer, COLUMNS)
    for start in range(0, 1100, 500):
        part = range(start, min(start + 500, 1100))
        rows = [{"code": f"{n:04}", "n": n % 7 or None, "note": "x"} for n in part]
        await add_rows(developer, table, *rows)
    path = f"{TABLES}/{table['id']}/export"
    for params in ({}, {"sort": "n"}, {"sort": "-n"}, {"filter[n][gte]": "2"}):
        with subtests.test(params=params):
            text = (await developer.get(path, params=params)).text
            codes = [line.split(",")[0] for line in text.splitlines()[1:]]
            listed = []
            for page in range(1, 13):
                query = {**params, "page": page, "per_page": 100}
                listed += await list_values(developer, table, "code", **query)
            assert codes == listed
            assert len(codes) > 700


async def test_columns_whose_names_look_like_formulas_are_imported_again(
    developer: Client, importer: WorkerProcess
) -> None:
    columns = [{"name": name, "type": "text"} for name in ("=a", "'=b", "+c", "@d")]
    table = await create_table(developer, columns)
    await add_rows(developer, table, {column["name"]: column["name"] for column in columns})
    answer = await developer.get(f"{TABLES}/{table['id']}/export")
    copy = await create_table(developer, columns)
    ended = await run_import(developer, copy, answer.content)
    assert (ended["status"], ended["rows_failed"]) == ("completed", 0)
    [original] = (await list_rows(developer, table))["data"]
    [imported] = (await list_rows(developer, copy))["data"]
    assert imported["values"] == original["values"]


async def _start_export(
    services: Services, client: Client, table: dict[str, Any], search: str | None = None
) -> AsyncIterator[bytes]:
    selection = await export.select(
        services, client.tenant_id, table["id"], [], search=search, sort=None
    )
    return await export.start(services, selection)


async def test_an_export_that_scans_for_too_long_is_refused_or_aborted(
    developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = await create_table(developer, COLUMNS)
    await add_rows(developer, table, *({"code": f"{n:03}"} for n in range(101)))
    parts = await _start_export(services, developer, table, search="0")
    monkeypatch.setattr(scan_limit, "SCAN_SECONDS", 0.0)
    assert [(await anext(parts)).count(b"\n") for _ in range(2)] == [1, 100]
    with pytest.raises(ExportInterrupted, match="takes too long"):
        await anext(parts)
    path = f"{TABLES}/{table['id']}/export"
    error = refused(await developer.get(path, params={"search": "0"}), 422, "validation_error")
    assert "takes too long" in error["details"]["filter"]
    assert (await developer.get(path)).text.count("\n") == 102


async def test_an_export_of_a_table_that_changes_meanwhile_is_aborted(
    developer: Client, services: Services, subtests: pytest.Subtests
) -> None:
    """A response whose source raises has no end, so that the caller sees an error."""
    for method, body in (("PUT", {"columns": [{"id": "c1"}]}), ("DELETE", None)):
        with subtests.test(method=method):
            table = await create_table(developer, COLUMNS)
            await add_rows(developer, table, *({"code": f"{n:03}"} for n in range(100)))
            parts = await _start_export(services, developer, table)
            assert [(await anext(parts)).count(b"\n") for _ in range(2)] == [1, 100]
            await developer.http.request(method, f"{TABLES}/{table['id']}", json=body)
            with pytest.raises(ExportInterrupted):
                await anext(parts)


def test_the_file_of_an_export_has_the_name_of_its_table(subtests: pytest.Subtests) -> None:
    for name, expected in (("Leads", "Leads.csv"), ("a/b\\c", "a-b-c.csv"), ("Größe", "Größe.csv")):
        with subtests.test(name=name):
            table = Table(id="tbl_1", tenant_id="ten_1", name=name, columns=[])
            assert export.name_file(table) == expected


async def test_an_import_whose_answer_was_lost_is_not_started_again(
    developer: Client, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = await create_table(developer, COLUMNS)
    path = f"{TABLES}/{table['id']}/import"

    async def send() -> httpx.Response:
        files, headers = {"file": ("rows.csv", b"code\na\n")}, {"idempotency-key": "lost"}
        return await developer("POST", path, files=files, headers=headers)

    with monkeypatch.context() as patch:
        lose_commit_replies(patch, developer.tenant_id)
        assert (await send()).status_code == 503
    answer = await send()
    assert (answer.status_code, answer.headers["idempotent-replayed"]) == (202, "true")
    listed = await developer.get(f"{path}s")
    assert [item["id"] for item in listed.json()["data"]] == [answer.json()["data"]["id"]]
