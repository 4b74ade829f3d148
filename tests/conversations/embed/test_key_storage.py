"""The stored form of an embed key: its hash and its last use."""

import hashlib
from datetime import UTC, datetime, timedelta

from sqlalchemy import text

from app.domain.agents.definition import runtime as runtimes
from app.domain.conversations.embed import keys
from app.kit import clock
from app.services import Services
from db.models import EmbedKey
from db.session import ALL_TENANTS
from tests.conversations.embed.factories import create_embed_key, list_embed_keys, use_key
from tests.scripted_agents import Talker
from tests.world import Client, World


async def _find_tables_with(services: Services, value: str) -> list[str]:
    """Returns the names of the tables that contain the value."""
    names = []
    async with services.db.tx(ALL_TENANTS) as tx:
        session = await tx.session()
        tables = await session.scalars(
            text("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
        )
        for table in tables.all():
            query = text(f'SELECT count(*) FROM "{table}" t WHERE strpos(t::text, :value) > 0')
            if await session.scalar(query, {"value": value}):
                names.append(table)
    return names


# The hash


async def test_only_a_hash_of_the_key_is_in_the_database(
    developer: Client, agent_id: str, services: Services
) -> None:
    key = await create_embed_key(developer, agent_id)
    async with services.db.tx(ALL_TENANTS) as tx:
        row = await (await tx.session()).get_one(EmbedKey, key["id"])
    assert row.key_hash == hashlib.sha256(key["api_key"].encode()).hexdigest()
    assert row.key_prefix == key["key_prefix"]
    assert row.tenant_id == developer.tenant_id
    # Neither the key nor its secret part is in any table.
    assert await _find_tables_with(services, key["api_key"]) == []
    assert await _find_tables_with(services, key["api_key"].removeprefix(key["key_prefix"])) == []
    # The search finds values that are stored.
    assert "embed_keys" in await _find_tables_with(services, key["id"])


async def test_a_used_key_is_nowhere_in_the_database(talk: Talker, services: Services) -> None:
    key = await create_embed_key(talk.client, talk.agent_id)
    path = f"/api/v1/public/agents/{talk.agent_id}/chat"
    answer = await talk.world.anonymous().post(
        path, {"session_id": "s", "message": "Hi"}, params={"api_key": key["api_key"]}
    )
    assert answer.status_code == 200, answer.text
    assert await _find_tables_with(services, key["api_key"]) == []


async def test_the_hash_does_not_authenticate(
    world: World, developer: Client, agent_id: str, services: Services
) -> None:
    key = await create_embed_key(developer, agent_id)
    key_hash = hashlib.sha256(key["api_key"].encode()).hexdigest()
    for guess in (key_hash, f"emb_{key_hash}", key["key_prefix"], key["id"], key["api_key"][:-1]):
        assert (await use_key(world, agent_id, guess)).status_code == 401
    assert (await use_key(world, agent_id, key["api_key"])).status_code == 200


async def test_a_key_is_found_with_its_agent_and_domains(
    developer: Client, agent_id: str, services: Services
) -> None:
    key = await create_embed_key(developer, agent_id, allowed_domains=["a.com"])
    async with services.db.tx(None, autocommit=True) as tx:
        agent = await runtimes.find_by_embed_key(
            tx, services.keyring, keys.hash_key(key["api_key"])
        )
        missing = await runtimes.find_by_embed_key(tx, services.keyring, keys.hash_key("emb_other"))
    assert missing is None
    assert agent is not None
    assert (agent.embed_key_id, agent.allowed_domains) == (key["id"], ["a.com"])
    assert (agent.runtime.agent_id, agent.runtime.tenant_id) == (agent_id, developer.tenant_id)


async def _send_chat(talk: Talker, api_key: str, session: str = "s") -> None:
    path = f"/api/v1/public/agents/{talk.agent_id}/chat"
    body = {"session_id": session, "message": "Hi"}
    answer = await talk.world.anonymous().post(path, body, headers={"x-api-key": api_key})
    assert answer.status_code == 200, answer.text


async def _read_last_use(talk: Talker, key_id: str) -> datetime | None:
    times = {key["id"]: key["last_used_at"] for key in await list_embed_keys(talk.client)}
    return datetime.fromisoformat(times[key_id]) if times[key_id] else None


# Last use


async def test_a_key_shows_its_last_use(talk: Talker) -> None:
    used_key = await create_embed_key(talk.client, talk.agent_id)
    unused_key = await create_embed_key(talk.client, talk.agent_id)
    before = datetime.now(UTC)
    await _send_chat(talk, used_key["api_key"])
    at = await _read_last_use(talk, used_key["id"])
    assert at is not None
    assert before - timedelta(seconds=5) <= at <= datetime.now(UTC) + timedelta(seconds=5)
    assert await _read_last_use(talk, unused_key["id"]) is None


async def test_a_later_use_is_stored(talk: Talker, services: Services) -> None:
    key = await create_embed_key(talk.client, talk.agent_id)
    await _send_chat(talk, key["api_key"])
    long_ago = clock.now() - timedelta(hours=2)
    async with services.db.tx(ALL_TENANTS) as tx:
        (await (await tx.session()).get_one(EmbedKey, key["id"])).last_used_at = long_ago
    await _send_chat(talk, key["api_key"])
    at = await _read_last_use(talk, key["id"])
    assert at is not None
    assert at > long_ago + timedelta(hours=1)


async def test_a_refused_request_is_not_a_use(talk: Talker) -> None:
    key = await create_embed_key(talk.client, talk.agent_id, allowed_domains=["a.com"])
    path = f"/api/v1/public/agents/{talk.agent_id}/chat"
    body = {"session_id": "s", "message": "Hi"}
    answer = await talk.world.anonymous().post(path, body, headers={"x-api-key": key["api_key"]})
    assert answer.status_code == 403
    assert await _read_last_use(talk, key["id"]) is None
