from datetime import datetime

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, HasId, TenantOwned


class WebSearchConfig(TenantOwned, Base):
    """How an agent searches the web. An agent without a row has the defaults."""

    __tablename__ = "web_search_configs"

    agent_id: Mapped[str] = mapped_column(
        ForeignKey("agents.id", ondelete="CASCADE"), primary_key=True
    )
    enabled: Mapped[bool]
    search_engine: Mapped[str]
    max_results: Mapped[int]
    safe_search: Mapped[bool]


class WebSearch(TenantOwned, HasId, Base):
    """A search that an agent's model asked for, without its query and its results."""

    __tablename__ = "web_searches"
    __table_args__ = (
        Index("ix_web_searches_correlation", "tenant_id", "correlation_id"),
        Index("ix_web_searches_started_at", "started_at"),
    )

    # No foreign key, as in the event log.
    tenant_id: Mapped[str] = mapped_column()
    correlation_id: Mapped[str]
    engine: Mapped[str]
    status: Mapped[str]
    # None when the search failed.
    result_count: Mapped[int | None]
    started_at: Mapped[datetime]
    duration_ms: Mapped[float]
