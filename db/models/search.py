from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, TenantOwned


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
