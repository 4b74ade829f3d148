"""Completions from web sites: origins and CORS headers."""

from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from tests.conversations.embed.factories import create_embed_key
from tests.conversations.embed.sites import ORIGIN
from tests.conversations.openai.completions import (
    COMPLETIONS_PATH,
    HI,
    code_of,
    post_completion,
    with_key,
)
from tests.http_clients import open_client
from tests.scripted_agents import Talker
from tests.server import Server
from tests.world import World


async def test_the_keys_domains_limit_completions(base_client: AsyncOpenAI, talk: Talker) -> None:
    key = await create_embed_key(talk.client, talk.agent_id, allowed_domains=["shop.example.com"])
    client = with_key(base_client, key["api_key"], origin=ORIGIN)
    completion = await client.chat.completions.create(model=talk.agent_id, messages=HI)
    assert completion.choices[0].message.content == "Hello there"
    assert [model.id async for model in client.models.list()] == [talk.agent_id]
    requests_before = len(talk.asked)
    for headers in ({"origin": "https://evil.com"}, {}):
        client = with_key(base_client, key["api_key"], **headers)
        for stream in (False, True):
            with pytest.raises(openai.PermissionDeniedError) as refusal:
                await client.chat.completions.create(
                    model=talk.agent_id, messages=HI, stream=stream
                )
            assert code_of(refusal.value) == "origin_not_allowed"
        with pytest.raises(openai.PermissionDeniedError):
            await client.models.list()
    assert len(talk.asked) == requests_before


async def test_an_allowed_site_may_read_the_answer(
    server: Server, talk: Talker, subtests: pytest.Subtests
) -> None:
    for stream in (False, True):
        with subtests.test(stream=stream):
            key = await create_embed_key(
                talk.client, talk.agent_id, allowed_domains=["shop.example.com"]
            )
            body = {"model": talk.agent_id, "messages": HI, "stream": stream}
            headers = {"authorization": f"Bearer {key['api_key']}"}
            async with open_client(base_url=server.url, timeout=30) as client:
                answer = await client.post(
                    COMPLETIONS_PATH, json=body, headers={**headers, "origin": ORIGIN}
                )
                refused = await client.post(
                    COMPLETIONS_PATH, json=body, headers={**headers, "origin": "https://evil.com"}
                )
            assert answer.status_code == 200
            assert answer.headers["access-control-allow-origin"] == ORIGIN
            assert refused.status_code == 403
            assert not any(name.startswith("access-control") for name in refused.headers)


async def test_an_allowed_site_may_read_a_refusal(
    world: World, talk: Talker, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[dict[str, Any], int]] = [
        ({"model": "agt_none"}, 404),
        ({"messages": [{"role": "user"}]}, 422),
    ]
    for change, status in cases:
        anonymous = world.anonymous()
        with subtests.test(change=change, status=status):
            key = await create_embed_key(
                talk.client, talk.agent_id, allowed_domains=["shop.example.com"]
            )
            body = {"model": talk.agent_id, "messages": HI, **change}
            headers = {"authorization": f"Bearer {key['api_key']}", "origin": ORIGIN}
            answer = await anonymous.post(COMPLETIONS_PATH, body, headers=headers)
            assert answer.status_code == status
            assert answer.headers["access-control-allow-origin"] == ORIGIN


async def test_an_answer_to_an_access_token_has_no_cors_headers(talk: Talker) -> None:
    answer = await post_completion(talk, {}, origin=ORIGIN)
    assert answer.status_code == 200
    assert not any(name.startswith("access-control") for name in answer.headers)


async def test_a_stock_client_in_a_browser_passes_the_preflight(
    server: Server, talk: Talker
) -> None:
    """The client sends these headers with every request; it has no option against it."""
    await create_embed_key(talk.client, talk.agent_id, allowed_domains=["shop.example.com"])
    header_names = "authorization,content-type,x-stainless-lang,x-stainless-retry-count"
    headers = {
        "origin": ORIGIN,
        "access-control-request-method": "POST",
        "access-control-request-headers": header_names,
    }
    async with open_client(base_url=server.url, timeout=30) as client:
        answer = await client.options(COMPLETIONS_PATH, headers=headers)
    assert answer.status_code == 204
    allowed = {
        name.strip().lower() for name in answer.headers["access-control-allow-headers"].split(",")
    }
    assert set(header_names.split(",")) <= allowed
