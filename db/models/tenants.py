from typing import Any

from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, HasId, Timestamps


class Tenant(HasId, Timestamps, Base):
    __tablename__ = "tenants"

    name: Mapped[str]
    plan: Mapped[str]
    limits: Mapped[dict[str, Any]] = mapped_column(JSONB, default=dict, server_default="{}")
