from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Index
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, HasId, Sealed, TenantOwned, Timestamps


class MfaDevice(TenantOwned, HasId, Timestamps, Base):
    """An authenticator. Its codes are not accepted before `confirmed_at` is set."""

    __tablename__ = "mfa_devices"
    __table_args__ = (Index("ix_mfa_devices_user_id", "user_id"),)

    user_id: Mapped[str] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    name: Mapped[str]
    secret: Mapped[bytes] = mapped_column(Sealed)
    # The latest time steps whose code was used, so that no code works twice.
    used_steps: Mapped[list[int]] = mapped_column(
        ARRAY(BigInteger), default=list, server_default="{}"
    )
    confirmed_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]


class RecoveryCode(TenantOwned, HasId, Base):
    """One of ten hashed codes. Pending codes become valid when their device is confirmed."""

    __tablename__ = "recovery_codes"
    __table_args__ = (Index("ix_recovery_codes_user_id", "user_id"),)

    user_id: Mapped[str] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    code_hash: Mapped[str]
    is_pending: Mapped[bool] = mapped_column(default=False, server_default="false")
    used_at: Mapped[datetime | None]
