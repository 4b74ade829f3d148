from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from app.domain.identity.accounts import api as accounts
from app.domain.messaging.notifications import api as notifications
from app.domain.messaging.notifications.errors import ChannelInactive
from app.kit.errors import Invalid, Problem
from app.security.permissions import ROLES
from app.templating.expressions import has_templates

from .protocol import Done, Id, Kind, NodeCall, NodeType, Outcome, Reference

_MAX_USERS = 100


class NotificationConfig(msgspec.Struct, forbid_unknown_fields=True):
    title: Annotated[str, Meta(min_length=1, max_length=2000)]
    message: Annotated[str, Meta(min_length=1, max_length=notifications.MAX_MESSAGE_CHARS)]
    channel_id: Id | None = None
    user_ids: Annotated[list[Id], Meta(min_length=1, max_length=_MAX_USERS)] | None = None
    role: Annotated[str, Meta(max_length=64)] | None = None


class NotificationNode(NodeType[NotificationConfig]):
    name: ClassVar[str] = "notification"
    description: ClassVar[str] = "Notifies users, a role, or a channel"
    config: ClassVar[type[msgspec.Struct]] = NotificationConfig
    example: ClassVar[dict[str, Any]] = {
        "role": "tenant_admin",
        "title": "New order from {{ input.name }}",
        "message": "{{ nodes.summary.output.text }}",
    }
    references: ClassVar[dict[str, Kind]] = {"channel_id": "channel"}
    literal: ClassVar[frozenset[str]] = frozenset({"role"})
    permission: ClassVar[str | None] = "notifications:write"

    def find_problems(self, config: dict[str, Any]) -> Iterator[Problem]:
        yield from find_recipient_problems(config, "channel_id", "user_ids", "role")

    def list_references(self, config: dict[str, Any]) -> Iterator[Reference]:
        yield from list_users(config, "user")
        yield from super().list_references(config)

    async def run(self, call: NodeCall, config: NotificationConfig) -> Outcome:
        if config.channel_id is not None:
            channel = await notifications.find_channel(call.tx, config.channel_id)
            if not channel.active:
                # The message would reach nobody: it goes to no other channel.
                raise ChannelInactive(f"The channel {channel.name} is not active")
        elif config.user_ids is not None:
            unknown = await accounts.find_unknown_ids(call.tx, call.tenant_id, config.user_ids)
            if unknown:
                raise Invalid.field("user_ids", f"there is no user {unknown[0]}")
        message_id = await notifications.accept(
            call.tx,
            call.tenant_id,
            notifications.NewMessage(
                type="message",
                title=config.title,
                message=config.message,
                recipients=notifications.Recipients(
                    config.user_ids, config.role, config.channel_id
                ),
                data={
                    "workflow_execution_id": call.execution_id,
                    "workflow_id": call.workflow_id,
                    "node_id": call.node.id,
                },
                source=call.caller_id,
            ),
        )
        return Done({"message_id": message_id})


def find_recipient_problems(config: dict[str, Any], *names: str) -> Iterator[Problem]:
    """Yields a problem unless one of the names is set, and the role is one."""
    if sum(config.get(name) is not None for name in names) != 1:
        yield "", f"needs one of {', '.join(names[:-1])} and {names[-1]}"
    if config.get("role") is not None and config["role"] not in ROLES:
        yield "role", f"must be one of {', '.join(ROLES)}"


def list_users(config: dict[str, Any], kind: Kind) -> Iterator[Reference]:
    """Yields the users that are not templates."""
    users = config.get("user_ids")
    for user_id in users if isinstance(users, list) else ():
        if not has_templates(user_id):
            yield Reference(kind, user_id, "user_ids")
