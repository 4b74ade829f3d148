"""Agents as models, and refused callers."""

import itertools
import time
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI
from openai.types import Model

from tests.conversations.embed.factories import KEYS_PATH, create_embed_key
from tests.conversations.openai.completions import COMPLETIONS_PATH, HI, code_of, with_key
from tests.model_server import ModelServer
from tests.scripted_agents import Talker, talker
from tests.world import Client, World

# The list of models


async def test_a_users_agents_are_the_models(talk: Talker, client: AsyncOpenAI) -> None:
    draft = await talk.agent("Draft", status="draft")
    archived = await talk.agent("Old")
    await talk.client.put(archived.path, {"status": "archived"})
    stranger = await talk.world.user()
    foreign_agent = await stranger.post(
        "/api/v1/agents", {"name": "x", "primary_model": "y", "system_prompt": "z"}
    )
    listed_models = [model async for model in client.models.list()]
    tenant_id = talk.client.tenant_id
    assert [(model.id, model.owned_by, name_of(model)) for model in listed_models] == [
        (draft.agent_id, tenant_id, "Draft"),
        (talk.agent_id, tenant_id, "Talker"),
    ]
    assert foreign_agent.json()["id"] not in {model.id for model in listed_models}
    assert {model.object for model in listed_models} == {"model"}
    assert all(abs(model.created - time.time()) < 60 for model in listed_models)


async def test_a_key_lists_its_own_agent(talk: Talker, visitor: AsyncOpenAI) -> None:
    await talk.agent("Another")
    listed_models = [model async for model in visitor.models.list()]
    assert [(model.id, name_of(model)) for model in listed_models] == [(talk.agent_id, "Talker")]
    assert abs(listed_models[0].created - time.time()) < 60


def name_of(model: Model) -> Any:
    return (model.model_extra or {})["name"]


async def test_a_model_can_be_got_alone(talk: Talker, any_client: AsyncOpenAI) -> None:
    model = await any_client.models.retrieve(talk.agent_id)
    assert (model.id, model.owned_by) == (talk.agent_id, talk.client.tenant_id)


async def test_another_model_is_not_found(talk: Talker, any_client: AsyncOpenAI) -> None:
    stranger = await talker(talk.world, talk.models)
    archived = await talk.agent("Old")
    await talk.client.put(archived.path, {"status": "archived"})
    for agent_id in (stranger.agent_id, archived.agent_id, "gpt-4o"):
        with pytest.raises(openai.NotFoundError) as refusal:
            await any_client.models.retrieve(agent_id)
        assert (refusal.value.code, refusal.value.type) == ("agent_not_found", "not_found_error")


async def test_every_listed_model_can_be_chatted_with(
    talk: Talker, any_client: AsyncOpenAI
) -> None:
    async for model in any_client.models.list():
        completion = await any_client.chat.completions.create(model=model.id, messages=HI)
        assert completion.choices[0].message.content == "Hello there"


async def test_a_viewer_lists_but_does_not_chat(base_client: AsyncOpenAI, talk: Talker) -> None:
    viewer = await talk.world.user("viewer", talk.client.tenant_id)
    client = with_key(base_client, viewer.token)
    assert [model.id async for model in client.models.list()] == [talk.agent_id]
    with pytest.raises(openai.PermissionDeniedError) as refusal:
        await client.chat.completions.create(model=talk.agent_id, messages=HI)
    assert code_of(refusal.value) == "forbidden"
    assert isinstance(refusal.value.body, dict)
    assert refusal.value.body["details"] == {"required": "agents:chat", "your_role": "viewer"}
    assert talk.asked == []


async def test_a_key_of_an_unpublished_agent_lists_nothing(
    talk: Talker, visitor: AsyncOpenAI
) -> None:
    await talk.client.put(talk.path, {"status": "draft"})
    with pytest.raises(openai.NotFoundError):
        await visitor.models.list()


# Refusals


async def test_an_unknown_agent_is_not_found(
    talk: Talker, any_client: AsyncOpenAI, subtests: pytest.Subtests
) -> None:
    for stream in (False, True):
        with subtests.test(stream=stream):
            with pytest.raises(openai.NotFoundError) as refusal:
                await any_client.chat.completions.create(
                    model="agt_none", messages=HI, stream=stream
                )
            assert code_of(refusal.value) == "agent_not_found"


async def test_only_an_agents_id_is_a_model(
    talk: Talker, client: AsyncOpenAI, subtests: pytest.Subtests
) -> None:
    for name in ("gpt-4o", "", "Talker", "scripted/model-1"):
        with subtests.test(name=name), pytest.raises(openai.NotFoundError):
            await client.chat.completions.create(model=name, messages=HI)


async def test_an_agent_of_another_tenant_is_not_found(
    base_client: AsyncOpenAI, talk: Talker, admin: Client
) -> None:
    client = with_key(base_client, admin.token)
    with pytest.raises(openai.NotFoundError) as refusal:
        await client.chat.completions.create(model=talk.agent_id, messages=HI)
    assert code_of(refusal.value) == "agent_not_found"
    assert talk.asked == []


async def test_a_key_is_for_its_own_agent(talk: Talker, visitor: AsyncOpenAI) -> None:
    other = await talk.agent()
    with pytest.raises(openai.NotFoundError) as refusal:
        await visitor.chat.completions.create(model=other.agent_id, messages=HI)
    assert code_of(refusal.value) == "agent_not_found"
    assert other.asked == []


async def test_a_wrong_key_is_refused(
    base_client: AsyncOpenAI, talk: Talker, subtests: pytest.Subtests
) -> None:
    for key, stream in itertools.product(
        ("emb_wrong", "wrong", "sk-0123456789", "a.b.c"), (False, True)
    ):
        with subtests.test(key=key, stream=stream):
            client = with_key(base_client, key)
            with pytest.raises(openai.AuthenticationError) as refusal:
                await client.chat.completions.create(
                    model=talk.agent_id, messages=HI, stream=stream
                )
            with pytest.raises(openai.AuthenticationError):
                await client.models.list()
            assert code_of(refusal.value) == "unauthorized"
            assert key not in str(refusal.value)


async def test_an_anonymous_caller_is_unauthorized(anonymous: Client, talk: Talker) -> None:
    for answer in (
        await anonymous.post(COMPLETIONS_PATH, {"model": talk.agent_id, "messages": HI}),
        await anonymous.get("/v1/models"),
    ):
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"


async def test_a_refresh_token_is_not_accepted(base_client: AsyncOpenAI, talk: Talker) -> None:
    client = with_key(base_client, talk.client.refresh_token)
    with pytest.raises(openai.AuthenticationError):
        await client.chat.completions.create(model=talk.agent_id, messages=HI)


async def test_a_revoked_key_stops_at_once(base_client: AsyncOpenAI, talk: Talker) -> None:
    key = await create_embed_key(talk.client, talk.agent_id)
    client = with_key(base_client, key["api_key"])
    await client.chat.completions.create(model=talk.agent_id, messages=HI)
    await talk.client.delete(KEYS_PATH, params={"id": key["id"]})
    with pytest.raises(openai.AuthenticationError):
        await client.chat.completions.create(model=talk.agent_id, messages=HI)


async def test_a_sign_out_stops_at_once(talk: Talker, client: AsyncOpenAI) -> None:
    await client.chat.completions.create(model=talk.agent_id, messages=HI)
    await talk.client.post("/auth/logout")
    with pytest.raises(openai.AuthenticationError):
        await client.chat.completions.create(model=talk.agent_id, messages=HI)


async def test_an_agent_user_chats(base_client: AsyncOpenAI, talk: Talker) -> None:
    user = await talk.world.user("agent_user", talk.client.tenant_id)
    client = with_key(base_client, user.token)
    completion = await client.chat.completions.create(model=talk.agent_id, messages=HI)
    conversations = (await user.get(f"{talk.path}/conversations")).json()["data"]
    assert completion.model_extra is not None
    assert [item["id"] for item in conversations] == [completion.model_extra["conversation_id"]]


async def test_a_draft_answers_signed_in_callers(talk: Talker, client: AsyncOpenAI) -> None:
    await talk.client.put(talk.path, {"status": "draft"})
    completion = await client.chat.completions.create(model=talk.agent_id, messages=HI)
    assert completion.choices[0].message.content == "Hello there"


async def test_an_unpublished_agent_is_not_found_by_visitors(
    talk: Talker, visitor: AsyncOpenAI, subtests: pytest.Subtests
) -> None:
    for status in ("draft", "archived"):
        with subtests.test(status=status):
            await talk.client.put(talk.path, {"status": status})
            with pytest.raises(openai.NotFoundError) as refusal:
                await visitor.chat.completions.create(model=talk.agent_id, messages=HI)
            assert code_of(refusal.value) == "agent_not_found"
            assert talk.asked == []


async def test_an_archived_agent_does_not_answer(talk: Talker, client: AsyncOpenAI) -> None:
    await talk.client.put(talk.path, {"status": "archived"})
    with pytest.raises(openai.ConflictError) as refusal:
        await client.chat.completions.create(model=talk.agent_id, messages=HI)
    assert code_of(refusal.value) == "agent_archived"


async def test_only_signed_in_callers_learn_that_a_model_has_no_key(
    base_client: AsyncOpenAI, world: World, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for stream in (False, True):
        with subtests.test(stream=stream):
            talk = await talker(world, models, primary_model="nowhere/at-all", provider="nowhere")
            client = with_key(base_client, talk.client.token)
            with pytest.raises(openai.ConflictError) as refusal:
                await client.chat.completions.create(
                    model=talk.agent_id, messages=HI, stream=stream
                )
            assert code_of(refusal.value) == "model_not_configured"
            key = await create_embed_key(talk.client, talk.agent_id)
            client = with_key(base_client, key["api_key"])
            with pytest.raises(openai.InternalServerError) as failure:
                await client.chat.completions.create(
                    model=talk.agent_id, messages=HI, stream=stream
                )
            assert (failure.value.status_code, code_of(failure.value)) == (503, "unavailable")
            assert "nowhere" not in str(failure.value)
