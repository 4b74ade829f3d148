"""The secrets of a tool are in no response, table row, Redis key or log line."""

import base64
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import httpx
import pytest

from app.kit import logs
from app.services import Services
from tests.agents.tools.factories import ToolClient
from tests.agents.tools.site import Site
from tests.agents.tools.tool_requests import PATH, WEBHOOK_TOOL
from tests.assertions import until
from tests.tenant_rows import read_tenant_rows
from tests.world import Client, World
from workers.main import WorkerProcess


def _list_encodings(secret: str) -> list[str]:
    raw = secret.encode()
    return [secret, raw.hex(), base64.b64encode(raw).decode()]


async def _find_tables_with(services: Services, tenant_id: str, secret: str) -> list[str]:
    """Returns the tables with a row of the tenant that contains the secret."""
    rows = await read_tenant_rows(services, tenant_id)
    assert len(rows) > 5
    encodings = _list_encodings(secret)
    return [table for table, texts in rows.items() if any(text in texts for text in encodings)]


async def _find_keys_with(services: Services, secret: str) -> list[bytes]:
    matches = []
    async for key in services.redis.scan_iter(count=1000):
        dump = await services.redis.dump(key) or b""
        if any(text.encode() in dump + key for text in _list_encodings(secret)):
            matches.append(key)
    return matches


@pytest.fixture
def log(capsys: pytest.CaptureFixture[str]) -> Iterator[pytest.CaptureFixture[str]]:
    """Captures the log of the test, from level debug."""
    logs.configure("debug", "json")
    yield capsys
    with capsys.disabled():
        logs.configure("warning", "json")


Send = Callable[..., Awaitable[httpx.Response]]


async def _use_secret(send: Send, tools: ToolClient, site: Site, secret: str) -> str:
    """Creates, refuses, shows, attaches and runs a tool with the secret; returns the tool's id."""
    body = {**WEBHOOK_TOOL, "config": {"url": site.url}, "auth_config": {"token": secret}}
    headers = {"idempotency-key": "sealed"}
    tool_id = (await send("POST", PATH, json=body, headers=headers)).json()["data"]["id"]
    await send("POST", PATH, json=body, headers=headers)
    await send("POST", PATH, json={**body, "auth_config": {"token": 1, secret: secret}})
    await send("POST", PATH, json={**body, "auth_type": "basic"})
    for path in (f"{PATH}/{tool_id}", PATH, f"{PATH}/categories", "/api/v1/event-log"):
        await send("GET", path)
    agent = f"/v1/agents/{await tools.create_agent()}/tools"
    override = {"auth_config": {"token": secret}}
    await send("POST", agent, json={"tool_id": tool_id, "config_override": override})
    await send("GET", agent)
    await send("PATCH", f"{agent}/{tool_id}", json={"config_override": override})
    await send("POST", f"{PATH}/{tool_id}/execute", json={"input": {"a": 1}})
    return str(tool_id)


async def test_a_secret_is_in_no_answer_no_row_no_key_and_no_line_of_the_log(
    world: World,
    services: Services,
    worker: WorkerProcess,
    site: Site,
    log: pytest.CaptureFixture[str],
) -> None:
    """Searches after create, refusal, list, run, update and delete."""
    secret = "planted-secret-7f3a9c51e2"
    admin = await world.user("tenant_admin")
    tools, texts = ToolClient(admin), []

    async def send(method: str, path: str, **options: Any) -> httpx.Response:
        answer = await admin(method, path, **options)
        texts.append(answer.text)
        return answer

    tool_id = await _use_secret(send, tools, site, secret)
    assert site.last.headers["Authorization"] == f"Bearer {secret}"
    await send("GET", f"{PATH}/{tool_id}/executions")
    await send("PUT", f"{PATH}/{tool_id}", json={"auth_config": {"token": secret}})
    assert await _find_tables_with(services, admin.tenant_id, secret) == []
    assert await _find_keys_with(services, secret) == []
    await send("DELETE", f"{PATH}/{tool_id}")
    await send("GET", "/api/v1/event-log")
    # A refusal repeats only the name of an unknown key, which is no value.
    echoes = [text for text in texts if secret in text]
    assert len(echoes) <= 1
    assert all("auth_config." in text for text in echoes)
    log_parts: list[str] = []

    def was_logged() -> bool:
        log_parts.append(log.readouterr().err)
        return "tools.run" in "".join(log_parts)

    # The worker writes its line after the outcome, which is all that the caller waits for.
    await until(was_logged)
    assert secret not in "".join(log_parts)


async def test_the_api_document_shows_no_auth_config_in_answers(anonymous: Client) -> None:
    document = (await anonymous.get("/openapi.json")).json()
    schemas = document["components"]["schemas"]
    names = [
        name for name, schema in schemas.items() if "auth_config" in schema.get("properties", {})
    ]
    assert names
    assert all(name.startswith(("Create", "Update")) for name in names), names
