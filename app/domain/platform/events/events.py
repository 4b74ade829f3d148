from typing import Annotated, Literal

from app.domain.area import Event, example


class WorkDead(Event):
    """Accepted work failed at every attempt and was given up."""

    type = "system.work.dead"

    work_id: Annotated[str, example("wrk_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    kind: Annotated[str, example("mail.send")]
    ref_id: Annotated[str | None, example("mal_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    attempts: Annotated[int, example(7)]
    error: Annotated[str, example("the mail server answered 451")]


class SystemTest(Event):
    """Somebody tries out a webhook or a subscription."""

    type = "system.test"

    note: Annotated[str, example("Sent by hand to see whether it arrives")]


class ChainStopped(Event):
    """Nothing more is done about an event: too many others led to it, or came of its chain.

    Recorded without fan-out, which would continue the chain.
    """

    type = "system.event.chain_stopped"

    event_id: Annotated[str, example("evt_01k9x3m7e8c0v2q4r6t8w0y2a4")]
    event_type: Annotated[str, example("agent.created")]
    depth: Annotated[int, example(9)]
    reason: Annotated[Literal["too_long", "too_wide"], example("too_long")]


class RateLimitExceeded(Event):
    """Requests of the tenant were refused: its plan's limit was reached.

    At most one a minute for each tenant.
    """

    type = "system.rate_limit.exceeded"

    limit: Annotated[int, example(300)]
    window: Annotated[int, example(60)]
    user_id: Annotated[str | None, example("usr_01k9x3m7e8c0v2q4r6t8w0y2a4")]
