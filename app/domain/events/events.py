from typing import ClassVar, Literal

from app.domain.events.event import Event


class WorkDead(Event):
    type: ClassVar[str] = "system.work.dead"
    description: ClassVar[str] = "Accepted work failed at every attempt and was given up"

    work_id: str
    kind: str
    ref_id: str | None
    attempts: int
    error: str


class TriedOut(Event):
    type: ClassVar[str] = "system.test"
    description: ClassVar[str] = "Somebody tries out a webhook or a subscription"

    note: str


class ChainStopped(Event):
    """Recorded only: nobody is told of it, or it would be one more cause."""

    type: ClassVar[str] = "system.event.chain_stopped"
    description: ClassVar[str] = (
        "Nothing more is done about an event: too many others led to it, or came of its chain"
    )

    event_id: str
    event_type: str
    depth: int
    reason: Literal["too_long", "too_wide"]


class RateLimitExceeded(Event):
    """At most one a minute for each tenant."""

    type: ClassVar[str] = "system.rate_limit.exceeded"
    description: ClassVar[str] = "Requests of the tenant were refused: its plan's limit was reached"

    limit: int
    window: int
    user_id: str | None
