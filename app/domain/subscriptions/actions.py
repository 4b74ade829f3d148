"""What a subscription can do: a registry. Each action says what its config must be; those that do
more than deliver say what runs. An area that brings an action fills in its `run`.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from app.domain.accounts import people
from app.http import bodies
from app.http.errors import Invalid
from app.kit.texts import is_deeper
from app.parts import Parts
from app.security.permissions import ROLES
from db.session import Tx

ActionType = Literal["webhook", "workflow", "notification"]

_Id = Annotated[str, Meta(min_length=1, max_length=100)]
_DEEPEST = 16
_MOST_BYTES = 64 * 1024
_MOST_USERS = 100


class WebhookConfig(msgspec.Struct, forbid_unknown_fields=True):
    """An address of its own, or a webhook that there is."""

    url: Annotated[str, Meta(min_length=1, max_length=2000)] | None = None
    headers: dict[str, str] | None = None
    webhook_id: _Id | None = None


class WorkflowConfig(msgspec.Struct, forbid_unknown_fields=True):
    workflow_id: _Id
    input: dict[str, Any] | None = None


class NotificationConfig(msgspec.Struct, forbid_unknown_fields=True):
    title: Annotated[str, Meta(min_length=1, max_length=200)]
    message: Annotated[str, Meta(min_length=1, max_length=10_000)]
    channel_id: _Id | None = None
    user_ids: Annotated[list[_Id], Meta(min_length=1, max_length=_MOST_USERS)] | None = None
    role: str | None = None


class Cause(msgspec.Struct, frozen=True):
    """The event that an action is about."""

    tenant_id: str
    event_id: str
    event_type: str
    correlation_id: str
    test: bool
    data: dict[str, Any]


# In the transaction that marks the work done; gives the id of what it began, if anything.
Run = Callable[[Parts, Tx, Cause, Any], Awaitable[str | None]]
Check = Callable[[Tx, str, Any], Awaitable[None]]


class Action(msgspec.Struct, frozen=True):
    """`delivers`: it is done by deliveries alone, each of which is work of its own."""

    config: type[msgspec.Struct]
    check: Check
    delivers: bool = False
    run: Run | None = None


async def _check_webhook(_tx: Tx, _tenant_id: str, config: WebhookConfig) -> None:
    if (config.url is None) == (config.webhook_id is None):
        raise Invalid.field("action_config", "needs either url or webhook_id")
    if config.webhook_id is not None and config.headers is not None:
        raise Invalid.field("action_config.headers", "belong to the webhook itself")


async def _check_workflow(_tx: Tx, _tenant_id: str, config: WorkflowConfig) -> None:
    if is_deeper(config.input, _DEEPEST):
        raise Invalid.field("action_config.input", "is nested too deeply")
    if len(msgspec.json.encode(config.input)) > _MOST_BYTES:
        raise Invalid.field("action_config.input", f"must be at most {_MOST_BYTES // 1024} KiB")


async def _check_notification(tx: Tx, tenant_id: str, config: NotificationConfig) -> None:
    named = [config.channel_id, config.user_ids, config.role]
    if sum(one is not None for one in named) != 1:
        raise Invalid.field("action_config", "needs one of channel_id, user_ids and role")
    if config.role is not None and config.role not in ROLES:
        raise Invalid.field("action_config.role", f"must be one of {', '.join(ROLES)}")
    if config.user_ids is not None:
        unknown = await people.unknown(tx, tenant_id, config.user_ids)
        if unknown:
            raise Invalid.field("action_config.user_ids", f"there is no user {unknown[0]}")


ACTIONS: Final[dict[str, Action]] = {
    "webhook": Action(WebhookConfig, _check_webhook, delivers=True),
    "workflow": Action(WorkflowConfig, _check_workflow),
    "notification": Action(NotificationConfig, _check_notification),
}


async def checked(tx: Tx, tenant_id: str, action_type: str, given: dict[str, Any]) -> Any:
    """The config as what its action wants it to be."""
    action = ACTIONS[action_type]
    config = bodies.converted(action.config, given, "action_config")
    await action.check(tx, tenant_id, config)
    return config


def stored(config: msgspec.Struct) -> dict[str, Any]:
    """Without what was not given."""
    values = msgspec.structs.asdict(config)
    return {name: value for name, value in values.items() if value is not None}
