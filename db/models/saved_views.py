from typing import Any

from sqlalchemy import Index
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, HasId, TenantOwned, Timestamps


class SavedView(TenantOwned, HasId, Timestamps, Base):
    """The filters of a list under a name. A trigger deletes those of a user that are not shared
    together with the user.
    """

    __tablename__ = "saved_views"
    __table_args__ = (
        Index("ix_saved_views_tenant_id", "tenant_id"),
        Index("ix_saved_views_user_id", "user_id"),
    )

    # The owner: a user or a service key.
    user_id: Mapped[str]
    kind: Mapped[str]
    name: Mapped[str]
    filters: Mapped[dict[str, Any]] = mapped_column(JSONB)
    is_shared: Mapped[bool]
