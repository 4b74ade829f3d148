"""The declaration of an area: events, permissions, work, tables, retention, spans and callbacks.

Each area has an `area.py` with one `Area`, and `app/areas.py` lists them. Event log, permissions,
workers and clean-up read that list, so that a new area changes no file of another.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, ClassVar, Final, Literal, get_type_hints

import msgspec
from msgspec import Meta

from app.domain.job import JobFunction, OnDead, OnRetry
from app.jobs.work import WorkKind
from app.security.permissions import ROLES, Permission
from app.services import Services
from db.retention import RetentionRule
from db.session import Tx
from db.storage_quota import TableQuota

_CHAT_JOB = "chat.turn"

SpanKind = Literal["request", "job", "node", "model", "tool", "delivery", "notification"]


class Event(msgspec.Struct):
    """A typed payload without secrets: payloads are stored, shown and delivered unchanged.

    The first paragraph of a subclass's docstring is what the catalogue says about the event.
    """

    type: ClassVar[str]

    @classmethod
    def description(cls) -> str:
        return " ".join((cls.__doc__ or "").partition("\n\n")[0].split()).removesuffix(".")

    @classmethod
    def example(cls) -> dict[str, Any]:
        hints = get_type_hints(cls, include_extras=True)
        return {name: _read_example(hints[name]) for name in cls.__struct_fields__}


def example(value: Any) -> Meta:
    """Annotates a field of an event with a value for the catalogue."""
    return Meta(examples=[value])


def _read_example(hint: Any) -> Any:
    return next(meta.examples[0] for meta in hint.__metadata__ if meta.examples)


class Span(msgspec.Struct, omit_defaults=True):
    """`waited_ms` is how long it waited before it started. `is_waiting` marks one that waits for
    all of its time, such as for an approval. A long `input` or `output` is a text that is cut off.
    """

    kind: SpanKind
    id: str
    parent_id: str | None
    name: str
    status: str
    started_at: datetime
    duration_ms: float
    waited_ms: float | None = None
    is_waiting: bool = False
    input: Any = None
    output: Any = None
    error: str | None = None


# How much of an input or output a span shows, and how much all spans of a kind show together.
_MAX_SHOWN_CHARS: Final = 2000
_MAX_SHOWN_BYTES: Final = 1024 * 1024


def shown_sql(*columns: str, order_by: str) -> str:
    """Selects JSON columns for `read_shown`: the beginnings of those that come first in the order,
    up to a size in total. Each gets its own name without the table's. The size is the stored one,
    so that values that are not shown are not read.
    """
    size = " + ".join(
        f"least(coalesce(pg_column_size({name}), 0), {_MAX_SHOWN_CHARS})" for name in columns
    )
    fits = f"sum({size}) OVER (ORDER BY {order_by}) <= {_MAX_SHOWN_BYTES}"
    return ", ".join(
        f"CASE WHEN {fits} THEN left({name}::text, {_MAX_SHOWN_CHARS + 1}) END"
        f" AS {name.rpartition('.')[2]}"
        for name in columns
    )


def read_shown(text: str | None) -> Any:
    """Returns a value that `shown_sql` selected; one that is cut off as a text."""
    if text is None:
        return None
    if len(text) > _MAX_SHOWN_CHARS:
        return f"{text[:_MAX_SHOWN_CHARS]}…"
    return msgspec.json.decode(text)


def find_turn(outer: Sequence[Span], moment: datetime) -> str | None:
    """Returns the chat job that ran at that moment, or else the request: the parent of what a turn
    does itself.
    """
    jobs = [
        span
        for span in outer
        if span.name == _CHAT_JOB
        and span.kind == "job"
        and span.started_at <= moment <= span.started_at + _longest(span)
    ]
    parents = jobs or [span for span in outer if span.kind == "request"]
    return parents[0].id if parents else None


def _longest(span: Span) -> timedelta:
    """A job ends in the transaction that stores what it did last, and its duration is rounded."""
    return timedelta(milliseconds=span.duration_ms + 1)


# Loads an area's spans of one correlation id. The tenant is None for all tenants. The last argument
# has the spans of requests and jobs, as possible parents.
SpanSource = Callable[[Tx, str | None, str, Sequence[Span]], Awaitable[list[Span]]]


class AgentDeletion(msgspec.Struct, frozen=True):
    """Agents that are being deleted, in the transaction that deletes them."""

    tx: Tx
    services: Services
    tenant_id: str
    agent_ids: list[str]
    # Jobs that the deletion cancelled; the events about their end are kept.
    cancelled_job_ids: list[str]


class FinishedCall(msgspec.Struct, frozen=True):
    """The end of work that one area did for another, in the transaction that records it.

    The caller passed `caller_id` when it accepted the work. Exactly one of output and error counts:
    the error has a code and a message.
    """

    tx: Tx
    services: Services
    tenant_id: str
    caller_id: str
    output: Any = None
    error: tuple[str, str] | None = None


class EventMessage(msgspec.Struct, frozen=True):
    """A notification of an event, in the transaction that sends it to users. `data` has those of
    the event, without long ones.
    """

    tx: Tx
    services: Services
    tenant_id: str
    data: dict[str, Any]


# Returns the `MailContent` of the mail area for each user, by their ids; users without one get the
# common mail of notifications.
WriteMails = Callable[[EventMessage, Sequence[str]], Awaitable[Mapping[str, Any]]]


class TrainingOutcome(msgspec.Struct, frozen=True):
    """What an agent has read, or could not read, of a document."""

    tenant_id: str
    agent_id: str
    summary: str
    data: dict[str, Any]


class CredentialTarget(msgspec.Struct, frozen=True):
    """An integration that is to use a credential, in the transaction that allows it."""

    tx: Tx
    services: Services
    credential_id: str
    type: str
    id: str


class ExecutionLoad(msgspec.Struct, frozen=True):
    """How many workflow executions of a tenant started within the last minute, and how many run."""

    started: int = 0
    running: int = 0


class PeriodicTask(msgspec.Struct, frozen=True):
    """A task that every worker runs periodically. Several workers may run it at once. One that
    returns True has more to do, and runs again within a second.
    """

    every_seconds: float
    run: Callable[[Services], Awaitable[object]]


class CourierOptions(msgspec.Struct, frozen=True):
    """How a courier runs work of one kind, which has a lane for each endpoint."""

    # Loads what the jobs need, by the `ref_id` of their work.
    load: Callable[[Tx, list[str]], Awaitable[Mapping[str, Any]]]
    # How many run at a time in one process.
    total: int
    per_tenant: int
    per_lane: int
    # Returns how many of its lane may run at a time, by what was loaded for one of them.
    read_lane_limit: Callable[[Any], int] | None = None


class AreaJob(msgspec.Struct, frozen=True):
    """The function that runs one kind of work."""

    kind: WorkKind
    run: JobFunction
    # What it does, in plain words.
    title: str
    # Called in the transaction that gives the work up, with the error.
    on_dead: OnDead | None = None
    # Called in the transaction that retries dead work: restores the record that `on_dead` changed.
    # Returns False when nothing waits for the work any more.
    on_retry: OnRetry | None = None
    # What to do with a dead row that cannot be retried.
    instead: str | None = None
    # For a kind whose due rows are claimed in bulk.
    courier: CourierOptions | None = None

    @property
    def can_retry(self) -> bool:
        return self.on_dead is None or self.on_retry is not None


class Area(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    events: tuple[type[Event], ...] = ()
    permissions: tuple[Permission, ...] = ()
    jobs: tuple[AreaJob, ...] = ()
    retention: tuple[RetentionRule, ...] = ()
    periodic_tasks: tuple[PeriodicTask, ...] = ()
    spans: SpanSource | None = None
    # All that a caller must be allowed to see input, output and error of these spans.
    span_permissions: tuple[str, ...] = ()
    # Objects that each process shares; `Services.get` returns them by class.
    shared: Callable[[Services], Iterable[object]] = lambda _services: ()
    # All its tables, and whether their rows count toward the storage quota.
    tables: tuple[TableQuota, ...] = ()
    # Tables with a tenant_id but no foreign key; their rows are deleted with the tenant.
    tenant_tables: tuple[str, ...] = ()
    # For work to lock before the agents. Called before they are locked, and again afterwards, when
    # no more work can be added; it must do nothing the second time if nothing was added.
    before_agents_deleted: Callable[[AgentDeletion], Awaitable[None]] | None = None
    after_agents_deleted: Callable[[AgentDeletion], Awaitable[None]] | None = None
    # Receives the ids of the tenant and the webhook.
    on_webhook_disabled: Callable[[Tx, str, str], Awaitable[None]] | None = None
    # By the prefix of the ids of its callers, so that an area reads only the ends of its own calls.
    on_call_finished: tuple[str, Callable[[FinishedCall], Awaitable[None]]] | None = None
    # By the type of the event that a notification is about.
    mails: Mapping[str, WriteMails] = {}
    # Called in the transaction that records the end of the training.
    on_training: Callable[[Tx, TrainingOutcome], Awaitable[None]] | None = None
    # Returns the hosts to which the integration would send the credential, as far as it has any.
    credential_hosts: Callable[[CredentialTarget], Awaitable[list[str]]] | None = None
    # Receives the id of the tenant; for the area that runs workflows.
    execution_load: Callable[[Tx, str], Awaitable[ExecutionLoad]] | None = None


# Categories of the event catalogue, in the order in which they are listed.
CATEGORIES: Final = {
    "agent": "Agents and conversations with them",
    "workflow": "Workflows and their executions",
    "form": "Forms and submissions",
    "approval": "Decisions that people are asked for",
    "data_table": "Data tables and their rows",
    "system": "Users, tools, credentials, webhooks, documents, files and this instance itself",
}


class Areas:
    """All areas of this instance, and lookups over their declarations."""

    def __init__(self, areas: Sequence[Area]) -> None:
        self._areas = tuple(areas)

    def __iter__(self) -> Iterator[Area]:
        return iter(self._areas)

    @cached_property
    def event_types(self) -> dict[str, type[Event]]:
        return {event.type: event for area in self._areas for event in area.events}

    @cached_property
    def permissions(self) -> tuple[Permission, ...]:
        return tuple(permission for area in self._areas for permission in area.permissions)

    @cached_property
    def permission_keys(self) -> frozenset[str]:
        return frozenset(permission.key for permission in self.permissions)

    @cached_property
    def default_grants(self) -> dict[str, frozenset[str]]:
        return {
            role: frozenset(item.key for item in self.permissions if item.is_granted_to(role))
            for role in ROLES
        }

    @cached_property
    def jobs(self) -> dict[str, AreaJob]:
        """By the name of their kind of work."""
        return {job.kind.name: job for area in self._areas for job in area.jobs}

    @cached_property
    def work_kinds(self) -> dict[str, WorkKind]:
        return {name: job.kind for name, job in self.jobs.items()}

    @cached_property
    def retention(self) -> tuple[RetentionRule, ...]:
        return tuple(rule for area in self._areas for rule in area.retention)

    @cached_property
    def periodic_tasks(self) -> tuple[PeriodicTask, ...]:
        return tuple(task for area in self._areas for task in area.periodic_tasks)

    @cached_property
    def span_sources(self) -> tuple[tuple[SpanSource, tuple[str, ...]], ...]:
        """Each with the permissions for what its spans contain."""
        return tuple(
            (area.spans, area.span_permissions) for area in self._areas if area.spans is not None
        )

    @cached_property
    def tenant_tables(self) -> tuple[str, ...]:
        return tuple(table for area in self._areas for table in area.tenant_tables)

    async def before_agents_deleted(self, deletion: AgentDeletion) -> None:
        for area in self._areas:
            if area.before_agents_deleted is not None:
                await area.before_agents_deleted(deletion)

    async def after_agents_deleted(self, deletion: AgentDeletion) -> None:
        for area in self._areas:
            if area.after_agents_deleted is not None:
                await area.after_agents_deleted(deletion)

    @cached_property
    def _call_listeners(self) -> dict[str, Callable[[FinishedCall], Awaitable[None]]]:
        return dict(area.on_call_finished for area in self._areas if area.on_call_finished)

    async def on_call_finished(self, call: FinishedCall) -> None:
        """Tells the area of the caller. A caller without an area waits for the result itself."""
        listener = self._call_listeners.get(call.caller_id.partition("_")[0])
        if listener is not None:
            await listener(call)

    @cached_property
    def mail_writers(self) -> dict[str, WriteMails]:
        """By the type of the event."""
        return {name: write for area in self._areas for name, write in area.mails.items()}

    async def on_training(self, tx: Tx, outcome: TrainingOutcome) -> None:
        for area in self._areas:
            if area.on_training is not None:
                await area.on_training(tx, outcome)

    async def load_executions(self, tx: Tx, tenant_id: str) -> ExecutionLoad:
        for area in self._areas:
            if area.execution_load is not None:
                return await area.execution_load(tx, tenant_id)
        return ExecutionLoad()

    async def list_credential_hosts(self, target: CredentialTarget) -> list[str]:
        return [
            host
            for area in self._areas
            if area.credential_hosts is not None
            for host in await area.credential_hosts(target)
        ]

    async def on_webhook_disabled(self, tx: Tx, tenant_id: str, webhook_id: str) -> None:
        for area in self._areas:
            if area.on_webhook_disabled is not None:
                await area.on_webhook_disabled(tx, tenant_id, webhook_id)
