from datetime import datetime

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, HasId, Sealed, TenantOwned, Timestamps


class MailMessage(TenantOwned, HasId, Timestamps, Base):
    """A queued mail. Its text may contain a token, so it is sealed. Text and subject are deleted
    once it is sent.
    """

    __tablename__ = "mail_messages"
    __table_args__ = (Index("ix_mail_messages_created_at", "created_at"),)

    recipient: Mapped[str]
    subject: Mapped[str]
    body: Mapped[bytes | None] = mapped_column(Sealed)
    sent_at: Mapped[datetime | None]
