"""Statements that were planned while the tables were empty read few rows once these have grown."""

from collections.abc import AsyncIterator
from functools import partial

import asyncpg
import msgspec
import pytest

from app import bootstrap
from app.main import create_app
from app.services import Services
from app.settings import Settings
from tests.assertions import wait_until
from tests.database import fetch_rows
from tests.messaging.deliveries.receiver import Receiver, run_receiver
from tests.model_server import ModelServer
from tests.running_worker import run_worker
from tests.scripted_agents import talker
from tests.stores import Stores
from tests.world import World
from workers.sweep import update_statistics

_ROWS = 2_000
# How often a plan is made anew for its values before one is cached for all values.
_TURNS = 8
# The tables that grow with turns, and the columns that must differ between copies of a row.
_GROWING = {
    "conversations": ["id"],
    "conversation_entries": ["id"],
    "event_log": ["id"],
    "usage": ["message_id"],
    "work": ["id", "dedupe_key"],
    "deliveries": ["id", "event_id"],
    "delivery_attempts": ["delivery_id"],
}
_COPY = """
INSERT INTO {table} SELECT copy.*
FROM (SELECT * FROM {table} LIMIT 1) row CROSS JOIN generate_series(1, {count}) AS copy_number
CROSS JOIN LATERAL
    jsonb_populate_record(NULL::{table}, to_jsonb(row) || jsonb_build_object({columns})) copy
"""
_ROWS_READ = """
SELECT t.relname AS table, t.seq_tup_read + coalesce(sum(i.idx_tup_read), 0) AS rows_read
FROM pg_stat_user_tables t JOIN pg_stat_user_indexes i USING (relid)
GROUP BY t.relname, t.seq_tup_read
"""


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with run_receiver() as receiver:
        yield receiver


@pytest.fixture
async def fresh(stores: Stores) -> Settings:
    """An empty database whose tables the planner knows to be empty."""
    settings = msgspec.structs.replace(await stores.create_database(), pool_size=4)
    await _run(settings, "VACUUM ANALYZE")
    return settings


async def _run(settings: Settings, *statements: str) -> None:
    connection = await asyncpg.connect(settings.database_url)
    for statement in statements:
        await connection.execute(statement)
    await connection.close()


async def _is_all_done(services: Services) -> bool:
    return not await fetch_rows(services, "SELECT 1 FROM work WHERE finished_at IS NULL")


async def _fill_tables(settings: Settings) -> None:
    copies = []
    for table, columns in _GROWING.items():
        values = ", ".join(f"'{column}', row.{column} || '-' || copy_number" for column in columns)
        copies.append(_COPY.format(table=table, columns=values, count=_ROWS))
    # Foreign keys of the copies would be checked by reading the tables.
    await _run(settings, "SET session_replication_role = replica", *copies)


async def test_a_plan_for_an_empty_table_fits_a_full_one(
    fresh: Settings, models: ModelServer, receiver: Receiver
) -> None:
    app = create_app(fresh)
    services: Services = app.state.services
    await bootstrap.prepare(services.db, services.keyring, "enterprise")
    async with run_worker(fresh, "deliveries", "default"):
        talk = await talker(World(app), models)
        webhook = {"url": f"{receiver.url}/200", "events": ["agent.chat.message"]}
        assert (await talk.client.post("/api/v1/webhooks", webhook)).status_code == 201
        for turn in range(1, 2 * _TURNS + 1):
            await talk.say("Hi")
            # Both messages of a turn are delivered.
            await receiver.wait_for(2 * turn)
            if turn == _TURNS:
                # Copies of unfinished work would run.
                await wait_until(partial(_is_all_done, services))
                await _fill_tables(fresh)
                await update_statistics(services)
    await services.close()

    connection = await asyncpg.connect(fresh.database_url)
    rows_read = {row["table"]: row["rows_read"] for row in await connection.fetch(_ROWS_READ)}
    await connection.close()
    # A poll may have read a table as a whole before its statistics were updated. With a plan for
    # an empty table, every turn does.
    most = _ROWS * _TURNS // 2
    assert {table: rows_read[table] for table in _GROWING if rows_read[table] > most} == {}
