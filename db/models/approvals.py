from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, String, func, text
from sqlalchemy.dialects.postgresql import ARRAY, JSON, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from db.base import Base, HasId, TenantOwned


class Approval(TenantOwned, HasId, Base):
    """A decision that users or a role are asked for, on behalf of `caller_id` of another area."""

    __tablename__ = "approvals"
    __table_args__ = (
        Index("ix_approvals_status", "tenant_id", "status", "created_at", "id"),
        Index("ix_approvals_workflow_execution_id", "workflow_execution_id", "created_at", "id"),
        Index(
            "ix_approvals_pending",
            "tenant_id",
            "caller_id",
            postgresql_where=text("status = 'pending'"),
        ),
        Index("ix_approvals_decided_at", "decided_at"),
    )

    caller_id: Mapped[str]
    # No foreign keys: an approval outlives its workflow execution and its users.
    workflow_execution_id: Mapped[str | None]
    node_id: Mapped[str | None]
    title: Mapped[str]
    message: Mapped[str]
    # What the workflow is called, and what started it.
    origin: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    # Names and values for those who are asked, in the author's order. Secrets are masked.
    details: Mapped[list[dict[str, str]]] = mapped_column(JSONB, default=list, server_default="[]")
    status: Mapped[str] = mapped_column(default="pending", server_default="pending")
    # Either users or a role.
    user_ids: Mapped[list[str] | None] = mapped_column(ARRAY(String))
    role: Mapped[str | None]
    comment: Mapped[str | None]
    decided_by: Mapped[str | None]
    # How: by a request of the API, or by the link of a mail.
    decided_via: Mapped[str | None]
    # Also of those that ended without a decision.
    decided_at: Mapped[datetime | None]
    expires_at: Mapped[datetime | None]
    # The work that ends it at `expires_at`.
    work_id: Mapped[str | None]
    correlation_id: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class ApprovalAssignee(TenantOwned, Base):
    """Whom an approval asks: a user by id, or all users of a role as `<tenant id>:<role>`. Status
    and times are those of the approval, so that one index serves a page of one person's approvals.
    """

    __tablename__ = "approval_assignees"
    __table_args__ = (
        # With the tenant, so that rows are counted without reading the table.
        Index(
            "ix_approval_assignees_status",
            "assignee",
            "status",
            "created_at",
            "approval_id",
            postgresql_include=["tenant_id"],
        ),
    )

    # No foreign key: the row is deleted with its approval.
    tenant_id: Mapped[str] = mapped_column()
    approval_id: Mapped[str] = mapped_column(
        ForeignKey("approvals.id", ondelete="CASCADE"), primary_key=True
    )
    assignee: Mapped[str] = mapped_column(primary_key=True)
    status: Mapped[str] = mapped_column(default="pending", server_default="pending")
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
