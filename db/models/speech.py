from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, func
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, HasId, TenantOwned


class SpeechJob(TenantOwned, HasId, Base):
    """A recording to transcribe, or a text to speak, while a request waits for it. The request
    deletes it in the end. `input_key` and `output_key` are files; `details` is what the answer has
    besides its text. Without an agent, it is a caller's own.
    """

    __tablename__ = "speech_jobs"
    __table_args__ = (
        Index("ix_speech_jobs_tenant_id", "tenant_id"),
        Index("ix_speech_jobs_agent_id", "agent_id"),
        Index("ix_speech_jobs_created_at", "created_at"),
    )

    agent_id: Mapped[str | None] = mapped_column(ForeignKey("agents.id", ondelete="CASCADE"))
    work_id: Mapped[str]
    kind: Mapped[str]
    # The model that the request chose; the settings of a worker may be others.
    model: Mapped[str]
    status: Mapped[str] = mapped_column(default="pending", server_default="pending")
    input_key: Mapped[str | None]
    text: Mapped[str | None]
    voice: Mapped[str | None]
    options: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    # Of the spoken text.
    format: Mapped[str | None]
    transcript: Mapped[str | None]
    details: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    output_key: Mapped[str | None]
    error: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    finished_at: Mapped[datetime | None]
