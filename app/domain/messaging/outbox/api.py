"""What other areas may call."""

from .attempts import Attempt, Schedule, Status
from .egress import OutboxEgress, read_body
from .outbox import Fallback, Outbox, OutboxRequest, Outcome
from .queries import LogFilter, OutboxSql, list_newest

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
