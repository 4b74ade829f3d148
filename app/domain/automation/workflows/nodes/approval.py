from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from app.domain.automation.approvals import api as approvals
from app.domain.automation.approvals.schemas import Origin
from app.domain.automation.workflows import origin_queries
from app.domain.automation.workflows.definitions import Edge
from app.kit.errors import Problem

from .notification import find_recipient_problems, list_users
from .protocol import Done, Failed, Id, Kind, NodeCall, NodeType, Outcome, Reference, Wait

DetailName = Annotated[str, Meta(min_length=1, max_length=approvals.MAX_NAME_CHARS)]


class ApprovalConfig(msgspec.Struct, forbid_unknown_fields=True):
    title: Annotated[str, Meta(min_length=1, max_length=2000)]
    message: Annotated[str, Meta(max_length=approvals.MAX_MESSAGE_CHARS)] = ""
    user_ids: Annotated[list[Id], Meta(min_length=1, max_length=approvals.MAX_USERS)] | None = None
    role: Annotated[str, Meta(max_length=64)] | None = None
    timeout_seconds: Annotated[float, Meta(ge=1, le=approvals.MAX_TIMEOUT_SECONDS)] | None = None
    details: Annotated[
        dict[DetailName, Any],
        Meta(
            max_length=approvals.MAX_DETAILS,
            description="Names and values that those asked see, also in their mail",
        ),
    ] = {}
    on_timeout: Annotated[
        Literal["reject", "approve", "fail"],
        Meta(description="The outcome if nobody answers in time"),
    ] = "reject"


class ApprovalNode(NodeType[ApprovalConfig]):
    name: ClassVar[str] = "approval"
    only_waits: ClassVar[bool] = True
    description: ClassVar[str] = (
        "Waits until one of those asked approves or rejects; without an edge for false, a rejection"
        " fails the execution"
    )
    config: ClassVar[type[msgspec.Struct]] = ApprovalConfig
    example: ClassVar[dict[str, Any]] = {
        "role": "tenant_admin",
        "title": "Refund {{ input.amount }} to {{ input.name }}?",
        "details": {"Order": "{{ input.order }}", "Reason": "{{ input.reason }}"},
        "timeout_seconds": 86400,
    }
    references: ClassVar[dict[str, Kind]] = {"role": "deciding_role"}
    literal: ClassVar[frozenset[str]] = frozenset({"on_timeout"})
    has_branches: ClassVar[bool] = True
    has_timeout: ClassVar[bool] = True

    def find_problems(self, config: dict[str, Any]) -> Iterator[Problem]:
        yield from find_recipient_problems(config, "user_ids", "role")

    def list_references(self, config: dict[str, Any]) -> Iterator[Reference]:
        yield from list_users(config, "decider")
        yield from super().list_references(config)

    async def run(self, call: NodeCall, config: ApprovalConfig) -> Outcome:
        user_ids = config.user_ids
        if user_ids is not None:
            user_ids = await approvals.list_deciders(call.tx, call.tenant_id, user_ids)
        else:
            await approvals.require_decider(call.tx, call.tenant_id, config.role or "")
        approval_id = await approvals.request(
            call.tx,
            call.tenant_id,
            approvals.NewApproval(
                caller_id=call.caller_id,
                workflow_execution_id=call.execution_id,
                node_id=call.node.id,
                # One line, whatever the values of a template are.
                title=" ".join(config.title.split())[: approvals.MAX_TITLE_CHARS],
                message=config.message,
                user_ids=user_ids,
                role=config.role,
                timeout_seconds=config.timeout_seconds,
                origin=await _find_origin(call),
                details=config.details,
            ),
        )
        return Wait(approval_id)

    def finish(self, config: dict[str, Any], edges: list[Edge], output: Any) -> Outcome:
        on_timeout = config.get("on_timeout", "reject")
        approved = output["approved"]
        if output["status"] == "timed_out":
            if on_timeout == "fail":
                return Failed("approval_timeout", "nobody answered in time", is_retryable=False)
            approved = on_timeout == "approve"
        if not approved and all(edge.when is not False for edge in edges):
            reason = output["comment"] or "no reason was given"
            return Failed("approval_rejected", f"it was rejected: {reason}", is_retryable=False)
        return Done({"approved": approved, "comment": output["comment"]}, branch=approved)

    async def stop(self, call: NodeCall, ref_id: str) -> None:
        del ref_id
        await approvals.cancel(call.tx, call.services, call.tenant_id, [call.caller_id])


async def _find_origin(call: NodeCall) -> Origin | None:
    row = await origin_queries.find(call.tx, call.tenant_id, call.execution_id)
    if row is None:
        return None
    return Origin(row["workflow_name"], row["trigger_type"], row["trigger_name"])
