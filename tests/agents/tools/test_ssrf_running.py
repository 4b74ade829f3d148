"""A tool does not connect to a private network when it runs."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from app.services import Services
from tests.agents.tools.blocked_addresses import URL_FIELDS, build_config
from tests.agents.tools.executor import ToolExecutor
from tests.agents.tools.factories import ToolClient
from tests.agents.tools.site import Site, open_site, respond_with
from tests.assertions import refused
from tests.net.blocked_addresses import SAMPLE_HOSTS
from workers.main import WorkerProcess


@pytest.fixture(scope="module")
def tools(executor: ToolExecutor) -> ToolExecutor:
    return executor


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    """A site of its own for each test: a connection that is kept alive is not dialed again."""
    async with open_site() as site:
        yield site


@pytest.fixture
async def dialed_addresses(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Records the network addresses that this process connects to."""
    addresses: list[Any] = []
    loop_type: Any = type(asyncio.get_running_loop())
    original_connect = loop_type.sock_connect

    async def record_and_connect(self: Any, sock: Any, address: Any) -> None:
        if isinstance(address, tuple):
            addresses.append(address)
        await original_connect(self, sock, address)

    monkeypatch.setattr(loop_type, "sock_connect", record_and_connect)
    return addresses


# Running


def _resolve_to(*addresses: str) -> Any:
    async def resolve(host: str, port: int) -> list[str]:
        return list(addresses)

    return resolve


async def test_a_name_that_leads_to_a_private_address_is_blocked(
    tools: ToolExecutor,
    worker: WorkerProcess,
    dialed_addresses: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    subtests: pytest.Subtests,
) -> None:
    monkeypatch.setattr(worker.services.egress.guard, "_resolve", _resolve_to("169.254.169.254"))
    for tool_type in URL_FIELDS:
        with subtests.test(tool_type=tool_type):
            tool = await tools.create(
                tool_type, build_config(tool_type, "https://rebound.example/")
            )
            assert await tools.get_error_code(tool) == "blocked_address"
            assert dialed_addresses == []


async def test_one_private_address_among_public_ones_blocks_them_all(
    tools: ToolExecutor,
    worker: WorkerProcess,
    dialed_addresses: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    subtests: pytest.Subtests,
) -> None:
    resolve = _resolve_to("93.184.216.34", "10.0.0.1")
    monkeypatch.setattr(worker.services.egress.guard, "_resolve", resolve)
    for tool_type in URL_FIELDS:
        with subtests.test(tool_type=tool_type):
            tool = await tools.create(tool_type, build_config(tool_type, "https://mixed.example/"))
            assert await tools.get_error_code(tool) == "blocked_address"
            assert dialed_addresses == []


async def test_a_blocked_address_is_not_tried_again(
    tools: ToolExecutor,
    worker: WorkerProcess,
    monkeypatch: pytest.MonkeyPatch,
    subtests: pytest.Subtests,
) -> None:
    lookups: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        lookups.append(host)
        return ["10.0.0.1"]

    monkeypatch.setattr(worker.services.egress.guard, "_resolve", resolve)
    for tool_type in URL_FIELDS:
        with subtests.test(tool_type=tool_type):
            lookups.clear()
            config = build_config(tool_type, "https://rebound.example/")
            if tool_type == "rest_api":
                config["retry_count"] = 5
            assert (
                await tools.get_error_code(await tools.create(tool_type, config))
                == "blocked_address"
            )
            assert len(lookups) == 1


async def test_discovery_checks_the_address(
    tool_client: ToolClient,
    services: Services,
    dialed_addresses: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(services.egress.guard, "_resolve", _resolve_to("169.254.169.254"))
    tool = await tool_client.create("custom", build_config("custom", "https://rebound.example/"))
    answer = await tool_client.client.post(f"/v1/tools/{tool}/discover")
    assert refused(answer, 502, "provider_error")["details"] == {"code": "blocked_address"}
    assert dialed_addresses == []


async def test_a_token_url_that_leads_to_a_private_address_is_not_requested(
    tools: ToolExecutor,
    worker: WorkerProcess,
    site: Site,
    dialed_addresses: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker.services.egress.guard, "_resolve", _resolve_to("169.254.169.254"))
    auth = {"token_url": "https://rebound.example/", "client_id": "a", "client_secret": "b"}
    tool = await tools.create("webhook", {"url": site.url}, auth_type="oauth2", auth_config=auth)
    error = await tools.get_failure(tool)
    assert error["code"] == "auth_failed"
    assert "a private address" in error["message"]
    assert dialed_addresses == []


async def test_a_credentials_token_url_is_checked_when_it_is_requested(
    tool_client: ToolClient,
    worker: WorkerProcess,
    site: Site,
    dialed_addresses: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker.services.egress.guard, "_resolve", _resolve_to("169.254.169.254"))
    secrets = {"token_url": "https://rebound.example/", "client_id": "a", "client_secret": "bbbb"}
    credential = await tool_client.create_credential("oauth2", secrets)
    auth = {"credential_id": credential}
    tool = await tool_client.create(
        "webhook", {"url": site.url}, auth_type="oauth2", auth_config=auth
    )
    await tool_client.grant_access(credential, tool)
    assert await tool_client.get_error_code(tool) == "auth_failed"
    assert dialed_addresses == []


async def test_a_database_that_is_not_public_is_blocked(
    tools: ToolExecutor, dialed_addresses: list[Any], subtests: pytest.Subtests
) -> None:
    for db_type in ("postgresql", "mysql"):
        with subtests.test(db_type=db_type):
            for host in SAMPLE_HOSTS:
                config = {"db_type": db_type, "host": host, "database": "x"}
                tool = await tools.create("database", config)
                code = await tools.get_error_code(tool, {"query": "SELECT 1"})
                assert code == "blocked_address", host
            assert dialed_addresses == []


async def test_a_database_is_not_reached_by_a_file(
    tools: ToolExecutor, dialed_addresses: list[Any], subtests: pytest.Subtests
) -> None:
    for db_type in ("postgresql", "mysql"):
        with subtests.test(db_type=db_type):
            for host in (
                "/var/run/postgresql",
                "/tmp",
                "a/b",
                "\\\\host",
                "host\tname",
                "@abstract",
                "a,b",
            ):
                config = {"db_type": db_type, "host": host, "database": "x", "timeout_ms": 3000}
                tool = await tools.create("database", config)
                code = await tools.get_error_code(tool, {"query": "SELECT 1"})
                assert code in {"blocked_address", "connection_error"}, host
            assert dialed_addresses == []


async def test_a_database_whose_name_leads_to_a_private_address_is_blocked(
    tools: ToolExecutor,
    worker: WorkerProcess,
    dialed_addresses: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    subtests: pytest.Subtests,
) -> None:
    for db_type in ("postgresql", "mysql"):
        with subtests.test(db_type=db_type):
            monkeypatch.setattr(
                worker.services.egress.guard, "_resolve", _resolve_to("169.254.169.254")
            )
            config = {"db_type": db_type, "host": "db.example", "database": "x"}
            tool = await tools.create("database", config)
            assert await tools.get_error_code(tool, {"query": "SELECT 1"}) == "blocked_address"
            assert dialed_addresses == []


async def test_a_credentials_own_host_is_checked(
    tool_client: ToolClient, dialed_addresses: list[Any]
) -> None:
    secrets = {"host": "169.254.169.254", "database": "x", "username": "a", "password": "bbbb"}
    credential = await tool_client.create_credential("database", secrets)
    auth = {"credential_id": credential}
    config = {"db_type": "postgresql", "database": "x"}
    tool = await tool_client.create("database", config, auth_type="basic", auth_config=auth)
    await tool_client.grant_access(credential, tool)
    assert await tool_client.get_error_code(tool, {"query": "SELECT 1"}) == "blocked_address"
    assert dialed_addresses == []


# Redirects


def _port(site: Site) -> int:
    return int(site.url.rpartition(":")[2])


async def test_a_redirect_leads_nowhere(
    tools: ToolExecutor, site: Site, dialed_addresses: list[Any], subtests: pytest.Subtests
) -> None:
    for tool_type in URL_FIELDS:
        for target in (
            "http://169.254.169.254/",
            "http://127.0.0.1:1/",
            "file:///etc/passwd",
            "//10.0.0.1/",
        ):
            with subtests.test(tool_type=tool_type, target=target):
                site.reset()
                site.handler = respond_with("", status=307, headers={"Location": target})
                tool = await tools.create(tool_type, build_config(tool_type, site.url))
                await tools.run(tool)
                assert {address[:2] for address in dialed_addresses} == {("127.0.0.1", _port(site))}


async def test_a_redirect_of_a_token_url_leads_nowhere(
    tools: ToolExecutor, site: Site, dialed_addresses: list[Any]
) -> None:
    site.handler = respond_with("", status=307, headers={"Location": "http://169.254.169.254/"})
    auth = {"token_url": f"{site.url}/token", "client_id": "a", "client_secret": "b"}
    tool = await tools.create("webhook", {"url": site.url}, auth_type="oauth2", auth_config=auth)
    assert await tools.get_error_code(tool) == "auth_failed"
    assert {address[:2] for address in dialed_addresses} == {("127.0.0.1", _port(site))}


async def test_a_parameter_does_not_change_the_host(
    tools: ToolExecutor, site: Site, dialed_addresses: list[Any]
) -> None:
    endpoints = {"one": {"method": "GET", "path": "/{id}"}}
    tool = await tools.create("rest_api", {"base_url": site.url, "endpoints": endpoints})
    for value in ("@169.254.169.254", "/169.254.169.254/", "\\169.254.169.254", "?@10.0.0.1", "#"):
        await tools.run(tool, {"params": {"id": value}})
    assert {address[:2] for address in dialed_addresses} == {("127.0.0.1", _port(site))}
    assert len(site.requests) == 5


async def test_a_path_that_could_change_the_host_is_not_saved(
    tool_client: ToolClient, site: Site, subtests: pytest.Subtests
) -> None:
    for path in ("@evil.test/", "evil.test", "\\evil", "/a#b"):
        with subtests.test(path=path):
            site.reset()
            endpoints = {"one": {"method": "GET", "path": path}}
            answer = await tool_client.request_create(
                "rest_api", {"base_url": site.url, "endpoints": endpoints}
            )
            assert set(refused(answer, 422, "validation_error")["details"]) == {
                "config.endpoints.one.path"
            }


async def test_a_path_that_looks_like_a_host_does_not_change_the_host(
    tools: ToolExecutor, site: Site, dialed_addresses: list[Any]
) -> None:
    endpoints = {"one": {"method": "GET", "path": "//evil.test/"}}
    await tools.run(await tools.create("rest_api", {"base_url": site.url, "endpoints": endpoints}))
    assert {address[:2] for address in dialed_addresses} == {("127.0.0.1", _port(site))}


async def test_a_name_is_looked_up_for_each_run(
    tools: ToolExecutor, worker: WorkerProcess, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that was harmless before may resolve to a private address now."""
    answers = [["127.0.0.1"], ["10.0.0.1"]]

    async def resolve(host: str, port: int) -> list[str]:
        return answers.pop(0)

    monkeypatch.setattr(worker.services.egress.guard, "_resolve", resolve)
    tool = await tools.create("webhook", {"url": f"http://changing.example:{_port(site)}/"})

    async def respond_and_close(request: web.Request) -> web.StreamResponse:
        response = await respond_with("ok", headers={"Connection": "close"})(request)
        response.force_close()
        return response

    site.handler = respond_and_close
    await tools.get_output(tool)
    assert await tools.get_error_code(tool) == "blocked_address"
    assert len(site.requests) == 1
