from typing import Final

from app.domain import retention_queries
from app.domain.area import AgentDeletion, Area, AreaJob, PeriodicTask
from app.domain.platform.events import api as events
from app.security.permissions import DEVELOPERS, Permission
from db.retention import CASCADE_BATCH, RetentionRule
from db.storage_quota import CountedTable, UncountedTable

from . import chat_jobs, conversations, jobs, training_queries
from .chat_jobs import CHAT_TURN, REPORT_CANCELLED
from .events import ChatCompleted, ChatFailed, ChatMessage, ChatRated, ChatStarted

# Messages are kept for as long as the agent's log settings say, and no longer than the plan.
_AGENTS = retention_queries.AGENTS
_OF_AGENT = "t.tenant_id = a.tenant_id AND t.agent_id = a.id"
_EXPIRED_BEFORE = "now() - a.retention_days * interval '1 day'"
_HAS_NO_UNFINISHED_JOB = """NOT EXISTS (
    SELECT 1 FROM chat_jobs j
    WHERE j.conversation_id = t.conversation_id AND j.status IN ('pending', 'running')
)"""
_HAS_NO_FEEDBACK = "NOT EXISTS (SELECT 1 FROM message_feedback f WHERE f.message_id = t.id)"
# Their own rules delete entries, jobs, attachments and reads before, in batches.
_IS_EMPTY = """NOT EXISTS (SELECT 1 FROM conversation_entries e WHERE e.conversation_id = t.id)
AND NOT EXISTS (SELECT 1 FROM chat_jobs j WHERE j.conversation_id = t.id)
AND NOT EXISTS (SELECT 1 FROM chat_attachments f WHERE f.conversation_id = t.id)
AND NOT EXISTS (SELECT 1 FROM conversation_reads r WHERE r.conversation_id = t.id)"""


async def _cancel_jobs(deletion: AgentDeletion) -> None:
    ids = (deletion.tenant_id, deletion.agent_ids)
    cancelled = await chat_jobs.cancel_all(deletion.tx, deletion.services, *ids)
    deletion.cancelled_job_ids.extend(cancelled)


async def _delete_log(deletion: AgentDeletion) -> None:
    """Deletes the log of the agents' training and the events of their conversations. Events about
    jobs that the deletion cancelled stay, to be delivered.
    """
    ids = (deletion.tenant_id, deletion.agent_ids, deletion.cancelled_job_ids)
    await events.delete_agent_chat_events(deletion.tx, *ids)
    await training_queries.delete(deletion.tx, deletion.tenant_id, deletion.agent_ids)


AREA: Final = Area(
    name="chat",
    on_training=conversations.log_training,
    events=(ChatStarted, ChatMessage, ChatFailed, ChatCompleted, ChatRated),
    permissions=(
        Permission("conversations:read", "Read other people's conversations", DEVELOPERS),
        Permission(
            "conversations:write", "End and delete other people's conversations", DEVELOPERS
        ),
    ),
    jobs=(
        AreaJob(
            CHAT_TURN,
            jobs.run_turn,
            "Answer a message",
            on_dead=jobs.on_dead_turn,
            instead="Ask the question again",
        ),
        AreaJob(REPORT_CANCELLED, jobs.report_cancelled, "End calls of a deleted agent"),
    ),
    retention=(
        RetentionRule(
            "chat_jobs",
            f"{_OF_AGENT}"
            " AND t.finished_at < now() - least(a.retention_days, 30) * interval '1 day'",
            order_by="t.finished_at",
            per=_AGENTS,
        ),
        RetentionRule(
            "message_feedback",
            f"{_OF_AGENT} AND t.message_at < {_EXPIRED_BEFORE}",
            order_by="t.message_at",
            per=_AGENTS,
        ),
        # Nobody has sent them.
        RetentionRule("chat_attachments", "t.expires_at < now()", order_by="t.expires_at"),
        RetentionRule(
            "chat_attachments",
            f"{_OF_AGENT} AND t.used_at < {_EXPIRED_BEFORE}",
            order_by="t.used_at",
            per=_AGENTS,
        ),
        RetentionRule(
            "conversation_entries",
            f"{_OF_AGENT} AND t.created_at < {_EXPIRED_BEFORE} AND {_HAS_NO_UNFINISHED_JOB}"
            f" AND {_HAS_NO_FEEDBACK}",
            order_by="t.created_at",
            per=_AGENTS,
        ),
        # The time of a message at most, so that no row outlives what its conversation has.
        RetentionRule(
            "conversation_reads",
            f"{_OF_AGENT} AND t.read_at < {_EXPIRED_BEFORE}",
            order_by="t.read_at",
            per=_AGENTS,
        ),
        RetentionRule(
            "conversations",
            f"{_OF_AGENT} AND t.last_message_at < {_EXPIRED_BEFORE}"
            f" AND (t.turn_until IS NULL OR t.turn_until < now()) AND {_IS_EMPTY}",
            order_by="t.last_message_at",
            per=_AGENTS,
        ),
        RetentionRule(
            "event_log",
            f"{events.CHAT_EVENTS} AND t.data->>'agent_id' = a.id AND t.tenant_id = a.tenant_id"
            f" AND t.created_at < {_EXPIRED_BEFORE} AND {events.IS_SETTLED}",
            order_by="t.created_at",
            per=_AGENTS,
            batch=CASCADE_BATCH,
        ),
        RetentionRule(
            "conversations",
            f"{_OF_AGENT} AND t.title <> '' AND t.created_at < {_EXPIRED_BEFORE}",
            order_by="t.created_at",
            per=_AGENTS,
            clears="title = ''",
        ),
    ),
    periodic_tasks=(PeriodicTask(30.0, conversations.end_idle),),
    before_agents_deleted=_cancel_jobs,
    tenant_tables=("conversation_entries",),
    after_agents_deleted=_delete_log,
    tables=(
        CountedTable(
            "conversation_entries",
            "conversations",
            "coalesce(octet_length(t.content), 0) + octet_length(t.data::text)",
            changes="OLD.content IS DISTINCT FROM NEW.content"
            " OR OLD.data IS DISTINCT FROM NEW.data",
        ),
        CountedTable(
            "chat_jobs",
            "conversations",
            "octet_length(t.progress::text) + coalesce(octet_length(t.reply::text), 0)"
            " + coalesce(octet_length(t.context::text), 0)"
            " + coalesce(octet_length(t.client::text), 0)",
            from_end=True,
        ),
        CountedTable(
            "message_feedback",
            "conversations",
            "coalesce(octet_length(t.comment), 0)",
            changes="OLD.comment IS DISTINCT FROM NEW.comment",
        ),
        CountedTable(
            "chat_attachments",
            "conversations",
            "octet_length(t.name) + octet_length(t.content)",
        ),
        UncountedTable("conversations", "small; the entries count"),
        UncountedTable("conversation_reads", "small, one per user and conversation"),
        UncountedTable("conversation_readers", "small, one per user"),
    ),
)
