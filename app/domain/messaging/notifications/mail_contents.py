"""The content of mails to users: the common one, or one by the area whose event it is about."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgspec

from app.domain.area import Areas, EventMessage, WriteMails
from app.domain.platform.mail import api as mail
from app.services import Services
from db.session import Tx

from .messages import RULE_SOURCE


class MailedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """`data` is JSON. Only a rule notifies of the event itself; other sources have texts of their
    own about it.
    """

    tenant_id: str
    source: str
    title: str
    message: str
    data: str

    def find_writer(self, services: Services) -> WriteMails | None:
        if self.source != RULE_SOURCE:
            return None
        event_type = msgspec.json.decode(self.data).get("event_type")
        return services.get(Areas).mail_writers.get(event_type)


async def write(
    services: Services, tx: Tx, message: MailedMessage, user_ids: Sequence[str]
) -> Mapping[str, mail.MailContent]:
    """Returns the content of the mail to each user."""
    contents = dict.fromkeys(user_ids, render_common(message.title, message.message))
    writer = message.find_writer(services)
    if writer is not None:
        data = msgspec.json.decode(message.data)
        contents |= await writer(EventMessage(tx, services, message.tenant_id, data), user_ids)
    return contents


# The recipients of a message get the same mail, most of them one after the other.
@lru_cache(maxsize=64)
def render_common(title: str, message: str) -> mail.MailContent:
    return mail.render("notification", title=title, message=message, url=None)
