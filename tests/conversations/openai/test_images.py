"""Images in messages: they reach models that take them, as data URLs."""

import asyncio
import base64
from typing import Any

import openai
import pytest
from aiohttp import web
from openai import AsyncOpenAI

from app.jobs import background
from tests.agents.tools.site import open_site, respond_with
from tests.assertions import refused
from tests.conversations.chat.conversation_helpers import list_ids, list_messages
from tests.conversations.openai.completions import post_completion
from tests.model_server import ModelServer
from tests.scripted_agents import Talker, talker
from tests.world import World

PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)


def data_url(content: bytes = PNG, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _ask(*urls: str) -> list[Any]:
    images = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, *images]}]


async def test_images_reach_the_model(
    talk: Talker, client: AsyncOpenAI, subtests: pytest.Subtests
) -> None:
    async with open_site() as site:
        site.handler = respond_with(PNG, headers={"Content-Type": "text/plain"})
        for url in (f"{site.url}/image", data_url(), data_url(kind="image/jpeg")):
            with subtests.test(url=url[:20]):
                await client.chat.completions.create(model=talk.agent_id, messages=_ask(url))
                assert talk.asked[-1]["messages"][-1] == _ask(data_url())[0]
    messages = await list_messages(talk, (await list_ids(talk))[0])
    assert messages[0]["content"] == "What is it?\n[image]"


async def test_a_response_takes_images(talk: Talker, any_client: AsyncOpenAI) -> None:
    image: Any = {"type": "input_image", "image_url": data_url(), "detail": "low"}
    said: Any = [{"role": "user", "content": [{"type": "input_text", "text": "See"}, image]}]
    await any_client.responses.create(model=talk.agent_id, input=said)
    shown = {"type": "image_url", "image_url": {"url": data_url(), "detail": "low"}}
    assert talk.asked[-1]["messages"][-1]["content"][1] == shown


async def test_an_image_of_an_answer_or_a_result_is_refused(
    talk: Talker, subtests: pytest.Subtests
) -> None:
    """Models take images of users alone; the others would be lost in silence."""
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    called = {"role": "assistant", "tool_calls": [call]}
    image, item = _ask(data_url())[0]["content"], {"type": "input_image", "image_url": data_url()}
    result = {"role": "tool", "tool_call_id": "call_1", "content": image}
    cases: list[tuple[str, dict[str, Any], str]] = [
        (
            "/v1/chat/completions",
            {"messages": [{"role": "assistant", "content": image}, *_ask()]},
            "messages.0.content",
        ),
        ("/v1/chat/completions", {"messages": [*_ask(), called, result]}, "messages.2.content"),
        (
            "/v1/responses",
            {"input": [{"role": "assistant", "content": [item]}, {"role": "user", "content": "x"}]},
            "input.0.content",
        ),
    ]
    for path, body, field in cases:
        with subtests.test(field=field):
            answer = await talk.client.post(path, {"model": talk.agent_id, **body})
            assert set(refused(answer, 422, "validation_error")["details"]) == {field}
    assert talk.asked == []


async def test_a_large_image_reaches_the_model(talk: Talker, client: AsyncOpenAI) -> None:
    url = data_url(PNG + bytes(4_000_000))
    await client.chat.completions.create(model=talk.agent_id, messages=_ask(url))
    assert talk.asked[-1]["messages"][-1] == _ask(url)[0]


async def test_what_is_no_image_is_refused(talk: Talker, subtests: pytest.Subtests) -> None:
    large = data_url(PNG + bytes(5 * 1024 * 1024))
    async with open_site() as site:
        site.handler = respond_with(b"<html>")
        for name, urls in (
            ("not an image", [data_url(b"GIF8")]),
            ("not base64", ["data:image/png;base64,%%%"]),
            ("too large", [large]),
            ("too many", [data_url()] * 17),
            ("a page", [site.url]),
            ("no server", ["http://127.0.0.1:9/image"]),
            ("a file", ["file:///etc/passwd"]),
        ):
            with subtests.test(name=name):
                answer = await post_completion(talk, {"messages": _ask(*urls)})
                assert set(refused(answer, 422, "validation_error")["details"]) == {"image_url"}
    assert talk.asked == []


async def test_the_first_image_that_fails_ends_the_other_requests(talk: Talker) -> None:
    started, held = asyncio.Event(), asyncio.Event()

    async def respond(request: web.Request) -> web.StreamResponse:
        if request.path == "/missing":
            await started.wait()
            return web.Response(status=404)
        started.set()
        await held.wait()
        return web.Response(body=PNG)

    async with open_site() as site:
        site.handler = respond
        urls = [f"{site.url}/slow", f"{site.url}/missing"]
        answer = await post_completion(talk, {"messages": _ask(*urls)})
        held.set()
    assert refused(answer, 422, "validation_error")["details"]["image_url"].endswith("404")


async def test_fetching_is_paid_for_even_if_the_request_is_refused(
    talk: Talker, client: AsyncOpenAI
) -> None:
    async def used_by(url: str) -> int:
        before = await _remaining(talk)
        await post_completion(talk, {"messages": _ask(url)})
        await background.drain()
        return before - await _remaining(talk)

    async with open_site() as site:
        site.handler = respond_with(b"<html>")
        assert await used_by(data_url(b"none")) == await used_by(site.url) - 9


async def _remaining(talk: Talker) -> int:
    answer = await talk.client.get(talk.path)
    return int(answer.headers["x-ratelimit-remaining"])


async def test_all_images_together_are_limited(talk: Talker) -> None:
    content = PNG + bytes(4_900_000)
    async with open_site() as site:
        site.handler = respond_with(content)
        urls = [f"{site.url}/{number}" for number in range(16)]
        answer = await post_completion(talk, {"messages": _ask(*urls)})
        assert len(site.requests) < 8
    assert "12 MB" in refused(answer, 422, "validation_error")["details"]["image_url"]


async def test_a_visitor_sends_images_themselves(talk: Talker, visitor: AsyncOpenAI) -> None:
    async with open_site() as site:
        with pytest.raises(openai.UnprocessableEntityError) as refusal:
            await visitor.chat.completions.create(model=talk.agent_id, messages=_ask(site.url))
        assert site.requests == []
    assert refusal.value.param == "image_url"


async def test_a_model_without_images_is_not_shown_any(world: World, models: ModelServer) -> None:
    talk = await talker(world, models)
    agent = {"name": "Local", "primary_model": "local/smollm2", "system_prompt": "Help."}
    agent_id = (await talk.client.post("/api/v1/agents", agent)).json()["id"]
    async with open_site() as site:
        body = {"model": agent_id, "messages": _ask(site.url)}
        answer = await talk.client.post("/v1/chat/completions", body)
        assert site.requests == []
    assert "takes no images" in refused(answer, 422, "validation_error")["details"]["image_url"]


async def test_a_response_in_the_background_takes_no_images(talk: Talker) -> None:
    """They would have to be stored until a worker sends them."""
    image = {"type": "input_image", "image_url": data_url()}
    body = {"input": [{"role": "user", "content": [image]}], "background": True}
    answer = await talk.client.post("/v1/responses", {"model": talk.agent_id, **body})
    assert set(refused(answer, 422, "validation_error")["details"]) == {"background"}
