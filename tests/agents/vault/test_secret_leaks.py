"""A secret is in no response, no table, no value of Redis and no line of the log."""

import base64
import io
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import msgspec
import pytest

from app.domain.agents.vault.decrypted import seal_context
from app.domain.agents.vault.types import TYPES
from app.kit import logs
from app.kit.ids import new_id
from app.services import Services
from tests.agents.vault.api import PATH, unseal_credential
from tests.agents.vault.factories import VALID_SECRETS, create_credential, grant_access
from tests.agents.vault.servers import TokenServer, error_response
from tests.child_scripts import run_scripts_here
from tests.database import fetch_rows, run_sql
from tests.stored_texts import NewRows, find_in_redis
from tests.world import Client, World

# Sends a request, in process or over a socket.
Request = Callable[..., Awaitable[httpx.Response]]


def _build_secrets(type_: str, secret: str, token_server: TokenServer) -> dict[str, Any]:
    """Returns secrets of a type with the same text as every secret value."""
    if type_ == "custom":
        return {"X-Key": secret}
    if type_ == "oauth2":
        return token_server.secrets(
            client_secret=secret, access_token=secret, refresh_token=f"{secret}-refresh"
        )
    secret_names = {"password", "token", "api_key", "private_key", "passphrase"}
    secrets = {
        name: secret if name in secret_names else value
        for name, value in VALID_SECRETS[type_].items()
    }
    if "host" in secrets:
        secrets |= {"host": "127.0.0.1", "port": 1}
    return secrets


async def _call_everything(request: Request, secret: str, token_server: TokenServer) -> list[str]:
    """Calls every route with a credential of each type; returns all responses except `reveal`."""
    texts: list[str] = []

    async def call(method: str, url: str, body: object = None, **more: Any) -> httpx.Response:
        answer = await request(method, url, json=body, **more)
        assert answer.status_code < 500, answer.text
        texts.append(answer.text)
        return answer

    token_server.respond = lambda token_request: error_response(400, f"bad {token_request.form}")
    for type_ in TYPES:
        secrets = _build_secrets(type_, secret, token_server)
        metadata = {"test_url": f"{token_server.url}/nothing"}
        body = {"name": "Ours", "type": type_, "secrets": secrets, "metadata": metadata}
        headers = {"idempotency-key": new_id("idem")}
        credential = (await call("POST", PATH, body, headers=headers)).json()
        await call("POST", PATH, body, headers=headers)
        path = f"{PATH}/{credential['id']}"
        await call("PUT", path, {"name": "New", "secrets": secrets})
        await call("PUT", f"{path}/secrets", {"secrets": secrets})
        await call("PUT", f"{path}/secrets", {"secrets": {**secrets, "ssl_mode": secret}})
        await call("POST", PATH, {**body, "secrets": [secret]})
        await call("POST", PATH, {**body, "secrets": {"unknown": secret, "port": secret}})
        await call("POST", f"{path}/test")
        for url in (path, PATH, f"{path}/audit", f"{PATH}/audit", f"{path}/access"):
            await call("GET", url)
        assert secret in (await request("GET", f"{path}/reveal")).text
    await call("GET", "/api/v1/event-log", params={"per_page": 100})
    return texts


class UsedCredentials(msgspec.Struct):
    """Credentials of every type with the same secret, all responses, the log and all rows."""

    secret: str
    texts: list[str]
    log: str
    new_rows: NewRows


@pytest.fixture(scope="module")
async def used(world: World, services: Services) -> AsyncIterator[UsedCredentials]:
    secret, token_server = new_id("planted"), TokenServer()
    await token_server.start()
    await services.redis.flushdb()
    new_rows = await NewRows.start(services)
    admin, log = await world.user("tenant_admin"), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        run_scripts_here(patch)
        patch.setattr(sys, "stderr", log)
        logs.configure("debug", "json")
        try:
            texts = await _call_everything(admin, secret, token_server)
            await _fail_to_reveal(admin, services)
        finally:
            logs.configure("warning", "json")
    credential = await create_credential(admin, secrets={"token": secret})
    await grant_access(admin, credential["id"])
    await unseal_credential(services, admin, credential["id"])
    yield UsedCredentials(secret, texts, log.getvalue(), new_rows)
    await token_server.close()


async def _fail_to_reveal(admin: Client, services: Services) -> None:
    credential = await create_credential(admin)
    corrupt = "UPDATE credentials SET secrets = 'x' WHERE id = $1"
    await run_sql(services, corrupt, credential["id"])
    answer = await admin.get(f"{PATH}/{credential['id']}/reveal")
    assert answer.status_code == 500


def _list_encodings(secret: str) -> list[str]:
    raw = secret.encode()
    return [secret, raw.hex(), base64.b64encode(raw).decode()[:-4]]


async def test_a_secret_is_in_no_answer(used: UsedCredentials) -> None:
    encodings = _list_encodings(used.secret)
    assert len(used.texts) > 50
    assert [text for text in used.texts if any(encoding in text for encoding in encodings)] == []


async def test_a_secret_is_in_no_column_of_any_table(used: UsedCredentials) -> None:
    tables = {"credentials", "credential_audit", "idempotency_keys"}
    assert tables <= await used.new_rows.find("")
    assert await used.new_rows.find(*_list_encodings(used.secret)) == set()


async def test_a_secret_is_nowhere_in_redis(used: UsedCredentials, services: Services) -> None:
    assert await find_in_redis(services.redis, *_list_encodings(used.secret)) == []


async def test_a_secret_is_in_no_line_of_the_log(used: UsedCredentials) -> None:
    """The log has all lines of level debug, failures included."""
    assert "request failed" in used.log
    assert f"{PATH}/" in used.log
    assert [encoding for encoding in _list_encodings(used.secret) if encoding in used.log] == []


async def test_the_same_secrets_are_encrypted_differently_each_time(
    admin: Client, services: Services
) -> None:
    ids = [(await create_credential(admin))["id"] for _ in range(2)]
    rows = await fetch_rows(services, "SELECT id, secrets FROM credentials WHERE id = ANY($1)", ids)
    assert len({row["secrets"] for row in rows}) == 2
    for row in rows:
        text = services.keyring.open(row["secrets"], seal_context(admin.tenant_id, row["id"]))
        assert msgspec.json.decode(text) == VALID_SECRETS["bearer_token"]
