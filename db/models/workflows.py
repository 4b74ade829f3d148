from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, UniqueConstraint, func, text
from sqlalchemy.dialects.postgresql import ARRAY, JSON, JSONB
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.types import String

from db.base import Base, HasId, TenantOwned, Timestamps


class Workflow(TenantOwned, HasId, Timestamps, Base):
    """A workflow. Its definition is in its versions: `version` is the newest one, and triggers
    start `published_version`.
    """

    __tablename__ = "workflows"
    __table_args__ = (
        Index("ix_workflows_tenant_id_created_at", "tenant_id", "created_at", "id"),
        Index(
            "ix_workflows_next_run_at",
            "next_run_at",
            postgresql_where=text("next_run_at IS NOT NULL"),
        ),
        Index(
            "ix_workflows_deleted_at",
            "deleted_at",
            postgresql_where=text("deleted_at IS NOT NULL"),
        ),
    )

    name: Mapped[str]
    description: Mapped[str] = mapped_column(default="", server_default="")
    status: Mapped[str] = mapped_column(default="draft", server_default="draft")
    version: Mapped[int] = mapped_column(default=1, server_default="1")
    published_version: Mapped[int | None]
    # A schedule, as cron and timezone.
    trigger: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    # When the schedule starts it next; None unless it is published.
    next_run_at: Mapped[datetime | None]
    # No foreign key: the workflow outlives the user.
    created_by: Mapped[str | None]
    # A deleted workflow is hidden; it is kept until its executions are deleted in batches.
    deleted_at: Mapped[datetime | None]


class WorkflowVersion(TenantOwned, HasId, Base):
    """Nodes and edges at one time. It never changes: executions keep the version that they started
    with.
    """

    __tablename__ = "workflow_versions"
    __table_args__ = (
        UniqueConstraint("workflow_id", "version", name="uq_workflow_versions_workflow_id_version"),
    )

    # No foreign key: the row is deleted with its workflow.
    tenant_id: Mapped[str] = mapped_column()
    workflow_id: Mapped[str] = mapped_column(ForeignKey("workflows.id", ondelete="CASCADE"))
    version: Mapped[int]
    # The order of keys is the author's.
    definition: Mapped[dict[str, Any]] = mapped_column(JSON)
    created_by: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class WorkflowExecution(TenantOwned, HasId, Base):
    """One run of a version. `progress` has the status and the branch of each node: whoever changes
    it holds a lock on the row, so that it is never out of date, unlike the rows of the nodes.
    """

    __tablename__ = "workflow_executions"
    __table_args__ = (
        UniqueConstraint(
            "tenant_id", "dedupe_key", name="uq_workflow_executions_tenant_id_dedupe_key"
        ),
        # Lists: of a tenant or of a workflow, by status, in the order of one of two times.
        Index(
            "ix_workflow_executions_tenant_id_created_at",
            "tenant_id",
            "status",
            "created_at",
            "id",
        ),
        Index(
            "ix_workflow_executions_tenant_id_finished_at",
            "tenant_id",
            "status",
            "finished_at",
            "id",
            postgresql_where=text("finished_at IS NOT NULL"),
        ),
        Index(
            "ix_workflow_executions_workflow_id_created_at",
            "workflow_id",
            "tenant_id",
            "status",
            "created_at",
            "id",
        ),
        Index(
            "ix_workflow_executions_workflow_id_finished_at",
            "workflow_id",
            "tenant_id",
            "status",
            "finished_at",
            "id",
            postgresql_where=text("finished_at IS NOT NULL"),
        ),
        Index("ix_workflow_executions_correlation_id", "tenant_id", "correlation_id"),
        Index("ix_workflow_executions_started_at", "tenant_id", "started_at"),
        Index("ix_workflow_executions_ended", "tenant_id", "finished_at"),
        # Those that run, and those that wait to be started, in their order.
        Index(
            "ix_workflow_executions_active",
            "tenant_id",
            "status",
            text("depth DESC"),
            "id",
            postgresql_where=text("status IN ('pending', 'running', 'waiting')"),
        ),
    )

    # No foreign key: the row is deleted with its workflow.
    tenant_id: Mapped[str] = mapped_column()
    workflow_id: Mapped[str] = mapped_column(ForeignKey("workflows.id", ondelete="CASCADE"))
    version: Mapped[int]
    status: Mapped[str] = mapped_column(default="pending", server_default="pending")
    progress: Mapped[dict[str, Any]] = mapped_column(JSONB, default=dict, server_default="{}")
    # What the inputs and outputs of its nodes take.
    stored_bytes: Mapped[int] = mapped_column(default=0, server_default="0")
    input: Mapped[dict[str, Any]] = mapped_column(JSON)
    output: Mapped[Any | None] = mapped_column(JSON(none_as_null=True))
    error: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    # What started it: manual, schedule, event, webhook, form or workflow, and its id.
    trigger_type: Mapped[str]
    trigger_id: Mapped[str | None]
    started_by: Mapped[str | None]
    # The attempt of a node that waits for this execution.
    caller_id: Mapped[str | None]
    # How many workflows called each other before this one.
    depth: Mapped[int] = mapped_column(default=0, server_default="0")
    # The same event, payload or scheduled time starts a workflow once.
    dedupe_key: Mapped[str | None]
    correlation_id: Mapped[str]
    # The event that caused it, and from the start on the event about its start.
    cause_event_id: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


class WorkflowNode(TenantOwned, HasId, Base):
    """One node of an execution."""

    __tablename__ = "workflow_nodes"
    __table_args__ = (
        UniqueConstraint("execution_id", "node_id", name="uq_workflow_nodes_execution_id_node_id"),
    )

    # No foreign key: the row is deleted with its execution.
    tenant_id: Mapped[str] = mapped_column()
    execution_id: Mapped[str] = mapped_column(
        ForeignKey("workflow_executions.id", ondelete="CASCADE")
    )
    node_id: Mapped[str]
    type: Mapped[str]
    position: Mapped[int]
    # The nodes whose outputs its config may read.
    reads: Mapped[list[str]] = mapped_column(ARRAY(String), server_default="{}")
    status: Mapped[str] = mapped_column(default="pending", server_default="pending")
    attempt: Mapped[int] = mapped_column(default=0, server_default="0")
    input: Mapped[Any | None] = mapped_column(JSON(none_as_null=True))
    output: Mapped[Any | None] = mapped_column(JSON(none_as_null=True))
    error: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    # What it waits for: a chat job, a run of a tool, an approval or another execution.
    ref_id: Mapped[str | None]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
