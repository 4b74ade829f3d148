from typing import Final

from app.domain.area import Area, PeriodicTask
from db.retention import RetentionRule
from db.storage_quota import CountedTable

from . import conversations

_EXPIRED_CONVERSATIONS = """
(SELECT id FROM form_conversations WHERE expires_at < now() ORDER BY expires_at LIMIT 100) c
"""

AREA: Final = Area(
    name="form_conversations",
    periodic_tasks=(PeriodicTask(600.0, conversations.abandon_old),),
    retention=(
        RetentionRule(
            "form_messages",
            "t.conversation_id = c.id",
            order_by="t.position",
            per=_EXPIRED_CONVERSATIONS,
        ),
        # Analytics count unfinished conversations also after their answers are deleted.
        RetentionRule(
            "form_conversations",
            "t.expires_at < now() "
            "AND NOT EXISTS (SELECT 1 FROM form_messages m WHERE m.conversation_id = t.id)",
            order_by="t.expires_at",
            clears="expires_at = NULL, data = '{}', skipped = '{}'",
        ),
    ),
    tables=(
        CountedTable(
            "form_conversations",
            "forms",
            "octet_length(t.data::text)",
            changes="OLD.data::text <> NEW.data::text",
        ),
        CountedTable("form_messages", "forms", "octet_length(t.content)"),
    ),
)
