from typing import Any, ClassVar, Literal

from app.domain.area import Event


class WorkDead(Event):
    type: ClassVar[str] = "system.work.dead"
    description: ClassVar[str] = "Accepted work failed at every attempt and was given up"
    example: ClassVar[dict[str, Any]] = {
        "work_id": "wrk_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "kind": "mail.send",
        "ref_id": "mal_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "attempts": 7,
        "error": "the mail server answered 451",
    }

    work_id: str
    kind: str
    ref_id: str | None
    attempts: int
    error: str


class SystemTest(Event):
    type: ClassVar[str] = "system.test"
    description: ClassVar[str] = "Somebody tries out a webhook or a subscription"
    example: ClassVar[dict[str, Any]] = {"note": "Sent by hand to see whether it arrives"}

    note: str


class ChainStopped(Event):
    """Recorded without fan-out, which would continue the chain."""

    type: ClassVar[str] = "system.event.chain_stopped"
    description: ClassVar[str] = (
        "Nothing more is done about an event: too many others led to it, or came of its chain"
    )
    example: ClassVar[dict[str, Any]] = {
        "event_id": "evt_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "event_type": "agent.created",
        "depth": 9,
        "reason": "too_long",
    }

    event_id: str
    event_type: str
    depth: int
    reason: Literal["too_long", "too_wide"]


class RateLimitExceeded(Event):
    """At most one a minute for each tenant."""

    type: ClassVar[str] = "system.rate_limit.exceeded"
    description: ClassVar[str] = "Requests of the tenant were refused: its plan's limit was reached"
    example: ClassVar[dict[str, Any]] = {
        "limit": 300,
        "window": 60,
        "user_id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4",
    }

    limit: int
    window: int
    user_id: str | None
