"""What other areas may call."""

from app.domain.messaging.outbox.attempts import Attempt, Schedule, Status
from app.domain.messaging.outbox.egress import OutboxEgress, read_body
from app.domain.messaging.outbox.outbox import Fallback, Outbox, OutboxRequest, Outcome
from app.domain.messaging.outbox.queries import LogFilter, OutboxSql, list_newest

__all__ = [
    "Attempt",
    "Fallback",
    "LogFilter",
    "Outbox",
    "OutboxEgress",
    "OutboxRequest",
    "OutboxSql",
    "Outcome",
    "Schedule",
    "Status",
    "list_newest",
    "read_body",
]
