"""The one door to models: which way is taken, and when a model is asked again."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import msgspec
import pytest

from app.domain.models import gateway, keys, service
from app.domain.models.errors import ModelFailed, ModelNotConfigured
from app.domain.models.gateway import LOCAL_MODEL, Models
from app.domain.models.protocol import AnswerPart, Message, ModelRequest, Target, Text, UsedTokens
from app.domain.models.providers import PROVIDERS
from app.kit import heartbeat
from app.kit.egress import Guard
from app.kit.errors import Unavailable
from app.kit.heartbeat import Beat
from app.services import Services
from tests.model_server import ModelServer, Reply
from tests.ports import free_port
from tests.talk import Talker
from tests.world import World

KEY = "sk-live-0123456789abcdef"
ASK = ModelRequest(messages=[Message("user", "Hello")])
WHOLE = ModelRequest(messages=[Message("user", "Hello")], is_streamed=False)
BROKEN = Reply(raw=b"{nope")


@pytest.fixture
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "RETRY_SECONDS", (0.01, 0.02))


@pytest.fixture
async def door(services: Services, _soon: None) -> AsyncIterator[Models]:
    made = Models(Guard(("127.0.0.1",)), services.redis, has_local=False)
    yield made
    await made.close()


@pytest.fixture
async def local_door(services: Services, _soon: None) -> AsyncIterator[Models]:
    made = Models(Guard(()), services.redis, has_local=True)
    yield made
    await made.close()


def _target(models: ModelServer, model: str) -> Target:
    return Target(f"scripted/{model}", "scripted", KEY, models.url)


async def _pieces(door: Models, target: Target, ask: ModelRequest = ASK) -> list[AnswerPart]:
    async with aclosing(door.answer(target, ask)) as pieces:
        return [piece async for piece in pieces]


async def _failure(
    door: Models, target: Target, ask: ModelRequest = ASK
) -> tuple[ModelFailed, list[AnswerPart]]:
    before: list[AnswerPart] = []
    try:
        async with aclosing(door.answer(target, ask)) as pieces:
            async for piece in pieces:
                before.append(piece)  # noqa: PERF401  # what came before the error counts
    except ModelFailed as error:
        return error, before
    raise AssertionError(f"nothing failed: {before}")


# Asking again

PASSING = [
    pytest.param(Reply(status=429), id="too many requests"),
    pytest.param(Reply(status=500), id="500"),
    pytest.param(Reply(status=502), id="502"),
    pytest.param(Reply(status=503), id="503"),
    pytest.param(Reply(drop_after=0), id="dropped"),
    pytest.param(BROKEN, id="not the wire format"),
]


@pytest.mark.parametrize("ask", [ASK, WHOLE], ids=["stream", "whole"])
@pytest.mark.parametrize("reply", PASSING)
async def test_what_passes_is_asked_again(
    door: Models, models: ModelServer, reply: Reply, ask: ModelRequest
) -> None:
    name = "once-more"
    models.script(name, reply, Reply(texts=["Yes"]))
    asked = len(models.asked(name))
    assert await _pieces(door, _target(models, name), ask) == [Text("Yes"), UsedTokens(11, 7)]
    assert len(models.asked(name)) == asked + 2


async def test_every_question_again_is_the_same_question(door: Models, models: ModelServer) -> None:
    models.script("same", Reply(status=500), Reply(status=500), Reply())
    await _pieces(door, _target(models, "same"))
    first, *others = models.asked("same")
    assert others == [first, first]


@pytest.mark.parametrize("reply", PASSING)
async def test_a_model_is_asked_three_times_at_most(
    door: Models, models: ModelServer, reply: Reply
) -> None:
    models.script("three", reply)
    asked = len(models.asked("three"))
    await _failure(door, _target(models, "three"))
    assert len(models.asked("three")) == asked + 3


async def test_the_last_failure_is_the_one_that_is_told(door: Models, models: ModelServer) -> None:
    replies = [Reply(status=500, message=word) for word in ("one", "two", "three")]
    models.script("last", *replies)
    error, _ = await _failure(door, _target(models, "last"))
    assert error.message == "scripted/last: three"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
async def test_a_refusal_is_not_asked_again(door: Models, models: ModelServer, status: int) -> None:
    name = f"refused-{status}"
    models.script(name, Reply(status=status), Reply())
    error, _ = await _failure(door, _target(models, name))
    assert error.reason == "refused"
    assert len(models.asked(name)) == 1


@pytest.mark.parametrize("status", [408, 504])
async def test_a_time_out_is_not_asked_again(
    door: Models, models: ModelServer, status: int
) -> None:
    """The answer that nobody waited for is paid all the same."""
    name = f"late-{status}"
    models.script(name, Reply(status=status), Reply())
    error, _ = await _failure(door, _target(models, name))
    assert error.reason == "timeout"
    assert len(models.asked(name)) == 1


async def test_a_refusal_after_a_passing_failure_ends_it(door: Models, models: ModelServer) -> None:
    models.script("then", Reply(status=500), Reply(status=401), Reply())
    error, _ = await _failure(door, _target(models, "then"))
    assert error.reason == "refused"
    assert len(models.asked("then")) == 2


@pytest.mark.usefixtures("_soon")
async def test_nobody_there_is_asked_again(services: Services, models: ModelServer) -> None:
    nobody, somebody = free_port(), int(models.url.rpartition(":")[2].partition("/")[0])
    tries: list[int] = []

    async def resolve(_host: str, port: int) -> list[str]:
        tries.append(port)
        return ["127.0.0.1"]

    door = Models(Guard(("models.example.com",), resolve), services.redis, has_local=False)
    for port in (nobody, somebody):
        url = f"http://models.example.com:{port}/v1"
        target = Target("scripted/late", "scripted", KEY, url)
        if port == nobody:
            error, _ = await _failure(door, target)
            assert error.reason == "unreachable"
        else:
            assert await _pieces(door, target)
    await door.close()
    assert tries == [nobody, nobody, nobody, somebody]


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(Reply(texts=["One", "two"], drop_after=1), id="dropped"),
        pytest.param(Reply(texts=["One", "two"], error_after=1), id="an error"),
    ],
)
async def test_what_was_passed_on_is_not_asked_for_again(
    door: Models, models: ModelServer, reply: Reply
) -> None:
    models.script("amid", reply, Reply(texts=["From the start"]))
    asked = len(models.asked("amid"))
    _, before = await _failure(door, _target(models, "amid"))
    assert before == [Text("One")]
    assert len(models.asked("amid")) == asked + 1


async def test_the_pauses_grow(
    door: Models, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "RETRY_SECONDS", (0.1, 0.3))
    models.script("pauses", Reply(status=500))
    started = time.monotonic()
    await _failure(door, _target(models, "pauses"))
    assert 0.4 <= time.monotonic() - started < 3


async def test_the_provider_s_own_wait_is_kept(door: Models, models: ModelServer) -> None:
    models.script("own-wait", Reply(status=429, headers={"Retry-After": "0.4"}), Reply())
    started = time.monotonic()
    await _pieces(door, _target(models, "own-wait"))
    assert 0.4 <= time.monotonic() - started < 3
    assert len(models.asked("own-wait")) == 2


async def test_no_wait_at_all_is_kept_as_well(
    door: Models, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "RETRY_SECONDS", (30.0, 30.0))
    models.script("no-wait", Reply(status=503, headers={"Retry-After": "0"}), Reply())
    async with asyncio.timeout(5):
        await _pieces(door, _target(models, "no-wait"))


@pytest.mark.parametrize("seconds", ["10.1", "60", "inf", "1e400"])
async def test_nobody_waits_for_more_than_ten_seconds(
    door: Models, models: ModelServer, seconds: str
) -> None:
    models.script("long-wait", Reply(status=429, headers={"Retry-After": seconds}), Reply())
    asked = len(models.asked("long-wait"))
    async with asyncio.timeout(5):
        error, _ = await _failure(door, _target(models, "long-wait"))
    assert error.reason == "rate_limited"
    assert len(models.asked("long-wait")) == asked + 1


async def test_the_longest_wait_is_still_waited(
    door: Models, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "_MAX_RETRY_SECONDS", 0.3)
    models.script("longest", Reply(status=429, headers={"Retry-After": "0.3"}), Reply())
    assert await _pieces(door, _target(models, "longest"))
    assert len(models.asked("longest")) == 2


async def test_who_stops_listening_while_it_waits_asks_no_more(
    door: Models, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "RETRY_SECONDS", (9.0, 9.0))
    models.script("given-up", Reply(status=500), Reply())
    task = asyncio.create_task(_pieces(door, _target(models, "given-up")))
    deadline = time.monotonic() + 5
    while not models.asked("given-up") or models.open:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(models.asked("given-up")) == 1


# Names


@pytest.mark.parametrize(
    "name",
    [
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
    ],
)
async def test_an_odd_name_is_no_model(door: Models, models: ModelServer, name: str) -> None:
    target = Target(name, "scripted", KEY, models.url)
    asked = len(models.requests)
    with pytest.raises(ModelNotConfigured) as caught:
        await _pieces(door, target)
    assert (type(caught.value).status, caught.value.code) == (409, "model_not_configured")
    assert len(models.requests) == asked
    assert not await door.is_ready(target)


@pytest.mark.parametrize(
    "name",
    [
        "scripted/org/model-7b.Q4_K_M:free",
        "scripted/@cf/meta/llama",
        "scripted/claude@20240620",
        "scripted/a+b",
        "7b",
        "s" * 200,
    ],
)
async def test_the_names_that_providers_use_are_models(
    door: Models, models: ModelServer, name: str
) -> None:
    target = Target(name, "scripted", KEY, models.url)
    await door.check(target)
    assert await door.is_ready(target)
    assert await _pieces(door, target)
    assert models.requests[-1]["model"] == name.removeprefix("scripted/")


# Ways


async def test_a_provider_without_a_key_is_not_configured(door: Models) -> None:
    target = Target("openai/gpt-4o", "openai")
    with pytest.raises(ModelNotConfigured) as caught:
        await door.check(target)
    assert caught.value.message == (
        "openai/gpt-4o needs a key of the provider openai; add one with POST /api/v1/api-keys"
    )
    assert not await door.is_ready(target)


async def test_an_address_without_a_key_is_not_configured(
    door: Models, models: ModelServer
) -> None:
    with pytest.raises(ModelNotConfigured):
        await door.check(Target("scripted/one", "scripted", "", models.url))


async def test_an_unknown_provider_needs_an_address(door: Models) -> None:
    target = Target("nobody/one", "nobody", KEY)
    with pytest.raises(ModelNotConfigured) as caught:
        await door.check(target)
    assert "nobody needs a key with a base_url" in caught.value.message
    assert not await door.is_ready(target)


@pytest.mark.parametrize("provider", sorted(PROVIDERS))
async def test_every_provider_of_the_table_is_ready_with_a_key(door: Models, provider: str) -> None:
    assert await door.is_ready(Target(f"{provider}/model", provider, KEY))
    assert not await door.is_ready(Target(f"{provider}/model", provider))


@pytest.mark.usefixtures("_soon")
async def test_a_hosted_provider_is_asked_at_its_own_address(services: Services) -> None:
    asked: set[tuple[str, int]] = set()

    async def resolve(host: str, port: int) -> list[str]:
        asked.add((host, port))
        raise OSError("no network here")

    door = Models(Guard((), resolve), services.redis, has_local=False)
    error, _ = await _failure(door, Target("groq/llama", "groq", KEY))
    await door.close()
    assert error.reason == "unreachable"
    assert asked == {("api.groq.com", 443)}


async def test_a_key_with_an_address_goes_there_and_not_to_the_host(
    door: Models, models: ModelServer
) -> None:
    models.script("gpt-4o", Reply(texts=["From elsewhere"]))
    target = Target("openai/gpt-4o", "openai", KEY, models.url)
    assert (await _pieces(door, target))[0] == Text("From elsewhere")


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/v1", "http://localhost:9/v1"])
async def test_a_blocked_address_is_refused_at_once(
    services: Services, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """As after EGRESS_ALLOW got shorter, or when a name leads elsewhere than it did."""
    monkeypatch.setattr(gateway, "RETRY_SECONDS", (30.0, 30.0))
    door = Models(Guard(()), services.redis, has_local=False)
    async with asyncio.timeout(5):
        error, _ = await _failure(door, Target("scripted/one", "scripted", KEY, address))
    await door.close()
    assert error.reason == "refused"
    assert "public" in error.message
    assert KEY not in error.message


# The local model


@asynccontextmanager
async def _local(services: Services, address: str, name: str | None = None) -> AsyncIterator[None]:
    """The local model says in Redis where it is, as its own process would."""
    beat = Beat("model", name or heartbeat.own_name(), address=address)
    key = f"parley:alive:model:{beat.name}"
    await services.redis.set(key, msgspec.json.encode(beat), ex=30)
    try:
        yield
    finally:
        await services.redis.delete(key)


async def test_the_local_model_is_asked_without_a_key(
    local_door: Models, models: ModelServer, services: Services
) -> None:
    models.script(LOCAL_MODEL, Reply(texts=["Local"]))
    async with _local(services, models.url):
        assert (await _pieces(local_door, Target(LOCAL_MODEL, "local")))[0] == Text("Local")
    assert models.requests[-1]["model"] == LOCAL_MODEL
    assert "Authorization" not in models.headers[-1]


async def test_a_key_is_never_sent_to_the_local_model(
    local_door: Models, models: ModelServer, services: Services
) -> None:
    async with _local(services, models.url):
        await _pieces(local_door, Target(LOCAL_MODEL, "local", KEY, "https://evil.example.com"))
    assert "Authorization" not in models.headers[-1]


async def test_the_local_model_of_this_machine_is_preferred(
    local_door: Models, models: ModelServer, services: Services
) -> None:
    async with (
        _local(services, "http://127.0.0.1:9/v1", "aaa-elsewhere:1"),
        _local(services, models.url),
        _local(services, "http://127.0.0.1:9/v1", "zzz-elsewhere:1"),
    ):
        assert await local_door.local_address() == models.url


async def test_a_local_model_that_still_starts_is_unavailable_for_a_moment(
    local_door: Models,
) -> None:
    target = Target(LOCAL_MODEL, "local")
    with pytest.raises(Unavailable) as caught:
        await local_door.check(target)
    assert caught.value.headers == {"Retry-After": "3"}
    assert not await local_door.is_ready(target)


async def test_only_one_local_model_is_served(local_door: Models) -> None:
    with pytest.raises(ModelNotConfigured):
        await local_door.check(Target("local/gpt-4o", "local"))


async def test_a_local_model_that_is_switched_off_is_not_configured(
    door: Models, models: ModelServer, services: Services
) -> None:
    async with _local(services, models.url):
        with pytest.raises(ModelNotConfigured):
            await door.check(Target(LOCAL_MODEL, "local"))


async def test_the_local_model_is_listed_while_it_runs(
    local_door: Models, models: ModelServer, services: Services
) -> None:
    async with _local(services, models.url):
        (found,) = await service.list_usable(local_door, [])
    assert msgspec.to_builtins(found) == {
        "id": "local/smollm2",
        "provider": "local",
        "context_window": 4096,
        "input_cost_per_million": 0.0,
        "output_cost_per_million": 0.0,
    }


async def test_a_local_model_that_does_not_run_is_not_listed(local_door: Models) -> None:
    assert await service.list_usable(local_door, []) == []


async def test_a_local_model_is_not_forgotten_when_redis_forgets_it(
    local_door: Models, models: ModelServer, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "_ADDRESS_SECONDS", 0.0)
    async with _local(services, models.url):
        assert await local_door.local_address() == models.url
    assert await local_door.local_address() == models.url
    monkeypatch.setattr(gateway, "_EXPIRY_SECONDS", 0.0)
    assert await local_door.local_address() is None


async def test_a_local_model_that_is_switched_off_is_not_listed(
    door: Models, models: ModelServer, services: Services
) -> None:
    async with _local(services, models.url):
        assert await service.list_usable(door, []) == []


# Embeddings, lists and windows


async def test_embeddings_come_in_the_order_of_their_texts(
    door: Models, models: ModelServer
) -> None:
    found = await door.embed(_target(models, "embedder"), ["four", "x", "three", "xx"])
    assert [vector[0] for vector in found.vectors] == [4.0, 1.0, 5.0, 2.0]
    assert found.prompt_tokens == 4


async def test_embeddings_need_a_key_as_well(door: Models) -> None:
    with pytest.raises(ModelNotConfigured):
        await door.embed(Target("openai/text-embedding-3-small", "openai"), ["x"])


async def test_a_key_is_tried_by_the_provider_s_own_list(door: Models, models: ModelServer) -> None:
    assert await door.list_models(_target(models, "")) == ["one", "two"]
    with pytest.raises(ModelFailed):
        await door.list_models(Target("", "scripted", "wrong", models.url))


async def test_a_key_that_cannot_be_tried_is_no_success(door: Models) -> None:
    target = Target("scripted", "scripted", KEY, f"http://127.0.0.1:{free_port()}/v1")
    tried = await keys.test(door, target)
    assert not tried.success
    assert tried.message.startswith("scripted: 127.0.0.1")


async def test_the_window_of_a_model_is_known_or_guessed(door: Models) -> None:
    assert await door.window_of(Target("openai/gpt-4o", "openai")) == 128_000
    assert await door.window_of(Target(LOCAL_MODEL, "local")) == 4096
    assert await door.window_of(Target("scripted/never-heard-of", "scripted")) == 16_384


# Through the API


async def _chat(talk: Talker, **fields: Any) -> Any:
    body = {"message": "Hello", **fields}
    return await talk.client.post(f"{talk.path}/chat", body)


async def test_a_provider_s_refusal_is_told_to_the_caller(talk: Talker) -> None:
    talk.script(Reply(status=401, message="Wrong key sk-scripted-0123456789"))
    answer = await _chat(talk)
    assert answer.status_code == 502
    error = answer.json()["error"]
    assert error["code"] == "provider_error"
    assert error["message"] == f"scripted/{talk.model}: Wrong key ***"
    assert error["details"] == {
        "model": f"scripted/{talk.model}",
        "reason": "refused",
        "provider_status": 401,
    }


@pytest.mark.usefixtures("_soon")
async def test_a_passing_failure_is_not_seen_by_the_caller(talk: Talker) -> None:
    talk.script(Reply(status=503), Reply(status=429), Reply(texts=["At last"]))
    assert (await talk.say("Hello"))["message"]["content"] == "At last"


async def test_an_agent_whose_provider_has_no_key_cannot_chat(world: World) -> None:
    client = await world.user("tenant_admin")
    made = await client.post(
        "/api/v1/agents",
        {"name": "A", "primary_model": "openai/gpt-4o", "system_prompt": "x"},
    )
    assert made.status_code == 201, made.text
    answer = await client.post(f"/api/v1/agents/{made.json()['id']}/chat", {"message": "Hi"})
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "model_not_configured"


async def test_an_agent_with_an_odd_model_name_cannot_chat(talk: Talker) -> None:
    other = await talk.agent(primary_model="scripted/../../v1/files")
    answer = await _chat(other)
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "model_not_configured"


@pytest.mark.parametrize("raw", [b'{"error": ' + b"[" * 100_000, b'{"x": ' + b"[" * 100_000])
@pytest.mark.usefixtures("_soon")
async def test_a_provider_s_endless_nesting_is_its_own_failure(talk: Talker, raw: bytes) -> None:
    talk.script(Reply(raw=raw))
    answer = await _chat(talk)
    assert answer.status_code == 502
    assert answer.json()["error"]["code"] == "provider_error"


@pytest.mark.parametrize("usage", [(-100, -5), (10**15, 10**15), (10**30, 1)])
async def test_an_answer_with_impossible_usage_is_not_lost(
    talk: Talker, usage: tuple[int, int]
) -> None:
    talk.script(Reply(texts=["Kept"], usage=usage))
    reply = await talk.say("Hello")
    assert reply["message"]["content"] == "Kept"
    assert min(reply["usage"].values()) >= 0
