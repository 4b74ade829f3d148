"""The declarative base, and mixins for id, timestamps and tenant."""

from datetime import UTC, datetime
from typing import Final

from sqlalchemy import DateTime, Dialect, ForeignKey, LargeBinary, MetaData, TypeDecorator, func
from sqlalchemy.orm import DeclarativeBase, Mapped, declared_attr, mapped_column

# The names of constraints and indexes in the migrations.
_NAMING_CONVENTION: Final = {
    "ix": "ix_%(column_0_label)s",
    "uq": "uq_%(table_name)s_%(column_0_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


class Base(DeclarativeBase):
    __tablename__: str
    metadata = MetaData(naming_convention=_NAMING_CONVENTION)


class DateTimeUTC(TypeDecorator[datetime]):
    """A time with a time zone. Refuses one without, which asyncpg would read as local time."""

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        del dialect
        if value is not None and value.tzinfo is None:
            raise TypeError("the time has no time zone")
        return value


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
