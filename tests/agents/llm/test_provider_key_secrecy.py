"""A provider key is stored encrypted and never shown."""

import base64

from app.crypto import rotation
from app.crypto.keyring import Keyring
from app.domain.agents.llm import keys
from app.kit.ids import new_id
from app.services import Services
from db.models import ProviderKey
from db.session import ALL_TENANTS
from tests.agents.llm.provider_keys import MODELS, PATH, SECRET, create_key, key_body
from tests.model_server import ModelServer, Reply
from tests.stored_texts import NewRows, find_in_redis
from tests.world import Client, World


async def test_the_events_of_a_key_do_not_contain_the_key(admin: Client) -> None:
    key = await create_key(admin, name="Our account")
    await admin.delete(f"{PATH}/{key['id']}")
    answer = await admin.get("/api/v1/event-log")
    data = {"key_id": key["id"], "provider": "openai", "name": "Our account"}
    assert [(entry["type"], entry["data"]) for entry in answer.json()["data"]] == [
        ("system.provider_key.deleted", data),
        ("system.provider_key.created", data),
    ]
    assert SECRET not in answer.text
    assert SECRET[-4:] not in answer.text


async def test_no_refusal_repeats_the_key(admin: Client) -> None:
    for fields in (
        {"provider": SECRET.upper()},
        {"name": f"{SECRET}\n{SECRET}"},
        {"api_key": f"{SECRET} {SECRET}"},
        {"base_url": f"https://{SECRET}@models.example.com"},
        {"base_url": f"https://models.example.com/?key={SECRET}"},
    ):
        answer = await admin.post(PATH, key_body(**fields))
        assert answer.status_code == 422
        assert SECRET not in answer.text


async def _use_key_everywhere(world: World, models: ModelServer, secret: str) -> Client:
    """Adds the key to a new tenant, tests it, and chats with it through every route."""
    admin = await world.user("tenant_admin")
    headers = {"idempotency-key": new_id("idem")}
    body = key_body(provider="scripted", api_key=secret, base_url=models.url)
    created = await admin.post(PATH, body, headers=headers)
    texts = [created.text, (await admin.post(PATH, body, headers=headers)).text]
    models.script("echo", Reply(), Reply(), Reply(status=401, message=f"Wrong key {secret}"))
    agent_body = {"name": "A", "primary_model": "scripted/echo", "system_prompt": "x"}
    agent_response = await admin.post("/api/v1/agents", agent_body)
    path = f"/api/v1/agents/{agent_response.json()['id']}"
    message = {"message": "Hello"}
    for answer in (
        await admin.post(f"{PATH}/{created.json()['id']}/test"),
        await admin.get(PATH),
        await admin.get(MODELS),
        await admin.get(path),
        await admin.post(f"{path}/chat", message),
        await admin.post(f"{path}/chat/stream", message),
        await admin.post(f"{path}/chat", message),
        await admin.post(f"{path}/chat/async", message),
        await admin.get("/api/v1/event-log"),
        await admin.get(f"{path}/logs"),
    ):
        assert answer.status_code < 500 or answer.status_code == 502, answer.text
        texts.append(answer.text)
    assert models.headers[-1]["Authorization"] == f"Bearer {secret}"
    assert all(secret not in text for text in texts)
    return admin


async def test_the_key_is_in_no_answer_in_no_table_and_nowhere_in_redis(
    world: World, models: ModelServer, services: Services
) -> None:
    secret = new_id("sk-secret")
    forms = [secret, secret.encode().hex(), base64.b64encode(secret.encode()).decode()]
    await services.redis.flushdb()
    new_rows = await NewRows.start(services)
    admin = await _use_key_everywhere(world, models, secret)
    assert "provider_keys" in await new_rows.find(admin.tenant_id)
    assert await new_rows.find(*forms) == set()
    assert await find_in_redis(services.redis, *forms) == []


async def _load_row(services: Services, key_id: str) -> ProviderKey:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        row = await (await tx.session()).get(ProviderKey, key_id)
    assert row is not None
    return row


async def test_the_row_contains_the_encrypted_key(admin: Client, services: Services) -> None:
    first, second = await create_key(admin), await create_key(admin)
    ciphertexts = [(await _load_row(services, key["id"])).api_key for key in (first, second)]
    assert ciphertexts[0] != ciphertexts[1]
    for key, raw in zip((first, second), ciphertexts, strict=True):
        assert SECRET.encode() not in raw
        context = keys.seal_context(admin.tenant_id, key["id"])
        assert services.keyring.open(raw, context) == SECRET.encode()


async def test_an_encrypted_key_cannot_be_decrypted_in_another_row(
    world: World, models: ModelServer, services: Services
) -> None:
    here, there = await world.user("tenant_admin"), await world.user("tenant_admin")
    secret = new_id("sk-secret")
    foreign_key = await create_key(there, provider="scripted", api_key=secret, base_url=models.url)
    own_key = await create_key(here, provider="scripted", base_url=models.url)
    sealed_key = (await _load_row(services, foreign_key["id"])).api_key
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(
            "UPDATE provider_keys SET api_key = $1 WHERE id = $2", sealed_key, own_key["id"]
        )
    answer = await here.post(f"{PATH}/{own_key['id']}/test")
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "internal_error"
    assert secret not in answer.text


async def test_a_rotation_rewraps_provider_keys(admin: Client, services: Services) -> None:
    key = await create_key(admin)
    row = await _load_row(services, key["id"])
    (column,) = [c for c in rotation.sealed_columns() if c.table == "provider_keys"]
    context = column.context({"id": row.id, "tenant_id": row.tenant_id})
    newer = Keyring.parse(f"{Keyring.generate('newer')},{services.settings.master_keys}")
    rewrapped_key = newer.rewrap(row.api_key, context)
    assert (
        newer.open(rewrapped_key, keys.seal_context(admin.tenant_id, key["id"])) == SECRET.encode()
    )
