from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Identity, Index, func, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, HasId, TenantOwned, Timestamps


class Conversation(TenantOwned, HasId, Timestamps, Base):
    """Belongs to a user, or to a visitor's session under one embed key.

    `turn_holder` is the turn that runs now, until `turn_until` at the latest.
    """

    __tablename__ = "conversations"
    __table_args__ = (
        Index("ix_conversations_agent_id", "tenant_id", "agent_id", "last_message_at", "id"),
        Index("ix_conversations_last_message_at", "tenant_id", "last_message_at", "id"),
        Index("ix_conversations_source", "tenant_id", "source", "last_message_at", "id"),
        Index(
            "ix_conversations_of_user",
            "user_id",
            "last_message_at",
            "id",
            postgresql_where=text("user_id IS NOT NULL"),
        ),
        Index(
            "ix_conversations_of_visitor",
            "tenant_id",
            text("(visitor ->> 'id')"),
            "last_message_at",
            "id",
            postgresql_where=text("visitor IS NOT NULL"),
        ),
        Index(
            "ix_conversations_failed",
            "tenant_id",
            "last_message_at",
            "id",
            postgresql_where=text("failed_answers > 0"),
        ),
        Index(
            "ix_conversations_rated",
            "tenant_id",
            "last_message_at",
            "id",
            postgresql_where=text("ratings_up > 0 OR ratings_down > 0"),
        ),
        Index(
            "ix_conversations_embed_key_id",
            "embed_key_id",
            postgresql_where=text("embed_key_id IS NOT NULL"),
        ),
        Index(
            "ix_conversations_customer",
            "embed_key_id",
            text("(visitor ->> 'id')"),
            "last_message_at",
            postgresql_where=text("visitor IS NOT NULL"),
        ),
        Index(
            "ix_conversations_idle", "last_message_at", postgresql_where=text("ended_at IS NULL")
        ),
        # For deleting the titles with the agent's log.
        Index(
            "ix_conversations_titled",
            "tenant_id",
            "agent_id",
            "created_at",
            postgresql_where=text("title <> ''"),
        ),
    )

    agent_id: Mapped[str] = mapped_column(ForeignKey("agents.id", ondelete="CASCADE"))
    # A user or a service key. A trigger deletes what belongs to a user together with them.
    user_id: Mapped[str | None]
    embed_key_id: Mapped[str | None] = mapped_column(
        ForeignKey("embed_keys.id", ondelete="SET NULL")
    )
    session_id: Mapped[str | None]
    # Who a visitor is, by the token that the customer's server signed: id, name, email.
    visitor: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    source: Mapped[str]
    title: Mapped[str] = mapped_column(default="", server_default="")
    message_count: Mapped[int] = mapped_column(default=0, server_default="0")
    last_message_at: Mapped[datetime] = mapped_column(server_default=func.now())
    ended_at: Mapped[datetime | None]
    turn_holder: Mapped[str | None]
    turn_until: Mapped[datetime | None]
    # Triggers count them, so that every statement that adds or deletes one is counted.
    failed_answers: Mapped[int] = mapped_column(default=0, server_default="0")
    ratings_up: Mapped[int] = mapped_column(default=0, server_default="0")
    ratings_down: Mapped[int] = mapped_column(default=0, server_default="0")


class ConversationRead(TenantOwned, Base):
    """How far a user has read a conversation: `read_at` is the time of its last message at that
    moment. `is_unread` after the user has marked it as unread.
    """

    __tablename__ = "conversation_reads"
    __table_args__ = (
        Index("ix_conversation_reads_agent_id", "tenant_id", "agent_id", "read_at"),
        Index("ix_conversation_reads_conversation_id", "conversation_id"),
        Index(
            "ix_conversation_reads_unread", "user_id", "read_at", postgresql_where=text("is_unread")
        ),
    )

    # A user or a service key, as of a conversation.
    user_id: Mapped[str] = mapped_column(primary_key=True)
    conversation_id: Mapped[str] = mapped_column(
        ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True
    )
    # No foreign key: it is deleted with the conversation.
    agent_id: Mapped[str]
    read_at: Mapped[datetime]
    is_unread: Mapped[bool] = mapped_column(server_default="false")


class ConversationReader(TenantOwned, Base):
    """A user who has listed conversations. Those whose last message is not after `read_until` are
    read, except the ones that have a row of their own.
    """

    __tablename__ = "conversation_readers"
    __table_args__ = (Index("ix_conversation_readers_tenant_id", "tenant_id"),)

    user_id: Mapped[str] = mapped_column(primary_key=True)
    read_until: Mapped[datetime]


class ConversationEntry(TenantOwned, HasId, Base):
    """A message, a tool call, a turn's token usage, or a document that was read: the history and
    the agent's log in one.

    `seq` is the order within a conversation. `logged` follows the agent's log settings at the time
    of writing; a message that is not logged is still part of its conversation.
    """

    __tablename__ = "conversation_entries"
    __table_args__ = (
        Index("ix_conversation_entries_conversation_id", "conversation_id", "seq"),
        Index("ix_conversation_entries_agent_id", "tenant_id", "agent_id", "created_at", "seq"),
    )

    seq: Mapped[int] = mapped_column(BigInteger, Identity(always=False))
    # No foreign keys but the conversation's, which is deleted with agent and tenant: turns would
    # wait for locks on the rows that they share.
    tenant_id: Mapped[str] = mapped_column()
    agent_id: Mapped[str]
    # None for the training of the agent.
    conversation_id: Mapped[str | None] = mapped_column(
        ForeignKey("conversations.id", ondelete="CASCADE")
    )
    type: Mapped[str]
    role: Mapped[str | None]
    content: Mapped[str | None]
    status: Mapped[str] = mapped_column(server_default="complete")
    data: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default="{}")
    logged: Mapped[bool] = mapped_column(server_default="true")
    correlation_id: Mapped[str | None]
    # The answer that took the place of this one; the log still has both.
    replaced_by: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class MessageFeedback(TenantOwned, HasId, Timestamps, Base):
    """How a person rated an answer. `user_id` is None for the visitor of the conversation."""

    __tablename__ = "message_feedback"
    __table_args__ = (
        Index(
            "uq_message_feedback_message_id",
            "message_id",
            "user_id",
            unique=True,
            postgresql_nulls_not_distinct=True,
        ),
        Index("ix_message_feedback_agent_id", "tenant_id", "agent_id", "message_at"),
        Index(
            "ix_message_feedback_user_id", "user_id", postgresql_where=text("user_id IS NOT NULL")
        ),
    )

    # No foreign key: it is deleted with the message.
    agent_id: Mapped[str]
    message_id: Mapped[str] = mapped_column(
        ForeignKey("conversation_entries.id", ondelete="CASCADE")
    )
    # Of the message, which may be deleted first; the conversation counts its ratings.
    conversation_id: Mapped[str | None]
    # When the message was written: both are kept for the same time.
    message_at: Mapped[datetime]
    user_id: Mapped[str | None]
    rating: Mapped[str]
    comment: Mapped[str | None]


class ChatAttachment(TenantOwned, HasId, Base):
    """The text of a file that somebody attaches to a message. It belongs to a user, or to a
    visitor's session under one embed key. It expires, unless a message has it: then it is deleted
    with the conversation.
    """

    __tablename__ = "chat_attachments"
    __table_args__ = (
        Index(
            "ix_chat_attachments_expires_at",
            "expires_at",
            postgresql_where=text("expires_at IS NOT NULL"),
        ),
        Index("ix_chat_attachments_agent_id", "tenant_id", "agent_id", "used_at"),
        Index(
            "ix_chat_attachments_conversation_id",
            "conversation_id",
            postgresql_where=text("conversation_id IS NOT NULL"),
        ),
        Index(
            "ix_chat_attachments_user_id", "user_id", postgresql_where=text("user_id IS NOT NULL")
        ),
    )

    agent_id: Mapped[str] = mapped_column(ForeignKey("agents.id", ondelete="CASCADE"))
    user_id: Mapped[str | None]
    # No foreign key: without its key, nobody can use it, and it expires.
    embed_key_id: Mapped[str | None]
    session_id: Mapped[str | None]
    # The conversation of the last message that has it, and when that message was stored.
    conversation_id: Mapped[str | None] = mapped_column(
        ForeignKey("conversations.id", ondelete="CASCADE")
    )
    used_at: Mapped[datetime | None]
    expires_at: Mapped[datetime | None]
    name: Mapped[str]
    mime_type: Mapped[str]
    size_bytes: Mapped[int]
    content: Mapped[str]
    characters: Mapped[int]
    # Whether the file has more text than the content.
    truncated: Mapped[bool]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class ChatJob(TenantOwned, HasId, Timestamps, Base):
    """One asynchronous turn. `progress` has its rounds of tool calls, each stored before it runs,
    so that a second attempt continues from there.
    """

    __tablename__ = "chat_jobs"
    __table_args__ = (
        Index("ix_chat_jobs_agent_id", "tenant_id", "agent_id", "finished_at"),
        Index("ix_chat_jobs_conversation_id", "conversation_id"),
        Index("ix_chat_jobs_user_id", "user_id"),
    )

    agent_id: Mapped[str] = mapped_column(ForeignKey("agents.id", ondelete="CASCADE"))
    conversation_id: Mapped[str] = mapped_column(ForeignKey("conversations.id", ondelete="CASCADE"))
    user_id: Mapped[str | None]
    work_id: Mapped[str]
    # The area that accepted the job for itself, by the id of what waits for it.
    caller_id: Mapped[str | None]
    # The id of the reply, fixed so that repeated attempts store one reply.
    message_id: Mapped[str]
    status: Mapped[str] = mapped_column(default="pending", server_default="pending")
    context: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    # What only clients of OpenAI's wire formats send.
    client: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    progress: Mapped[list[Any]] = mapped_column(JSONB, default=list, server_default="[]")
    reply: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    error: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    finished_at: Mapped[datetime | None]
