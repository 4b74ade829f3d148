from datetime import datetime

from sqlalchemy import Index, UniqueConstraint, func, text
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, HasId


class Work(HasId, Base):
    """The ledger: accepted work, its lease and its outcome. Ids only, never content or secrets."""

    __tablename__ = "work"
    __table_args__ = (
        UniqueConstraint("kind", "dedupe_key", name="uq_work_kind_dedupe_key"),
        Index(
            "ix_work_pending",
            "kind",
            "dispatched_at",
            "run_at",
            postgresql_where=text("state = 'pending' AND lane IS NULL"),
        ),
        Index(
            "ix_work_pending_in_lane",
            "kind",
            "run_at",
            postgresql_where=text("state = 'pending' AND lane IS NOT NULL"),
        ),
        Index("ix_work_leased", "lease_until", postgresql_where=text("state = 'leased'")),
        Index("ix_work_lease_token", "lease_token", postgresql_where=text("state = 'leased'")),
        Index(
            "ix_work_finished",
            "finished_at",
            postgresql_where=text("state IN ('done', 'dead', 'cancelled')"),
        ),
        # Finds the unfinished work among many rows with one correlation id.
        Index("ix_work_correlation_id", "correlation_id", "finished_at"),
        Index("ix_work_ref_id", "ref_id"),
        Index(
            "ix_work_cause_event_id",
            "cause_event_id",
            postgresql_where=text("cause_event_id IS NOT NULL AND state IN ('pending', 'leased')"),
        ),
        # Lists the work of a tenant that is not done.
        Index(
            "ix_work_not_done",
            "tenant_id",
            "state",
            "created_at",
            postgresql_where=text("state IN ('pending', 'leased', 'dead')"),
        ),
        # Lists that of all tenants.
        Index("ix_work_dead", "created_at", postgresql_where=text("state = 'dead'")),
        Index(
            "ix_work_lane",
            "kind",
            "lane",
            "run_at",
            postgresql_where=text("lane IS NOT NULL AND state IN ('pending', 'leased')"),
        ),
    )

    tenant_id: Mapped[str | None]
    kind: Mapped[str]
    ref_id: Mapped[str | None]
    dedupe_key: Mapped[str | None]
    # Only a limited number of rows of one kind and lane run at a time.
    lane: Mapped[str | None]
    state: Mapped[str] = mapped_column(server_default="pending")
    run_at: Mapped[datetime] = mapped_column(server_default=func.now())
    attempt: Mapped[int] = mapped_column(server_default="0")
    max_attempts: Mapped[int]
    lease_token: Mapped[str | None]
    lease_until: Mapped[datetime | None]
    dispatched_at: Mapped[datetime | None]
    dispatch_no: Mapped[int] = mapped_column(server_default="0")
    last_error: Mapped[str | None]
    correlation_id: Mapped[str]
    cause_event_id: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
