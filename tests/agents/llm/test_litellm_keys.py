"""Provider keys and agents of a provider that is called through litellm."""

from collections.abc import Callable
from typing import Any

import pytest

from app.domain.agents.llm import gateway
from app.domain.agents.llm.gateway import Models
from app.domain.agents.llm.litellm_adapter import LiteLLMAdapter
from app.services import Services
from tests.agents.llm.answers import KEY
from tests.model_server import ModelServer, Reply
from tests.world import Client, World

# litellm emits warnings at import and in use.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def add_ai21_key(
    ai21: LiteLLMAdapter, services: Services, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Client, str], Any]:
    """Returns a function that adds a key of AI21, which runs on loopback here."""
    monkeypatch.setattr(services.get(Models), "_litellm", ai21)
    monkeypatch.setattr(gateway, "RETRY_SECONDS", (0.01, 0.01))

    async def add(client: Client, key: str = KEY) -> str:
        body = {"provider": "ai21", "name": "Ours", "api_key": key}
        answer = await client.post("/api/v1/api-keys", body)
        assert answer.status_code == 201, answer.text
        key_id: str = answer.json()["id"]
        return key_id

    return add


async def _create_agent(client: Client, model: str) -> str:
    body = {"name": "A", "primary_model": model, "system_prompt": "You are a test."}
    answer = await client.post("/api/v1/agents", body)
    assert answer.status_code == 201, answer.text
    return f"/api/v1/agents/{answer.json()['id']}"


async def test_an_agent_chats_with_a_hosted_model(
    add_ai21_key: Callable[..., Any], world: World, models: ModelServer, subtests: pytest.Subtests
) -> None:
    for model in ("ai21/jamba-tiny", "jamba-tiny"):
        with subtests.test(model=model):
            client = await world.user("tenant_admin")
            await add_ai21_key(client)
            models.script("jamba-tiny", Reply(status=503), Reply(texts=["Bonjour"], usage=(9, 2)))
            path = await _create_agent(client, model)
            reply = (await client.post(f"{path}/chat", {"message": "Hello"})).json()
            assert reply["message"]["content"] == "Bonjour"
            assert reply["usage"] == {
                "prompt_tokens": 9,
                "completion_tokens": 2,
                "total_tokens": 11,
            }


async def test_a_hosted_key_is_tested_with_one_token(
    add_ai21_key: Callable[..., Any], admin: Client, models: ModelServer
) -> None:
    key_id = await add_ai21_key(admin)
    result = (await admin.post(f"/api/v1/api-keys/{key_id}/test")).json()
    assert result["success"] is True
    assert result["message"].startswith("The provider accepted the key: ai21/")
    assert models.requests[-1]["max_tokens"] == 1


async def test_a_hosted_key_that_is_refused_is_no_success(
    add_ai21_key: Callable[..., Any], admin: Client, models: ModelServer
) -> None:
    key_id = await add_ai21_key(admin)
    await admin.post(f"/api/v1/api-keys/{key_id}/test")
    smallest = models.requests[-1]["model"]
    models.script(smallest, Reply(status=401, message=f"Wrong key {KEY}"))
    answer = await admin.post(f"/api/v1/api-keys/{key_id}/test")
    models.script(smallest, Reply())
    assert answer.status_code == 200
    assert answer.json()["success"] is False
    assert "Wrong key ***" in answer.json()["message"]
    assert KEY not in answer.text
