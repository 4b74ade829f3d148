from datetime import datetime

from sqlalchemy import BigInteger, Index, func
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, Sealed


class InstanceState(Base):
    """Key-value state of the instance: the version of the role grants, the key check, the time of
    the last clean-up.
    """

    __tablename__ = "instance_state"

    key: Mapped[str] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    value: Mapped[str | None]


class IdempotencyKey(Base):
    """The first response to a POST with an Idempotency-Key, stored for 24 hours."""

    __tablename__ = "idempotency_keys"
    __table_args__ = (Index("ix_idempotency_keys_created_at", "created_at"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    fingerprint: Mapped[str]
    status: Mapped[int | None]
    media_type: Mapped[str | None]
    body: Mapped[bytes | None] = mapped_column(Sealed)
    # The lease of a long-running request, and when it was last renewed.
    holder: Mapped[str | None]
    renewed_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class FailureCount(Base):
    """Failures of one account or address under one rule; the id is a hash of both."""

    __tablename__ = "attempts"
    __table_args__ = (Index("ix_attempts_since", "since"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    failures: Mapped[int] = mapped_column(server_default="0")
    since: Mapped[datetime]
    blocked_until: Mapped[datetime | None]
