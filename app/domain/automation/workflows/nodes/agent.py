from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from app.domain.agents.definition import api as agents
from app.domain.conversations.chat import api as chat
from app.kit.validation import NOT_BLANK
from db.session import Tx

from .protocol import Id, Kind, NodeCall, NodeType, Outcome, Wait


class AgentConfig(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: Id
    message: Annotated[str, Meta(min_length=1, max_length=100_000, pattern=NOT_BLANK)]
    context: dict[str, Any] | None = None


class AgentNode(NodeType[AgentConfig]):
    name: ClassVar[str] = "agent"
    description: ClassVar[str] = "Asks an agent, in a new conversation; `output.text` is its answer"
    config: ClassVar[type[msgspec.Struct]] = AgentConfig
    example: ClassVar[dict[str, Any]] = {
        "agent_id": "agt_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "message": "Summarise this order: {{ input.order }}",
    }
    references: ClassVar[dict[str, Kind]] = {"agent_id": "agent"}
    permission: ClassVar[str | None] = "agents:chat"
    timeout_seconds: ClassVar[float | None] = 3600.0

    async def lock(self, tx: Tx, tenant_id: str, config: AgentConfig) -> None:
        await agents.delay_deletion(tx, tenant_id, config.agent_id)

    async def run(self, call: NodeCall, config: AgentConfig) -> Outcome:
        job_id = await chat.accept_for_caller(
            call.tx,
            call.services,
            config.agent_id,
            config.message,
            context=config.context,
            caller_id=call.caller_id,
        )
        return Wait(job_id, is_running=True)

    async def stop(self, call: NodeCall, ref_id: str) -> None:
        await chat.cancel_for_caller(call.tx, call.services, call.tenant_id, ref_id)
