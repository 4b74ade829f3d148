"""The registry of actions that subscriptions trigger: the struct of each config, its check, and the
function that runs it.
"""

from collections.abc import Awaitable, Callable, Iterator
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from app.domain.accounts import service as accounts
from app.domain.notifications import service as notifications
from app.domain.notifications.errors import ChannelNotFound
from app.domain.subscriptions.errors import CannotRunAction
from app.domain.workflows import service as workflows
from app.domain.workflows.errors import WorkflowNotFound, WorkflowNotPublished
from app.kit import templates, validation
from app.kit.errors import Invalid
from app.kit.templates import TemplateProblem
from app.kit.texts import is_deeper
from app.security.permissions import ROLES
from app.services import Services
from db.session import Tx

ActionType = Literal["webhook", "workflow", "notification"]

_Id = Annotated[str, Meta(min_length=1, max_length=100)]
_MAX_DEPTH = 16
_MAX_BYTES = 64 * 1024
_MAX_RENDERED_BYTES = 1024 * 1024
_MAX_USERS = 100


class WebhookConfig(msgspec.Struct, forbid_unknown_fields=True):
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
    data: dict[str, Any]


# Runs in the transaction that marks the work done; returns the id of what it started, if any.
Run = Callable[[Services, Tx, Cause, Any], Awaitable[str | None]]
Check = Callable[[Tx, str, Any], Awaitable[None]]


class Action(msgspec.Struct, frozen=True):
    """`run` is None when the action only creates deliveries, which are work of their own."""

    config: type[msgspec.Struct]
    check: Check
    run: Run | None = None


async def _check_webhook(_tx: Tx, _tenant_id: str, config: WebhookConfig) -> None:
    if (config.url is None) == (config.webhook_id is None):
        raise Invalid.field("action_config", "needs either url or webhook_id")
    if config.webhook_id is not None and config.headers is not None:
        raise Invalid.field("action_config.headers", "belong to the webhook itself")


async def _check_workflow(tx: Tx, tenant_id: str, config: WorkflowConfig) -> None:
    if is_deeper(config.input, _MAX_DEPTH):
        raise Invalid.field("action_config.input", "is nested too deeply")
    if len(msgspec.json.encode(config.input)) > _MAX_BYTES:
        raise Invalid.field("action_config.input", f"must be at most {_MAX_BYTES // 1024} KiB")
    for text in _list_texts(config.input):
        _check_template("action_config.input", text)
    if not await workflows.exists(tx, tenant_id, config.workflow_id):
        raise Invalid.field("action_config.workflow_id", "there is no such workflow")


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
    for name in ("title", "message"):
        _check_template(f"action_config.{name}", getattr(config, name))


def _check_template(field: str, text: str) -> None:
    try:
        templates.check(text, ["event"])
    except TemplateProblem as problem:
        raise Invalid.field(field, str(problem)) from None


def _list_texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from _list_texts(item)
        case dict():
            for item in value.values():
                yield from _list_texts(item)


async def _check_channel(tx: Tx, tenant_id: str, channel_id: str) -> None:
    try:
        exists = (await notifications.find_channel(tx, channel_id)).tenant_id == tenant_id
    except ChannelNotFound:
        exists = False
    if not exists:
        raise Invalid.field("action_config.channel_id", "there is no such channel")


async def _run_notification(
    _services: Services, tx: Tx, cause: Cause, config: NotificationConfig
) -> str | None:
    """Accepts the message; a worker dispatches it to its recipients."""
    if config.channel_id is not None:
        try:
            await notifications.find_channel(tx, config.channel_id)
        except ChannelNotFound as error:
            raise CannotRunAction(
                "the channel that this subscription names does not exist any more"
            ) from error
    event = _describe(cause)
    title = templates.render(
        config.title, {"event": event}, max_chars=notifications.MAX_TITLE_CHARS
    )
    message = templates.render(
        config.message, {"event": event}, max_chars=notifications.MAX_MESSAGE_CHARS
    )
    new = notifications.NewMessage(
        type=notifications.type_of(cause.event_type),
        title=" ".join(title.split()) or cause.event_type,
        message=message,
        recipients=notifications.Recipients(config.user_ids, config.role, config.channel_id),
        data={"event_id": cause.event_id, "event_type": cause.event_type},
        event_id=cause.event_id,
        source=cause.source_id,
    )
    return await notifications.accept(tx, cause.tenant_id, new)


async def _run_workflow(
    services: Services, tx: Tx, cause: Cause, config: WorkflowConfig
) -> str | None:
    """Starts the published version. Its input is that of the config, with the event."""
    event = _describe(cause)
    rendered = _Renderer({"event": event}).render(config.input or {})
    try:
        return await workflows.accept(
            tx,
            services,
            workflows.NewExecution(
                tenant_id=cause.tenant_id,
                workflow_id=config.workflow_id,
                input={**rendered, "event": event},
                trigger_type="event",
                trigger_id=cause.source_id,
                dedupe_key=f"{cause.source_id}:{cause.event_id}",
            ),
        )
    except (WorkflowNotFound, WorkflowNotPublished, Invalid) as error:
        raise CannotRunAction(error.message) from error


def _describe(cause: Cause) -> dict[str, Any]:
    return {"id": cause.event_id, "type": cause.event_type, "data": cause.data}


class _Renderer:
    """Renders one JSON value. Its templates together may yield so many bytes."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values
        self._free_bytes = _MAX_RENDERED_BYTES

    def render(self, value: Any) -> Any:
        """Returns the value with its templates evaluated. Raises CannotRunAction."""
        match value:
            case str():
                return self._evaluate(value)
            case list():
                return [self.render(item) for item in value]
            case dict():
                return {key: self.render(item) for key, item in value.items()}
        return value

    def _evaluate(self, template: str) -> Any:
        value = templates.evaluate(template, self._values, max_chars=_MAX_BYTES)
        self._free_bytes -= len(msgspec.json.encode(value))
        if self._free_bytes < 0:
            limit = _MAX_RENDERED_BYTES // 1024
            raise CannotRunAction(f"the input with its values is larger than {limit} KiB")
        return value


ACTIONS: Final[dict[str, Action]] = {
    "webhook": Action(WebhookConfig, _check_webhook),
    "workflow": Action(WorkflowConfig, _check_workflow, run=_run_workflow),
    "notification": Action(NotificationConfig, _check_notification, run=_run_notification),
}


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
