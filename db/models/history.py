from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Index, func
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, HasId, TenantOwned


class HistoryEntry(TenantOwned, HasId, Base):
    """What one transaction did with a record. Its id is in the order of time."""

    __tablename__ = "history_entries"
    __table_args__ = (
        Index("ix_history_entries_record", "tenant_id", "kind", "record_id", "id"),
        Index("ix_history_entries_kind", "tenant_id", "kind", "id"),
        Index("ix_history_entries_created_at", "created_at"),
    )

    # No foreign key: changes of a tenant would wait for locks on its row.
    tenant_id: Mapped[str] = mapped_column()
    kind: Mapped[str]
    # No foreign key: the entry outlives the record.
    record_id: Mapped[str]
    name: Mapped[str | None]
    action: Mapped[str]
    # None for the instance itself.
    actor_id: Mapped[str | None]
    changes: Mapped[list[dict[str, Any]]] = mapped_column(JSON)
    truncated: Mapped[bool] = mapped_column(default=False, server_default="false")
    correlation_id: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
