from typing import Annotated

from app.domain.area import Event, example


class _WorkEvent(Event):
    work_ids: Annotated[list[str], example(["wrk_01k9x3m7e8c0v2q4r6t8w0y2a4"])]
    kinds: Annotated[list[str], example(["mail.send"])]


class WorkRetried(_WorkEvent):
    """Somebody had work that failed for good run again."""

    type = "system.work.retried"


class WorkDismissed(_WorkEvent):
    """Somebody took work that failed for good off the list."""

    type = "system.work.dismissed"
