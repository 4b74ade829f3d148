"""The declarative base, and mixins for id, timestamps and tenant."""

from datetime import UTC, datetime

from advanced_alchemy.base import CommonTableAttributes, create_registry
from advanced_alchemy.types import DateTimeUTC
from sqlalchemy import ForeignKey, LargeBinary, func
from sqlalchemy.orm import DeclarativeBase, Mapped, declared_attr, mapped_column


class Base(CommonTableAttributes, DeclarativeBase):
    __abstract__ = True
    registry = create_registry()


class Sealed(LargeBinary):
    """A column for values sealed by `app.kit.crypto`; key rotation finds it by this type."""

    cache_ok = True


def _now() -> datetime:
    return datetime.now(UTC)


class HasId:
    id: Mapped[str] = mapped_column(primary_key=True)


class Timestamps:
    created_at: Mapped[datetime] = mapped_column(
        DateTimeUTC(timezone=True), default=_now, server_default=func.now()
    )
    updated_at: Mapped[datetime] = mapped_column(
        DateTimeUTC(timezone=True), default=_now, onupdate=_now, server_default=func.now()
    )


class TenantOwned:
    """Rows of one tenant. The session adds the tenant condition to every ORM statement on them."""

    @declared_attr
    def tenant_id(cls) -> Mapped[str]:  # noqa: N805  # a declared attribute receives the class
        return mapped_column(ForeignKey("tenants.id", ondelete="CASCADE"))
