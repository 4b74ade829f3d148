from typing import ClassVar

from app.domain.events.event import Event


class WorkDead(Event):
    type: ClassVar[str] = "system.work.dead"
    description: ClassVar[str] = "Accepted work failed at every attempt and was given up"

    work_id: str
    kind: str
    ref_id: str | None
    attempts: int
    error: str
