from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, String, func, text
from sqlalchemy.dialects.postgresql import ARRAY, JSON
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, HasId, TenantOwned


def _form_id() -> Any:
    return mapped_column(ForeignKey("forms.id", ondelete="CASCADE"))


class FormConversation(TenantOwned, HasId, Base):
    """A form that is filled in by chat. Its id is secret. Once expired, it is kept without its
    content, for analytics.
    """

    __tablename__ = "form_conversations"
    __table_args__ = (
        Index("ix_form_conversations_tenant_id", "tenant_id"),
        Index("ix_form_conversations_form_id", "form_id", "status", "current_field"),
        Index("ix_form_conversations_status", "status", "updated_at"),
        Index(
            "ix_form_conversations_expires_at",
            "expires_at",
            postgresql_where=text("expires_at IS NOT NULL"),
        ),
    )

    form_id: Mapped[str] = _form_id()
    version: Mapped[int]
    # active, completed, abandoned
    status: Mapped[str] = mapped_column(default="active", server_default="active")
    data: Mapped[dict[str, Any]] = mapped_column(JSON, default=dict)
    # The ids of optional fields that the visitor skipped, and of texts that were said.
    skipped: Mapped[list[str]] = mapped_column(ARRAY(String), server_default="{}")
    # The field that was asked for last.
    current_field: Mapped[str | None]
    # How many messages of the visitor were answered. A message for an older turn is refused.
    turn: Mapped[int] = mapped_column(default=0, server_default="0")
    submission_id: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now())
    # The code of the language that it is held in.
    language: Mapped[str] = mapped_column(default="en", server_default="en")
    # Null once its content is deleted.
    expires_at: Mapped[datetime | None]


class FormMessage(TenantOwned, HasId, Base):
    __tablename__ = "form_messages"
    __table_args__ = (
        Index("ix_form_messages_tenant_id", "tenant_id"),
        Index("ix_form_messages_conversation_id", "conversation_id", "position"),
    )

    conversation_id: Mapped[str] = mapped_column(
        ForeignKey("form_conversations.id", ondelete="CASCADE")
    )
    position: Mapped[int]
    role: Mapped[str]
    content: Mapped[str]
    field_id: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
