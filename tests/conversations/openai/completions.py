"""Requests to /v1/chat/completions with a stock OpenAI client."""

from typing import Any

import httpx
import openai
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionChunk

from tests.scripted_agents import Talker

COMPLETIONS_PATH = "/v1/chat/completions"

HI: list[Any] = [{"role": "user", "content": "Hi"}]


def with_key(base_client: AsyncOpenAI, key: str | None, **headers: str) -> AsyncOpenAI:
    return base_client.with_options(api_key=key or "", default_headers=headers)


async def post_completion(talk: Talker, body: dict[str, Any], **headers: str) -> httpx.Response:
    """Sends a plain HTTP request, for bodies that the client cannot send or show."""
    request = {"model": talk.agent_id, "messages": HI, **body}
    return await talk.client.post(COMPLETIONS_PATH, request, headers=headers)


def model_messages(talk: Talker) -> list[tuple[str, str]]:
    """Returns the messages of the last request to the model."""
    return [(message["role"], message["content"]) for message in talk.asked[-1]["messages"]]


async def read_chunks(stream: openai.AsyncStream[ChatCompletionChunk]) -> list[ChatCompletionChunk]:
    return [chunk async for chunk in stream]


def text_of(chunks: list[ChatCompletionChunk]) -> str:
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


def code_of(error: openai.APIError) -> Any:
    return error.body.get("code") if isinstance(error.body, dict) else None
