"""The registry of actions that subscriptions trigger: the struct of each config, its check, and the
functions that render its templates and run it.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from app.domain.automation.workflows import api as workflows
from app.domain.automation.workflows.errors import WorkflowNotFound, WorkflowNotPublished
from app.domain.identity.accounts import api as accounts
from app.domain.messaging.notifications import api as notifications
from app.domain.messaging.notifications.errors import ChannelNotFound
from app.kit import validation
from app.kit.errors import Invalid
from app.kit.texts import is_deeper
from app.security.permissions import ROLES
from app.services import Services
from app.templating.expressions import Expressions, Source, list_sources
from db.session import Tx

from .errors import CannotRunAction

ActionType = Literal["webhook", "workflow", "notification"]

_Id = Annotated[str, Meta(min_length=1, max_length=100)]
_MAX_DEPTH = 16
_MAX_BYTES = 64 * 1024
_MAX_USERS = 100
# Each takes up to a millisecond to parse.
_MAX_TEMPLATES = 500
# The fields of configs that are templates, or contain them.
_TEMPLATE_FIELDS: Final = ("title", "message", "input")


class WebhookActionConfig(msgspec.Struct, forbid_unknown_fields=True):
    """An own address, or an existing webhook."""

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
    user_ids: Annotated[list[_Id], Meta(min_length=1, max_length=_MAX_USERS)] | None = None
    role: str | None = None


class Cause(msgspec.Struct, frozen=True):
    """The event that triggers an action, and the subscription or incoming webhook that it belongs
    to.
    """

    tenant_id: str
    source_id: str
    event_id: str
    event_type: str
    correlation_id: str
    test: bool
    data: msgspec.Raw


# Returns the config with its templates rendered. No transaction is open meanwhile.
Render = Callable[[Expressions, Cause, Any], Awaitable[Any]]
# Runs in the transaction that marks the work done; returns the id of what it started, if any.
Run = Callable[[Services, Tx, Cause, Any], Awaitable[str | None]]
Check = Callable[[Tx, str, Any], Awaitable[None]]


class Action(msgspec.Struct, frozen=True):
    """`render` and `run` are None when the action only creates deliveries, which are work of their
    own.
    """

    config: type[msgspec.Struct]
    check: Check
    render: Render | None = None
    run: Run | None = None


async def _check_webhook(_tx: Tx, _tenant_id: str, config: WebhookActionConfig) -> None:
    if (config.url is None) == (config.webhook_id is None):
        raise Invalid.field("action_config", "needs either url or webhook_id")
    if config.webhook_id is not None and config.headers is not None:
        raise Invalid.field("action_config.headers", "belong to the webhook itself")


async def _check_workflow(tx: Tx, tenant_id: str, config: WorkflowConfig) -> None:
    validation.check_size("action_config.input", config.input, _MAX_DEPTH, _MAX_BYTES)
    if not await workflows.exists(tx, tenant_id, config.workflow_id):
        raise Invalid.field("action_config.workflow_id", "this workflow does not exist")


async def _check_notification(tx: Tx, tenant_id: str, config: NotificationConfig) -> None:
    recipients = [config.channel_id, config.user_ids, config.role]
    if sum(recipient is not None for recipient in recipients) != 1:
        raise Invalid.field("action_config", "needs one of channel_id, user_ids and role")
    if config.role is not None and config.role not in ROLES:
        raise Invalid.field("action_config.role", f"must be one of {', '.join(ROLES)}")
    if config.user_ids is not None:
        unknown = await accounts.find_unknown_ids(tx, tenant_id, config.user_ids)
        if unknown:
            raise Invalid.field("action_config.user_ids", f"there is no user {unknown[0]}")
    if config.channel_id is not None:
        await _check_channel(tx, tenant_id, config.channel_id)


async def _check_channel(tx: Tx, tenant_id: str, channel_id: str) -> None:
    try:
        exists = (await notifications.find_channel(tx, channel_id)).tenant_id == tenant_id
    except ChannelNotFound:
        exists = False
    if not exists:
        raise Invalid.field("action_config.channel_id", "this channel does not exist")


async def _render_notification(
    expressions: Expressions, cause: Cause, config: NotificationConfig
) -> NotificationConfig:
    texts = {"title": config.title, "message": config.message}
    # The title is cut later, when it is one line.
    rendered = await expressions.render(
        texts,
        {"event": _describe(cause)},
        group=cause.tenant_id,
        max_chars=notifications.MAX_MESSAGE_CHARS,
        as_texts=True,
    )
    return msgspec.structs.replace(config, **rendered)


async def _run_notification(
    _services: Services, tx: Tx, cause: Cause, config: NotificationConfig
) -> str | None:
    """Accepts the message; a worker dispatches it to its recipients."""
    if config.channel_id is not None:
        try:
            await notifications.find_channel(tx, config.channel_id)
        except ChannelNotFound as error:
            raise CannotRunAction(
                "the channel that this subscription names no longer exists"
            ) from error
    new = notifications.NewMessage(
        type=notifications.type_of(cause.event_type),
        title=" ".join(config.title[: notifications.MAX_TITLE_CHARS].split()) or cause.event_type,
        message=config.message,
        recipients=notifications.Recipients(config.user_ids, config.role, config.channel_id),
        data={"event_id": cause.event_id, "event_type": cause.event_type},
        event_id=cause.event_id,
        source=cause.source_id,
    )
    return await notifications.accept(tx, cause.tenant_id, new)


async def _render_workflow(
    expressions: Expressions, cause: Cause, config: WorkflowConfig
) -> WorkflowConfig:
    rendered = await expressions.render(
        config.input or {},
        {"event": _describe(cause)},
        group=cause.tenant_id,
        max_chars=_MAX_BYTES,
    )
    return msgspec.structs.replace(config, input=rendered)


async def _run_workflow(
    services: Services, tx: Tx, cause: Cause, config: WorkflowConfig
) -> str | None:
    """Starts the published version. Its input is that of the config, with the event."""
    event = {**_describe(cause), "data": msgspec.json.decode(cause.data)}
    try:
        return await workflows.accept(
            tx,
            services,
            workflows.NewExecution(
                tenant_id=cause.tenant_id,
                workflow_id=config.workflow_id,
                input={**(config.input or {}), "event": event},
                trigger_type="event",
                trigger_id=cause.source_id,
                dedupe_key=f"{cause.source_id}:{cause.event_id}",
            ),
        )
    except (WorkflowNotFound, WorkflowNotPublished, Invalid) as error:
        raise CannotRunAction(error.message) from error


def _describe(cause: Cause) -> dict[str, Any]:
    return {"id": cause.event_id, "type": cause.event_type, "data": cause.data}


ACTIONS: Final[dict[str, Action]] = {
    "webhook": Action(WebhookActionConfig, _check_webhook),
    "workflow": Action(WorkflowConfig, _check_workflow, _render_workflow, _run_workflow),
    "notification": Action(
        NotificationConfig, _check_notification, _render_notification, _run_notification
    ),
}


async def check_templates(services: Services, tenant_id: str, config: dict[str, Any]) -> None:
    """Raises Invalid for templates that cannot be rendered. Skips a config that `validate_config`
    refuses. Other processes check them: call it before a transaction.
    """
    fields = {name: config[name] for name in _TEMPLATE_FIELDS if name in config}
    if is_deeper(fields, _MAX_DEPTH + 1) or len(msgspec.json.encode(fields)) > 2 * _MAX_BYTES:
        return
    sources = [
        Source(source.kind, source.text, f"action_config.{name}")
        for name, value in fields.items()
        for source in list_sources(value, "")
    ]
    if len(sources) > _MAX_TEMPLATES:
        raise Invalid.field(sources[-1].path, f"has more than {_MAX_TEMPLATES} templates")
    Invalid.check(await services.get(Expressions).check(sources, ["event"], group=tenant_id))


async def validate_config(tx: Tx, tenant_id: str, action_type: str, config: dict[str, Any]) -> Any:
    """Returns the config as the struct of its action."""
    action = ACTIONS[action_type]
    validated = validation.convert_field(action.config, config, "action_config")
    await action.check(tx, tenant_id, validated)
    return validated


def to_stored(config: msgspec.Struct) -> dict[str, Any]:
    """Returns the config as it is stored, without the fields that are None."""
    values = msgspec.structs.asdict(config)
    return {name: value for name, value in values.items() if value is not None}
