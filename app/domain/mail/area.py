from typing import Final

from app.domain.area import Area
from app.domain.mail.service import SEND_MAIL
from db import ledger
from db.retention import RetentionRule

_IS_WAITING = ledger.unfinished_sql("w.kind = 'mail.send' AND w.dedupe_key = t.id")

AREA: Final = Area(
    name="mail",
    work_kinds=(SEND_MAIL,),
    retention=(
        RetentionRule("mail_messages", "t.sent_at < now() - interval '30 days'"),
        # A mail that was given up; one that still waits for a worker stays.
        RetentionRule(
            "mail_messages",
            f"t.sent_at IS NULL AND NOT {_IS_WAITING}"
            " AND t.created_at < now() - interval '30 days'",
        ),
    ),
)
