"""The gateway to models: names, adapters, embeddings and errors."""

import asyncio
from typing import Any

import pytest

from app.domain.agents.llm import gateway, keys
from app.domain.agents.llm.errors import ModelFailed, ModelNotConfigured
from app.domain.agents.llm.gateway import LOCAL_MODEL, Models
from app.domain.agents.llm.protocol import Target, Text
from app.domain.agents.llm.providers import PROVIDERS
from app.kit.errors import Invalid
from app.net.egress import Guard
from app.services import Services
from tests.agents.llm.answers import KEY, read_failure, read_parts, scripted_target
from tests.model_server import ModelServer, Reply
from tests.ports import free_port
from tests.scripted_agents import Talker
from tests.world import World

# Names


_INVALID_NAMES: list[str] = [
    "",
    "..",
    "scripted/..",
    "scripted/../x",
    "scripted/a..b",
    "../scripted",
    "/scripted",
    "-scripted",
    ".scripted",
    "scripted/a b",
    "scripted/a\n",
    "scripted/a\r\nX-Evil: 1",
    "scripted/a\0",
    "scripted/a?b",
    "scripted/a#b",
    "scripted/a%2e%2e",
    "scripted/a\\b",
    "scripted/a;b",
    "scripted/é",
    "scripted/模型",
    "s" * 201,
]


async def test_an_invalid_name_is_not_a_model(
    model_gateway: Models, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for name in _INVALID_NAMES:
        with subtests.test(name=name):
            target = Target(name, "scripted", KEY, models.url)
            requests_before = len(models.requests)
            with pytest.raises(ModelNotConfigured) as caught:
                await read_parts(model_gateway, target)
            assert (type(caught.value).status, caught.value.code) == (409, "model_not_configured")
            assert len(models.requests) == requests_before
            assert not await model_gateway.is_ready(target)


async def test_the_names_that_providers_use_are_models(
    model_gateway: Models, models: ModelServer, subtests: pytest.Subtests
) -> None:
    cases: list[str] = [
        "scripted/org/model-7b.Q4_K_M:free",
        "scripted/@cf/meta/llama",
        "scripted/claude@20240620",
        "scripted/a+b",
        "7b",
        "s" * 200,
    ]
    for name in cases:
        with subtests.test(name=name):
            target = Target(name, "scripted", KEY, models.url)
            await model_gateway.check(target)
            assert await model_gateway.is_ready(target)
            assert await read_parts(model_gateway, target)
            assert models.requests[-1]["model"] == name.removeprefix("scripted/")


# Providers and addresses


async def test_a_provider_without_a_key_is_not_configured(model_gateway: Models) -> None:
    target = Target("openai/gpt-4o", "openai")
    with pytest.raises(ModelNotConfigured) as caught:
        await model_gateway.check(target)
    assert caught.value.message == (
        "openai/gpt-4o needs a key of the provider openai; add one with POST /api/v1/api-keys"
    )
    assert not await model_gateway.is_ready(target)


async def test_an_address_without_a_key_is_not_configured(
    model_gateway: Models, models: ModelServer
) -> None:
    with pytest.raises(ModelNotConfigured):
        await model_gateway.check(Target("scripted/one", "scripted", "", models.url))


async def test_an_unknown_provider_needs_an_address(model_gateway: Models) -> None:
    target = Target("nobody/one", "nobody", KEY)
    with pytest.raises(ModelNotConfigured) as caught:
        await model_gateway.check(target)
    assert "nobody needs a key with a base_url" in caught.value.message
    assert not await model_gateway.is_ready(target)


async def test_every_provider_of_the_table_is_ready_with_a_key(
    model_gateway: Models, subtests: pytest.Subtests
) -> None:
    for provider in sorted(PROVIDERS):
        with subtests.test(provider=provider):
            assert await model_gateway.is_ready(Target(f"{provider}/model", provider, KEY))
            assert not await model_gateway.is_ready(Target(f"{provider}/model", provider))


@pytest.mark.usefixtures("_short_retries")
async def test_a_provider_of_the_table_is_called_at_its_address(services: Services) -> None:
    resolved: set[tuple[str, int]] = set()

    async def resolve(host: str, port: int) -> list[str]:
        resolved.add((host, port))
        raise OSError("no network here")

    model_gateway = Models(Guard((), resolve), services.redis, has_local=False)
    error, _ = await read_failure(model_gateway, Target("groq/llama", "groq", KEY))
    await model_gateway.close()
    assert error.reason == "unreachable"
    assert resolved == {("api.groq.com", 443)}


async def test_a_key_with_a_base_url_is_sent_to_that_address(
    model_gateway: Models, models: ModelServer
) -> None:
    models.script("gpt-4o", Reply(texts=["From elsewhere"]))
    target = Target("openai/gpt-4o", "openai", KEY, models.url)
    assert (await read_parts(model_gateway, target))[0] == Text("From elsewhere")


async def test_a_blocked_address_is_refused_at_once(
    services: Services, subtests: pytest.Subtests
) -> None:
    """Happens when EGRESS_ALLOW changes, or when a host resolves to another address."""
    for address in ("http://127.0.0.1:9/v1", "http://localhost:9/v1"):
        with subtests.test(address=address), pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(gateway, "RETRY_SECONDS", (30.0, 30.0))
            model_gateway = Models(Guard(()), services.redis, has_local=False)
            async with asyncio.timeout(5):
                error, _ = await read_failure(
                    model_gateway, Target("scripted/one", "scripted", KEY, address)
                )
            await model_gateway.close()
            assert error.reason == "refused"
            assert "public" in error.message
            assert KEY not in error.message


# Embeddings, lists and windows


async def test_embeddings_come_in_the_order_of_their_texts(
    model_gateway: Models, models: ModelServer
) -> None:
    embeddings = await model_gateway.embed(
        scripted_target(models, "embedder"), ["four", "x", "three", "xx"]
    )
    assert [vector[0] for vector in embeddings.vectors] == [4.0, 1.0, 5.0, 2.0]
    assert embeddings.prompt_tokens == 4


async def test_embeddings_need_a_key_as_well(model_gateway: Models) -> None:
    with pytest.raises(ModelNotConfigured):
        await model_gateway.embed(Target("openai/text-embedding-3-small", "openai"), ["x"])


async def test_a_provider_lists_its_models_for_a_valid_key(
    model_gateway: Models, models: ModelServer
) -> None:
    assert await model_gateway.list_models(scripted_target(models, "")) == ["one", "two"]
    with pytest.raises(ModelFailed):
        await model_gateway.list_models(Target("", "scripted", "wrong", models.url))


async def test_testing_a_key_of_an_unreachable_provider_fails(
    model_gateway: Models, services: Services
) -> None:
    target = Target("scripted", "scripted", KEY, f"http://127.0.0.1:{free_port()}/v1")
    result = await keys.test(model_gateway, services.egress, target)
    assert not result.success
    assert result.message.startswith("scripted: 127.0.0.1")


async def test_the_window_of_a_model_is_known_or_guessed(model_gateway: Models) -> None:
    assert await model_gateway.window_of(Target("openai/gpt-4o", "openai")) == 128_000
    assert await model_gateway.window_of(Target(LOCAL_MODEL, "local")) == 4096
    assert await model_gateway.window_of(Target("scripted/never-heard-of", "scripted")) == 16_384


async def _send_chat(talk: Talker, **fields: Any) -> Any:
    body = {"message": "Hello", **fields}
    return await talk.client.post(f"{talk.path}/chat", body)


# Through the API


async def test_the_caller_receives_the_provider_s_refusal(talk: Talker) -> None:
    talk.script(Reply(status=401, message="Wrong key sk-scripted-0123456789"))
    answer = await _send_chat(talk)
    assert answer.status_code == 409
    assert answer.headers["x-should-retry"] == "false"
    error = answer.json()["error"]
    assert error["code"] == "model_not_configured"
    assert error["message"] == f"scripted/{talk.model}: Wrong key ***"
    assert {
        "model": f"scripted/{talk.model}",
        "reason": "refused",
        "provider_status": 401,
    }.items() <= error["details"].items()


@pytest.mark.usefixtures("_short_retries")
async def test_the_caller_does_not_see_a_transient_failure(talk: Talker) -> None:
    talk.script(Reply(status=503), Reply(status=429), Reply(texts=["At last"]))
    assert (await talk.say("Hello"))["message"]["content"] == "At last"


async def test_an_agent_whose_provider_has_no_key_cannot_chat(world: World) -> None:
    client = await world.user("tenant_admin")
    created = await client.post(
        "/api/v1/agents",
        {"name": "A", "primary_model": "openai/gpt-4o", "system_prompt": "x"},
    )
    assert created.status_code == 201, created.text
    answer = await client.post(f"/api/v1/agents/{created.json()['id']}/chat", {"message": "Hi"})
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "model_not_configured"


async def test_an_agent_with_an_invalid_model_name_cannot_chat(talk: Talker) -> None:
    other = await talk.agent(primary_model="scripted/../../v1/files")
    answer = await _send_chat(other)
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "model_not_configured"


@pytest.mark.usefixtures("_short_retries")
async def test_endless_nesting_of_a_provider_is_a_provider_error(
    talk: Talker, subtests: pytest.Subtests
) -> None:
    for raw in (b'{"error": ' + b"[" * 100_000, b'{"x": ' + b"[" * 100_000):
        with subtests.test(raw=raw):
            talk.script(Reply(raw=raw))
            answer = await _send_chat(talk)
            assert answer.status_code == 502
            assert answer.json()["error"]["code"] == "provider_error"


async def test_an_answer_with_impossible_usage_is_not_lost(
    talk: Talker, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[int, int]] = [(-100, -5), (10**15, 10**15), (10**30, 1)]
    for usage in cases:
        with subtests.test(usage=usage):
            talk.script(Reply(texts=["Kept"], usage=usage))
            reply = await talk.say("Hello")
            assert reply["message"]["content"] == "Kept"
            assert min(reply["usage"].values()) >= 0


# What a model lacks


async def test_fields_that_a_model_lacks_are_refused(
    model_gateway: Models, subtests: pytest.Subtests
) -> None:
    """Litellm and the server of the local model would leave them out."""
    cases: list[tuple[str, set[str], set[str]]] = [
        ("replicate/meta/llama-3", {"tools", "response_format", "tool_choice", "stop"}, {"stop"}),
        ("cohere/command-a-03-2025", {"tools", "tool_choice", "response_format"}, {"tools"}),
        ("anthropic/claude-sonnet-4-5", {"tools", "tool_choice", "temperature"}, {"*"}),
        ("openai/o3", {"temperature", "tools"}, {"tools"}),
        ("openai/gpt-4o", {"temperature", "tools"}, {"*"}),
        ("local/smollm2", {"reasoning_effort", "tools", "tool_choice", "seed"}, {"seed"}),
    ]
    for model, wanted, known in cases:
        with subtests.test(model=model):
            target = Target(model, model.partition("/")[0], KEY)
            refused = set[str]()
            try:
                await model_gateway.check_request(target, wanted)
            except Invalid as error:
                refused = set(error.details or {})
            assert refused == (set() if known == {"*"} else wanted - known)
