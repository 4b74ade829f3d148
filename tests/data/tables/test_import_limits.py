"""Imports that no worker takes: how many there may be, and what is left of one."""

import asyncio

import pytest

from app.domain.data.tables import imports
from app.domain.data.tables.jobs import on_dead_import
from app.kit.files import FileNotStored
from app.services import Services
from db.ledger import WorkRow
from tests.data.tables.api import TABLES, create_table
from tests.data.tables.test_imports import COLUMNS, start_import
from tests.world import Client


async def test_simultaneous_uploads_stay_within_the_limit_of_imports(developer: Client) -> None:
    table = await create_table(developer, COLUMNS)
    path = f"{TABLES}/{table['id']}/import"
    answers = await asyncio.gather(
        *(developer.http.post(path, files={"file": ("rows.csv", b"code\n")}) for _ in range(9))
    )
    assert sorted(answer.status_code for answer in answers) == [202] * 5 + [409] * 4


async def test_an_import_that_is_given_up_deletes_its_file(
    developer: Client, services: Services
) -> None:
    table = await create_table(developer, COLUMNS)
    record = await start_import(developer, table, b"code\na\n")
    key = imports.FOLDER + record["id"]
    assert await services.files.read(key) == b"code\na\n"
    work = ("wrk_1", developer.tenant_id, "tables.import", record["id"], 5, 5, "", "cor_1", None)
    async with services.db.tx(developer.tenant_id) as tx:
        await on_dead_import(services, tx, WorkRow(*work), "killed")
    with pytest.raises(FileNotStored):
        await services.files.read(key)
