from typing import Final

from app.domain.area import Area, AreaJob
from db import ledger
from db.retention import RetentionRule
from db.storage_quota import UncountedTable

from .jobs import send_mail
from .service import SEND_MAIL

_IS_WAITING = ledger.unfinished_sql("w.kind = 'mail.send' AND w.dedupe_key = t.id")

AREA: Final = Area(
    name="mail",
    jobs=(AreaJob(SEND_MAIL, send_mail, "Send a mail"),),
    retention=(
        # Sent or given up; a mail that still waits for a worker stays.
        RetentionRule(
            "mail_messages",
            f"t.created_at < now() - interval '30 days' AND NOT {_IS_WAITING}",
            order_by="t.created_at",
        ),
    ),
    tables=(
        UncountedTable(
            "mail_messages", "the text is deleted once it is sent, the row after 30 days"
        ),
    ),
)
