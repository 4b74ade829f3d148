from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

WorkStatus = Literal["dead", "waiting", "running"]
MAX_RETRIED = 200

_KIND = {"kind": "knowledge.ingest", "title": "Read a document"}
_ID = "wrk_01k9x3m7e8c0v2q4r6t8w0y2a4"
_DOCUMENT = "doc_01k9x3m7e8c0v2q4r6t8w0y2a4"

KindName = Annotated[str, Meta(max_length=64)]


class WorkView(msgspec.Struct, kw_only=True):
    """Work in the background that is not done. `record_id` names what it is for. `dead` work has
    failed for good, `error` says why; that of waiting work is the reason of its last attempt,
    and `run_at` is when the next one is due. `is_stuck` marks work that should have started a
    minute ago, or whose worker has given no sign of life: `last_seen_at` is its last one.
    Without `can_retry`, `instead` says what helps.
    """

    example: ClassVar[dict[str, Any]] = {
        "id": _ID,
        "tenant_id": "ten_01k9x3m7e8c0v2q4r6t8w0y2a4",
        **_KIND,
        "queue": "ingest",
        "status": "dead",
        "is_stuck": False,
        "record_id": _DOCUMENT,
        "error": "unexpected OSError",
        "attempt": 5,
        "max_attempts": 5,
        "correlation_id": "cor_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "can_retry": True,
        "instead": None,
        "created_at": "2026-01-01T12:00:00Z",
        "run_at": "2026-01-01T12:06:12Z",
        "started_at": "2026-01-01T12:06:12Z",
        "last_seen_at": None,
        "finished_at": "2026-01-01T12:06:14Z",
    }

    id: str
    tenant_id: str | None
    kind: str
    title: str
    queue: str
    status: Literal["dead", "waiting", "running"]
    is_stuck: bool
    record_id: str | None
    error: str | None
    attempt: int
    max_attempts: int
    correlation_id: str
    can_retry: bool
    instead: str | None
    created_at: datetime
    run_at: datetime
    started_at: datetime | None
    last_seen_at: datetime | None
    finished_at: datetime | None


class KindLoad(msgspec.Struct, kw_only=True):
    """How much work of a kind is not done. `oldest_waiting_at` is since when the oldest due work
    waits; null when none is due. `scheduled` counts work that is due later.
    """

    example: ClassVar[dict[str, Any]] = {
        **_KIND,
        "waiting": 3,
        "scheduled": 1,
        "running": 2,
        "dead": 1,
        "oldest_waiting_at": "2026-01-01T12:00:00Z",
        "oldest_waiting_seconds": 4.2,
    }

    kind: str
    title: str
    waiting: int
    scheduled: int
    running: int
    dead: int
    oldest_waiting_at: datetime | None
    oldest_waiting_seconds: float


class QueueLoad(msgspec.Struct, kw_only=True):
    """A queue of workers, with the sums of its kinds of work; kinds without work are left out."""

    example: ClassVar[dict[str, Any]] = {
        "queue": "ingest",
        "waiting": 3,
        "scheduled": 1,
        "running": 2,
        "dead": 1,
        "oldest_waiting_at": "2026-01-01T12:00:00Z",
        "oldest_waiting_seconds": 4.2,
        "kinds": [KindLoad.example],
    }

    queue: str
    waiting: int
    scheduled: int
    running: int
    dead: int
    oldest_waiting_at: datetime | None
    oldest_waiting_seconds: float
    kinds: list[KindLoad]


class QueueLoads(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"data": [QueueLoad.example]}

    data: list[QueueLoad]


class RetryWork(msgspec.Struct, forbid_unknown_fields=True):
    """Which dead work is retried: all that matches every field that is set."""

    example: ClassVar[dict[str, Any]] = {"kind": "knowledge.ingest"}

    ids: (
        Annotated[list[Annotated[str, Meta(max_length=64)]], Meta(min_length=1, max_length=100)]
        | UnsetType
    ) = UNSET
    kind: KindName | UnsetType = UNSET
    record_id: Annotated[str, Meta(max_length=200)] | UnsetType = UNSET


class RetriedWork(msgspec.Struct):
    """`retried` waits again. `dismissed` is no longer needed, because its record is gone or was
    processed since. A call retries 200 at most: `has_more` says that there is more that matches.
    """

    example: ClassVar[dict[str, Any]] = {"retried": 12, "dismissed": 1, "has_more": False}

    retried: int
    dismissed: int
    has_more: bool
