from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base


class RoleGrant(Base):
    """Which permission a role has. Seeded from the defaults in code, then owned by super_admin."""

    __tablename__ = "role_grants"

    role: Mapped[str] = mapped_column(primary_key=True)
    permission: Mapped[str] = mapped_column(primary_key=True)
