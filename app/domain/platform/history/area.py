from typing import Final

from app.domain.area import Area
from db.retention import RetentionRule
from db.storage_quota import CountedTable

from .service import HistoryRecorder

AREA: Final = Area(
    name="history",
    shared=lambda services: (HistoryRecorder(services.db),),
    retention=(
        RetentionRule(
            "history_entries",
            "t.created_at < now() - interval '400 days'",
            order_by="t.created_at",
        ),
    ),
    tenant_tables=("history_entries",),
    tables=(CountedTable("history_entries", "history", "octet_length(t.changes::text)"),),
)
