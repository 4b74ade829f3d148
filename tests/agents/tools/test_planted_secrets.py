"""Tools use secrets of every kind, and the servers that they call echo them in many encodings.

No response, table row, log line or Redis key may contain a secret.
"""

import base64
import io
import json
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import quote

import pytest
import redis

from app.kit import logs
from app.services import Services
from tests.agents.tools.echo_databases import serve_echo_mysql, serve_echo_postgres
from tests.agents.tools.echo_site import EchoSite, serve_mcp_echo
from tests.agents.tools.factories import create_tool_client
from tests.agents.tools.planted_secrets import PlantedSecrets, RunRecord
from tests.agents.tools.secret_scenarios import SecretScenarios
from tests.agents.tools.tenant_postgres import TenantPostgres
from tests.stores import Stores
from tests.tenant_rows import read_tenant_rows
from tests.world import World
from workers.main import WorkerProcess


@pytest.fixture(scope="module")
async def record(world: World, worker: WorkerProcess, postgres: TenantPostgres) -> RunRecord:
    secrets, log_output, stderr = PlantedSecrets(), io.StringIO(), sys.stderr
    tools = await create_tool_client(world)
    record = RunRecord(secrets, tools.client.tenant_id)
    tools.client.http.event_hooks["response"].append(record.record_response)
    async with AsyncExitStack() as stack:
        echo_site = EchoSite()
        await echo_site.start()
        stack.push_async_callback(echo_site.close)
        url = await stack.enter_async_context(serve_mcp_echo())
        echo_postgres = await stack.enter_async_context(serve_echo_postgres())
        echo_mysql = await stack.enter_async_context(serve_echo_mysql())
        sys.stderr = log_output
        logs.configure("debug", "json")
        try:
            scenarios = SecretScenarios(record, tools, echo_site)
            await scenarios.use_own_secrets()
            await scenarios.use_credentials()
            await scenarios.use_overrides()
            await scenarios.use_mcp_server(url)
            await scenarios.use_database(postgres)
            await scenarios.use_echo_database("postgresql", echo_postgres)
            await scenarios.use_echo_database("mysql", echo_mysql)
            await scenarios.save_invalid_secrets()
            await scenarios.read_everything()
        finally:
            sys.stderr = stderr
            logs.configure("warning", "json")
        record.log = log_output.getvalue()
        record.received = "".join(
            f"{request.path} {dict(request.headers)} {request.body!r}"
            for request in echo_site.requests
        )
        record.received += "".join(echo_postgres.passwords)
    return record


def test_the_servers_received_the_secrets(record: RunRecord) -> None:
    """Proves that the other tests of this module can fail."""
    received = record.secrets.find_in(record.received)
    assert received >= {
        "bearer",
        "password",
        "header key",
        "query key",
        "custom",
        "custom word",
        "client secret",
        "issued token",
        "vault bearer",
        "vault password",
        "vault key",
        "vault custom",
        "vault client secret",
        "vault access token",
        "vault refresh token",
        "override",
        "another override",
        "token for mcp",
        "mcp bearer",
        "mcp password",
        "mcp query key",
        "mcp custom",
        "password for postgresql",
    }


def test_the_runs_had_every_outcome(record: RunRecord) -> None:
    codes = {outcome.get("error", {}).get("code", "completed") for outcome in record.outcomes}
    assert codes >= {
        "completed",
        "http_error",
        "connection_error",
        "timeout",
        "output_too_large",
        "invalid_output",
        "auth_failed",
        "runtime_error",
        "query_rejected",
    }


def test_echoes_are_stored_without_their_secrets(record: RunRecord) -> None:
    assert sum("[redacted]" in answer for answer in record.responses) > 50


def test_no_response_of_the_api_has_a_secret(record: RunRecord) -> None:
    assert record.secrets.find_in("\n".join(record.responses)) == set()


def test_no_line_of_the_log_has_a_secret(record: RunRecord) -> None:
    assert record.log.count("\n") > 300
    assert record.secrets.find_in(record.log) == set()


async def test_no_row_of_any_table_has_a_secret(record: RunRecord, services: Services) -> None:
    rows = await read_tenant_rows(services, record.tenant_id)
    leaks = {table: record.secrets.find_in(texts) for table, texts in rows.items()}
    assert sum(texts.count("\n") for texts in rows.values()) > 500
    assert {table: names for table, names in leaks.items() if names} == {}


def test_no_key_and_no_value_in_redis_has_a_secret(record: RunRecord, stores: Stores) -> None:
    client = redis.Redis.from_url(stores.redis.url)
    readers: dict[bytes, Callable[[bytes], Any]] = {
        b"string": client.get,
        b"hash": client.hgetall,
        b"list": lambda key: client.lrange(key, 0, -1),
        b"set": client.smembers,
        b"zset": lambda key: client.zrange(key, 0, -1, withscores=True),
        b"stream": client.xrange,
    }
    try:
        leaks = {}
        for key in client.scan_iter(count=1000):
            kind: Any = client.type(key)
            if kind == b"none":
                continue
            leaked = record.secrets.find_in(f"{key!r} {readers[kind](key)!r}")
            if leaked:
                leaks[key] = leaked
    finally:
        client.close()
    assert leaks == {}


_ENCODINGS: list[Callable[[str], str]] = [
    lambda text: text,
    lambda text: base64.b64encode(f"x{text}".encode()).decode(),
    lambda text: base64.urlsafe_b64encode(f"xy{text}".encode()).decode(),
    lambda text: text.encode().hex(),
    quote,
    json.dumps,
]


def test_the_search_finds_secrets_in_every_encoding(subtests: pytest.Subtests) -> None:
    for encode in _ENCODINGS:
        with subtests.test(encode=encode):
            secrets = PlantedSecrets()
            assert secrets.find_in(f"a {encode(secrets.add('one'))} b") == {"one"}
