from typing import Final

from app.domain.area import Area
from app.domain.mail.service import SEND_MAIL
from db.retention import RetentionRule

AREA: Final = Area(
    name="mail",
    work_kinds=(SEND_MAIL,),
    retention=(RetentionRule("mail_messages", "t.sent_at < now() - interval '30 days'"),),
)
