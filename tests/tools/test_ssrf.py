"""No tool leads to where only this machine or its network can go, and nothing is dialled to see."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from app.kit.egress import BlockedAddress, Guard
from app.services import Services
from tests.asking import refused
from tests.tools.factories import Bench, bench_of
from tests.tools.site import Site, always, open_site
from tests.world import World
from workers.main import WorkerProcess

# Tests admit 127.0.0.1 and localhost, so loopback is 127.0.0.2 here.
HOSTS = [
    pytest.param("127.0.0.2", id="loopback"),
    pytest.param("2130706434", id="decimal"),
    pytest.param("0x7f000002", id="hex"),
    pytest.param("0x7f.0.0.2", id="hex parts"),
    pytest.param("017700000002", id="octal"),
    pytest.param("0177.0.0.2", id="octal parts"),
    pytest.param("127.2", id="short"),
    pytest.param("127.0.0.2.", id="a dot at the end"),
    pytest.param("0.0.0.0", id="unspecified"),
    pytest.param("0", id="zero"),
    pytest.param("10.0.0.1", id="private 10"),
    pytest.param("172.16.0.1", id="private 172.16"),
    pytest.param("192.168.1.1", id="private 192.168"),
    pytest.param("100.64.0.1", id="CGNAT"),
    pytest.param("169.254.169.254", id="metadata"),
    pytest.param("2852039166", id="metadata, decimal"),
    pytest.param("0xa9fea9fe", id="metadata, hex"),
    pytest.param("224.0.0.1", id="multicast"),
    pytest.param("255.255.255.255", id="broadcast"),
    pytest.param("[::1]", id="loopback 6"),
    pytest.param("[::]", id="unspecified 6"),
    pytest.param("[::ffff:127.0.0.1]", id="mapped loopback"),
    pytest.param("[::ffff:7f00:2]", id="mapped loopback in hex"),
    pytest.param("[::ffff:169.254.169.254]", id="mapped metadata"),
    pytest.param("[::127.0.0.1]", id="IPv4-compatible"),
    pytest.param("[64:ff9b::7f00:1]", id="NAT64"),
    pytest.param("[64:ff9b::a9fe:a9fe]", id="NAT64 of metadata"),
    pytest.param("[2002:7f00:1::]", id="6to4"),
    pytest.param("[fd00::1]", id="unique-local"),
    pytest.param("[fd00:ec2::254]", id="metadata 6"),
    pytest.param("[fe80::1]", id="link-local"),
]
URLS = [
    pytest.param("file:///etc/passwd", id="file"),
    pytest.param("gopher://127.0.0.1:6379/_FLUSHALL", id="gopher"),
    pytest.param("ftp://127.0.0.1/", id="ftp"),
    pytest.param("dict://127.0.0.1:11211/", id="dict"),
    pytest.param("unix:///run/docker.sock", id="unix"),
    pytest.param("javascript:alert(1)", id="javascript"),
    pytest.param("data:text/plain,x", id="data"),
    pytest.param("//127.0.0.1/", id="no scheme"),
    pytest.param("127.0.0.1", id="no URL"),
    pytest.param("https://user:pass@example.com/", id="user and password"),
    pytest.param("https://user@example.com/", id="user"),
    pytest.param("https://example.com@127.0.0.2/", id="a user that looks like a host"),
    pytest.param("http://127.0.0.1:80@127.0.0.2/", id="a user that looks like an allowed host"),
    pytest.param("http://127.0.0.2#@example.com/", id="a fragment that looks like a host"),
    pytest.param("http://127.0.0.2?@example.com/", id="a query that looks like a host"),
    pytest.param("http://127.0.0.2\\@example.com/", id="a backslash"),
    pytest.param("http://[::1", id="half a bracket"),
    pytest.param("https://", id="no host"),
    pytest.param("https:///etc/passwd", id="an empty host"),
    pytest.param("http://①②⑦.⓪.⓪.②/", id="digits in circles"),
    pytest.param("http://127。0。0。2/", id="wide dots"),
]


@pytest.fixture(scope="module")
async def bench(world: World, worker: WorkerProcess) -> Bench:
    return await bench_of(world)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with open_site() as made:
        yield made


@pytest.fixture
async def dialled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every address that anything in this process tries to connect to, other than by a file."""
    seen: list[Any] = []
    kind: Any = type(asyncio.get_running_loop())
    connect = kind.sock_connect

    async def watched(self: Any, sock: Any, address: Any) -> None:
        if isinstance(address, tuple):
            seen.append(address)
        await connect(self, sock, address)

    monkeypatch.setattr(kind, "sock_connect", watched)
    return seen


def _config_of(tool_type: str, url: str) -> dict[str, Any]:
    match tool_type:
        case "rest_api":
            return {"base_url": url, "endpoints": {"one": {"method": "GET", "path": "/"}}}
        case "webhook":
            return {"url": url}
        case _:
            return {"kind": "mcp", "url": url, "tool": "add"}


async def _saved(bench: Bench, tool_type: str, config: dict[str, Any], **more: Any) -> Any:
    body = {"name": "T", "category": "custom", "auth_type": "none", "tool_type": tool_type}
    return await bench.client.post("/v1/tools", {**body, "config": config, **more})


# Refused when it is saved


@pytest.mark.parametrize("tool_type", ["rest_api", "webhook", "custom"])
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("host", HOSTS)
async def test_an_address_that_is_not_public_is_not_saved(
    bench: Bench, tool_type: str, scheme: str, host: str
) -> None:
    answer = await _saved(bench, tool_type, _config_of(tool_type, f"{scheme}://{host}:8080/x"))
    refused(answer, 422, "validation_error")


@pytest.mark.parametrize("tool_type", ["rest_api", "webhook", "custom"])
@pytest.mark.parametrize("url", URLS)
async def test_what_is_no_web_address_is_not_saved(bench: Bench, tool_type: str, url: str) -> None:
    refused(await _saved(bench, tool_type, _config_of(tool_type, url)), 422, "validation_error")


@pytest.mark.parametrize(
    "url",
    [
        *(pytest.param(f"https://{host.values[0]}/token", id=str(host.id)) for host in HOSTS),
        *URLS,
        pytest.param("http://example.com/token", id="a secret in plain sight"),
    ],
)
async def test_a_token_url_that_is_not_public_is_not_saved(
    bench: Bench, site: Site, url: str
) -> None:
    auth = {"token_url": url, "client_id": "a", "client_secret": "b"}
    answer = await _saved(bench, "webhook", {"url": site.url}, auth_type="oauth2", auth_config=auth)
    assert "auth_config.token_url" in refused(answer, 422, "validation_error")["details"]


@pytest.mark.parametrize("tool_type", ["rest_api", "webhook", "custom"])
async def test_a_secret_is_not_sent_in_plain_sight(bench: Bench, tool_type: str) -> None:
    config = _config_of(tool_type, "http://example.com/")
    auth = {"auth_type": "bearer", "auth_config": {"token": "secret"}}
    refused(await _saved(bench, tool_type, config, **auth), 422, "validation_error")


@pytest.mark.parametrize("tool_type", ["rest_api", "webhook", "custom"])
async def test_an_update_is_checked_like_a_new_tool(
    bench: Bench, site: Site, tool_type: str
) -> None:
    tool = await bench.create(tool_type, _config_of(tool_type, site.url))
    config = _config_of(tool_type, "http://169.254.169.254/")
    answer = await bench.client.put(f"/v1/tools/{tool}", {"config": config})
    refused(answer, 422, "validation_error")


@pytest.mark.parametrize("tool_type", ["rest_api", "webhook", "custom"])
async def test_an_agents_settings_are_checked_like_a_new_tool(
    bench: Bench, site: Site, tool_type: str
) -> None:
    tool, agent = (
        await bench.create(tool_type, _config_of(tool_type, site.url)),
        await bench.agent(),
    )
    body = {"tool_id": tool, "config_override": _config_of(tool_type, "http://169.254.169.254/")}
    refused(await bench.client.post(f"/v1/agents/{agent}/tools", body), 422, "validation_error")


# Refused when it runs


def _leading_to(*addresses: str) -> Any:
    async def resolve(host: str, port: int) -> list[str]:
        return list(addresses)

    return resolve


PRIVATE = [
    "127.0.0.2",
    "10.0.0.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "::1",
    "::ffff:127.0.0.1",
    "64:ff9b::7f00:1",
    "fd00::1",
]


@pytest.mark.parametrize("tool_type", ["rest_api", "webhook", "custom"])
@pytest.mark.parametrize("address", PRIVATE)
async def test_a_name_that_leads_to_a_private_address_is_blocked(
    bench: Bench,
    worker: WorkerProcess,
    dialled: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    tool_type: str,
    address: str,
) -> None:
    monkeypatch.setattr(worker.services.egress.guard, "_resolve", _leading_to(address))
    tool = await bench.create(tool_type, _config_of(tool_type, "https://rebound.example/"))
    assert await bench.code(tool) == "blocked_address"
    assert dialled == []


@pytest.mark.parametrize("tool_type", ["rest_api", "webhook", "custom"])
async def test_one_private_address_among_public_ones_blocks_them_all(
    bench: Bench,
    worker: WorkerProcess,
    dialled: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    tool_type: str,
) -> None:
    resolve = _leading_to("93.184.216.34", "10.0.0.1")
    monkeypatch.setattr(worker.services.egress.guard, "_resolve", resolve)
    tool = await bench.create(tool_type, _config_of(tool_type, "https://mixed.example/"))
    assert await bench.code(tool) == "blocked_address"
    assert dialled == []


@pytest.mark.parametrize("tool_type", ["rest_api", "webhook", "custom"])
async def test_a_blocked_address_is_not_tried_again(
    bench: Bench,
    worker: WorkerProcess,
    monkeypatch: pytest.MonkeyPatch,
    tool_type: str,
) -> None:
    asked: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["10.0.0.1"]

    monkeypatch.setattr(worker.services.egress.guard, "_resolve", resolve)
    config = _config_of(tool_type, "https://rebound.example/")
    if tool_type == "rest_api":
        config["retry_count"] = 5
    assert await bench.code(await bench.create(tool_type, config)) == "blocked_address"
    assert len(asked) == 1


async def test_a_server_that_is_asked_what_it_offers_is_checked(
    bench: Bench, services: Services, dialled: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services.egress.guard, "_resolve", _leading_to("169.254.169.254"))
    tool = await bench.create("custom", _config_of("custom", "https://rebound.example/"))
    answer = await bench.client.post(f"/v1/tools/{tool}/discover")
    assert refused(answer, 502, "provider_error")["details"] == {"code": "blocked_address"}
    assert dialled == []


@pytest.mark.parametrize("address", PRIVATE)
async def test_a_token_url_that_leads_to_a_private_address_is_not_asked(
    bench: Bench,
    worker: WorkerProcess,
    site: Site,
    dialled: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    address: str,
) -> None:
    monkeypatch.setattr(worker.services.egress.guard, "_resolve", _leading_to(address))
    auth = {"token_url": "https://rebound.example/", "client_id": address, "client_secret": "b"}
    tool = await bench.create("webhook", {"url": site.url}, auth_type="oauth2", auth_config=auth)
    error = await bench.failure(tool)
    assert error["code"] == "auth_failed"
    assert "not public" in error["message"]
    assert dialled == []


async def test_a_credentials_token_url_is_checked_when_it_is_asked(
    bench: Bench,
    worker: WorkerProcess,
    site: Site,
    dialled: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker.services.egress.guard, "_resolve", _leading_to("169.254.169.254"))
    secrets = {"token_url": "https://rebound.example/", "client_id": "a", "client_secret": "bbbb"}
    credential = await bench.credential("oauth2", secrets)
    auth = {"credential_id": credential}
    tool = await bench.create("webhook", {"url": site.url}, auth_type="oauth2", auth_config=auth)
    await bench.grant(credential, tool)
    assert await bench.code(tool) == "auth_failed"
    assert dialled == []


@pytest.mark.parametrize(
    "host",
    [pytest.param(host.values[0].strip("[]"), id=host.id) for host in HOSTS],  # type: ignore[union-attr]
)
@pytest.mark.parametrize("db_type", ["postgresql", "mysql"])
async def test_a_database_that_is_not_public_is_blocked(
    bench: Bench, dialled: list[Any], db_type: str, host: str
) -> None:
    config = {"db_type": db_type, "host": host, "database": "x"}
    answer = await _saved(bench, "database", config)
    if answer.status_code == 422:
        return
    tool = answer.json()["data"]["id"]
    assert await bench.code(tool, {"query": "SELECT 1"}) == "blocked_address"
    assert dialled == []


@pytest.mark.parametrize(
    "host",
    ["/var/run/postgresql", "/tmp", "./x", "a/b", "\\\\host", "host\tname", "@abstract", "a,b"],
)
@pytest.mark.parametrize("db_type", ["postgresql", "mysql"])
async def test_a_database_is_not_reached_by_a_file(
    bench: Bench, dialled: list[Any], db_type: str, host: str
) -> None:
    config = {"db_type": db_type, "host": host, "database": "x", "timeout_ms": 3000}
    answer = await _saved(bench, "database", config)
    if answer.status_code == 422:
        return
    tool = answer.json()["data"]["id"]
    code = await bench.code(tool, {"query": "SELECT 1"})
    assert code in {"blocked_address", "connection_error"}
    assert dialled == []


@pytest.mark.parametrize("address", PRIVATE)
@pytest.mark.parametrize("db_type", ["postgresql", "mysql"])
async def test_a_database_whose_name_leads_to_a_private_address_is_blocked(
    bench: Bench,
    worker: WorkerProcess,
    dialled: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    db_type: str,
    address: str,
) -> None:
    monkeypatch.setattr(worker.services.egress.guard, "_resolve", _leading_to(address))
    config = {"db_type": db_type, "host": "db.example", "database": "x"}
    tool = await bench.create("database", config)
    assert await bench.code(tool, {"query": "SELECT 1"}) == "blocked_address"
    assert dialled == []


async def test_a_credentials_own_host_is_checked(bench: Bench, dialled: list[Any]) -> None:
    secrets = {"host": "169.254.169.254", "database": "x", "username": "a", "password": "bbbb"}
    credential = await bench.credential("database", secrets)
    auth = {"credential_id": credential}
    config = {"db_type": "postgresql", "database": "x"}
    tool = await bench.create("database", config, auth_type="basic", auth_config=auth)
    await bench.grant(credential, tool)
    assert await bench.code(tool, {"query": "SELECT 1"}) == "blocked_address"
    assert dialled == []


# Redirects


@pytest.mark.parametrize("tool_type", ["rest_api", "webhook", "custom"])
@pytest.mark.parametrize(
    "target",
    ["http://169.254.169.254/", "http://127.0.0.1:1/", "file:///etc/passwd", "//10.0.0.1/"],
)
async def test_a_redirect_leads_nowhere(
    bench: Bench, site: Site, dialled: list[Any], tool_type: str, target: str
) -> None:
    site.answer = always("", status=307, headers={"Location": target})
    tool = await bench.create(tool_type, _config_of(tool_type, site.url))
    await bench.run(tool)
    port = int(site.url.rpartition(":")[2])
    assert {address[:2] for address in dialled} <= {("127.0.0.1", port)}


async def test_a_redirect_of_a_token_url_leads_nowhere(
    bench: Bench, site: Site, dialled: list[Any]
) -> None:
    site.answer = always("", status=307, headers={"Location": "http://169.254.169.254/"})
    auth = {"token_url": f"{site.url}/token", "client_id": "a", "client_secret": "b"}
    tool = await bench.create("webhook", {"url": site.url}, auth_type="oauth2", auth_config=auth)
    assert await bench.code(tool) == "auth_failed"
    port = int(site.url.rpartition(":")[2])
    assert {address[:2] for address in dialled} == {("127.0.0.1", port)}


async def test_a_parameter_does_not_change_the_host(
    bench: Bench, site: Site, dialled: list[Any]
) -> None:
    endpoints = {"one": {"method": "GET", "path": "/{id}"}}
    tool = await bench.create("rest_api", {"base_url": site.url, "endpoints": endpoints})
    for value in ("@169.254.169.254", "/169.254.169.254/", "\\169.254.169.254", "?@10.0.0.1", "#"):
        await bench.run(tool, {"params": {"id": value}})
    port = int(site.url.rpartition(":")[2])
    assert {address[:2] for address in dialled} <= {("127.0.0.1", port)}
    assert len(site.seen) == 5


@pytest.mark.parametrize("path", ["@evil.test/", "//evil.test/", "evil.test", "\\evil", "/a#b"])
async def test_a_path_does_not_change_the_host(
    bench: Bench, site: Site, dialled: list[Any], path: str
) -> None:
    endpoints = {"one": {"method": "GET", "path": path}}
    answer = await _saved(bench, "rest_api", {"base_url": site.url, "endpoints": endpoints})
    if answer.status_code == 422:
        return
    await bench.run(answer.json()["data"]["id"])
    port = int(site.url.rpartition(":")[2])
    assert {address[:2] for address in dialled} <= {("127.0.0.1", port)}


async def test_a_name_is_looked_up_for_each_run(
    bench: Bench, worker: WorkerProcess, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was harmless when it was saved, or the last time, is not trusted again."""
    answers = [["127.0.0.1"], ["10.0.0.1"]]

    async def resolve(host: str, port: int) -> list[str]:
        return answers.pop(0)

    monkeypatch.setattr(worker.services.egress.guard, "_resolve", resolve)
    port = site.url.rpartition(":")[2]
    tool = await bench.create("webhook", {"url": f"http://changing.example:{port}/"})

    async def closing(_request: Any) -> Any:
        response = await always("ok", headers={"Connection": "close"})(_request)
        response.force_close()
        return response

    site.answer = closing
    await bench.output(tool)
    assert await bench.code(tool) == "blocked_address"
    assert len(site.seen) == 1


async def test_the_guard_itself_needs_no_network_to_refuse() -> None:
    async def fail(host: str, port: int) -> list[str]:
        raise AssertionError("nothing is looked up")

    guard = Guard([], fail)
    for host in ("127.0.0.1", "2130706433", "0x7f.1", "::1", "::ffff:10.0.0.1", "fd00::1"):
        with pytest.raises(BlockedAddress):
            await guard.resolve_host(host, 5432)
