"""A type of node that calls a server before its transaction."""

from typing import Any, ClassVar

import msgspec
import pytest

from app.domain.automation.workflows.nodes.protocol import Done, NodeCall, NodeType, Outcome
from app.domain.automation.workflows.nodes.registry import NODE_TYPES
from app.kit.errors import Conflict
from app.services import Services
from db.connection_use import check_wait
from tests.automation.workflows.factories import PATH, create_workflow, read, start
from tests.automation.workflows.manual_worker import Hand
from tests.world import Client


class AskConfig(msgspec.Struct, forbid_unknown_fields=True):
    question: str


class AskNode(NodeType[AskConfig]):
    name: ClassVar[str] = "ask"
    description: ClassVar[str] = "Asks a server"
    config: ClassVar[type[msgspec.Struct]] = AskConfig
    example: ClassVar[dict[str, Any]] = {"question": "{{ input.question }}"}
    calls_server: ClassVar[bool] = True

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, str]] = []

    async def call_server(
        self, services: Services, tenant_id: str, caller_id: str, config: AskConfig
    ) -> Any:
        del services
        check_wait("a server")
        self.calls.append((tenant_id, caller_id, config.question))
        if config.question == "refused":
            raise Conflict("the server refuses this")
        return f"{config.question}!"

    async def run(self, call: NodeCall, config: AskConfig) -> Outcome:
        del config
        return Done(call.response)


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> AskNode:
    node_type = AskNode()
    monkeypatch.setitem(NODE_TYPES, "ask", node_type)
    return node_type


async def _create(client: Client, **fields: Any) -> str:
    config = {"question": "{{ input.question }}"}
    workflow = await create_workflow(
        client, [{"id": "one", "type": "ask", "config": config, **fields}]
    )
    return str(workflow["id"])


async def test_run_gets_the_response_of_the_server(
    ask: AskNode, developer: Client, services: Services
) -> None:
    execution_id = await start(developer, await _create(developer), input={"question": "Who"})
    await Hand(services, developer.tenant_id).run_due()
    record = await read(developer, execution_id)
    assert (record["status"], record["output"]) == ("completed", "Who!")
    ((tenant_id, caller_id, question),) = ask.calls
    assert (tenant_id, question) == (developer.tenant_id, "Who")
    assert caller_id.endswith(":1")


async def test_a_refusal_fails_the_attempt_and_is_retried(
    ask: AskNode, developer: Client, services: Services
) -> None:
    workflow_id = await _create(developer, retry={"max_attempts": 2, "delay_seconds": 60})
    execution_id = await start(developer, workflow_id, input={"question": "refused"})
    hand = Hand(services, developer.tenant_id)
    await hand.run_due()
    assert (await read(developer, execution_id))["status"] == "waiting"
    await hand.make_due(timers=False)
    await hand.run_due()
    (node,) = (await read(developer, execution_id))["nodes"]
    assert (node["status"], node["error"]["code"]) == ("failed", "conflict")
    assert [caller_id[-2:] for _, caller_id, _ in ask.calls] == [":1", ":2"]


async def test_a_config_that_cannot_be_rendered_calls_nobody(
    ask: AskNode, developer: Client, services: Services
) -> None:
    execution_id = await start(developer, await _create(developer), input={})
    await Hand(services, developer.tenant_id).run_due()
    assert (await read(developer, execution_id))["status"] == "failed"
    assert ask.calls == []


async def test_a_dry_run_ends_before_the_call(ask: AskNode, developer: Client) -> None:
    body = {"input": {"question": "Who"}, "dry_run": True}
    answer = await developer.post(f"{PATH}/{await _create(developer)}/execute", body)
    data = answer.json()["data"]
    (node,) = data["nodes"]
    assert (data["status"], node["status"]) == ("would_continue", "would_run")
    assert node["input"] == {"question": "Who"}
    assert ask.calls == []
