"""A secret is in no row, no value of Redis, no event and no line of the log."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest

from app.domain.vault.decrypted import seal_context
from app.kit.ids import new_id
from app.services import Services
from db.session import ALL_TENANTS
from tests.server import Server
from tests.stores import Stores
from tests.vault.making import GOOD, PATH, TYPES, create, fetch, grant, opened
from tests.vault.servers import TokenServer, denied
from tests.world import Client, World


def _planted(type_: str, secret: str, tokens: TokenServer) -> dict[str, Any]:
    """Secrets of a type with one text in every place that may hold it."""
    if type_ == "custom":
        return {"X-Key": secret}
    if type_ == "oauth2":
        return tokens.secrets(
            client_secret=secret, access_token=secret, refresh_token=f"{secret}-refresh"
        )
    closed = {"password", "token", "api_key", "private_key", "passphrase"}
    found = {name: secret if name in closed else value for name, value in GOOD[type_].items()}
    if "host" in found:
        found |= {"host": "127.0.0.1", "port": 1}
    return found


Ask = Any  # an HTTP client: the application's own or one with a socket


async def _handle(ask: Ask, secret: str, tokens: TokenServer) -> list[str]:
    """Do everything with a credential of each type; gives all answers but what reveals."""
    texts: list[str] = []

    async def asked(method: str, path: str, body: object = None, **more: Any) -> httpx.Response:
        answer: httpx.Response = await ask(method, path, json=body, **more)
        assert answer.status_code < 500, answer.text
        texts.append(answer.text)
        return answer

    tokens.answer = lambda form: denied(400, f"bad {form.form}")
    for type_ in TYPES:
        secrets = _planted(type_, secret, tokens)
        metadata = {"test_url": f"{tokens.url}/nothing"}
        body = {"name": "Ours", "type": type_, "secrets": secrets, "metadata": metadata}
        headers = {"idempotency-key": new_id("idem")}
        made = (await asked("POST", PATH, body, headers=headers)).json()
        await asked("POST", PATH, body, headers=headers)
        one = f"{PATH}/{made['id']}"
        await asked("PUT", one, {"name": "New", "secrets": secrets})
        await asked("PUT", f"{one}/secrets", {"secrets": secrets})
        await asked("PUT", f"{one}/secrets", {"secrets": {**secrets, "ssl_mode": secret}})
        await asked("POST", PATH, {**body, "secrets": [secret]})
        await asked("POST", PATH, {**body, "secrets": {"unknown": secret, "port": secret}})
        await asked("POST", f"{one}/test")
        for path in (one, PATH, f"{one}/audit", f"{PATH}/audit", f"{one}/access"):
            await asked("GET", path)
        assert secret in (await ask("GET", f"{one}/reveal")).text
    await asked("GET", "/api/v1/event-log", params={"per_page": 100})
    return texts


@asynccontextmanager
async def _used(
    world: World, services: Services, tokens: TokenServer
) -> AsyncIterator[tuple[str, list[str]]]:
    secret = new_id("planted")
    admin = await world.user("tenant_admin")
    texts = await _handle(admin, secret, tokens)
    made = await create(admin, secrets={"token": secret})
    await grant(admin, made["id"])
    await opened(services, admin, made["id"])
    yield secret, texts


def _forms(secret: str) -> list[str]:
    raw = secret.encode()
    return [secret, raw.hex(), base64.b64encode(raw).decode()[:-4]]


async def test_a_secret_is_in_no_answer(
    world: World, services: Services, tokens: TokenServer
) -> None:
    async with _used(world, services, tokens) as (secret, texts):
        assert [text for text in texts if any(form in text for form in _forms(secret))] == []


async def test_a_secret_is_in_no_column_of_any_table(
    world: World, services: Services, tokens: TokenServer
) -> None:
    async with _used(world, services, tokens) as (secret, _texts):
        tables = await fetch(
            services, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        )
        names = [row["tablename"] for row in tables]
        assert {"credentials", "credential_audit", "idempotency_keys"} <= set(names)
        async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            raw = await tx.raw()
            for name in names:
                for form in _forms(secret):
                    query = f'SELECT count(*) FROM "{name}" t WHERE position($1 in t::text) > 0'
                    assert await raw.fetchval(query, form) == 0, name


async def test_a_secret_is_nowhere_in_redis(
    world: World, services: Services, tokens: TokenServer
) -> None:
    async with _used(world, services, tokens) as (secret, _texts):
        seen = 0
        redis: Any = services.redis
        async for key in redis.scan_iter(count=1000):
            kind = await redis.type(key)
            match kind if isinstance(kind, str) else kind.decode():
                case "string":
                    value = await redis.get(key)
                case "hash":
                    value = await redis.hgetall(key)
                case "list":
                    value = await redis.lrange(key, 0, -1)
                case "set":
                    value = await redis.smembers(key)
                case "zset":
                    value = await redis.zrange(key, 0, -1)
                case "stream":
                    value = await redis.xrange(key)
                case "none":
                    continue
                case other:
                    raise AssertionError(f"cannot look into {other!r}")
            seen += 1
            assert all(form not in repr((key, value)) for form in _forms(secret))
        assert seen


async def test_a_secret_is_in_no_line_of_the_log(
    world: World, stores: Stores, tokens: TokenServer, capfd: pytest.CaptureFixture[str]
) -> None:
    """Of a web process that logs all it can, failures included."""
    secret = new_id("planted")
    admin = await world.user("tenant_admin")
    server = Server(msgspec.structs.replace(stores.settings, log_level="debug"))
    try:
        server.wait()
        headers = {"authorization": f"Bearer {admin.token}"}
        async with httpx.AsyncClient(base_url=server.url, headers=headers, timeout=30) as client:
            await _handle(client.request, secret, tokens)
            made = await create(admin)
            broken = "UPDATE credentials SET secrets = 'x' WHERE id = $1"
            async with world.services.db.tx(ALL_TENANTS) as tx:
                await (await tx.raw()).execute(broken, made["id"])
            failed = await client.get(f"{PATH}/{made['id']}/reveal")
            assert failed.status_code == 500
    finally:
        server.close()
    logged = "".join(capfd.readouterr())
    assert "request failed" in logged
    assert [form for form in _forms(secret) if form in logged] == []


async def test_the_same_secrets_are_sealed_differently_each_time(
    admin: Client, services: Services
) -> None:
    ids = [(await create(admin))["id"] for _ in range(2)]
    rows = await fetch(services, "SELECT id, secrets FROM credentials WHERE id = ANY($1)", ids)
    assert len({row["secrets"] for row in rows}) == 2
    for row in rows:
        text = services.keyring.open(row["secrets"], seal_context(admin.tenant_id, row["id"]))
        assert msgspec.json.decode(text) == GOOD["bearer_token"]
