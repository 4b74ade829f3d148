"""The mail to each of those whom an approval asks, with links that are for that user alone."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import msgspec

from app.domain.area import EventMessage
from app.domain.platform.mail import api as mail
from app.kit.pacing import Pace
from app.security.tokens import new_secret
from db.fast import Row

from . import link_tokens, links, queries
from .schemas import Origin


class _Choice(msgspec.Struct, frozen=True):
    label: str
    url: str


async def write_mails(
    message: EventMessage, user_ids: Sequence[str]
) -> dict[str, mail.MailContent]:
    """Returns none for an approval that is deleted."""
    approval_id = message.data.get("approval_id", "")
    approval = await queries.find_in_tenant(message.tx, message.tenant_id, approval_id)
    if approval is None:
        return {}
    # Rendered once, because a role may have many users: each mail has a token in the place of this.
    mark = new_secret()
    choices = _list_choices(message.services.settings.public_url, mark)
    common = mail.render("approval", choices_to_make=choices, **_list_values(approval))
    contents, pace = {}, Pace()
    for user_id in user_ids:
        token = link_tokens.issue(message.services.keyring, approval, user_id)
        parts = (part.replace(mark, token) for part in (common.text, common.html))
        contents[user_id] = mail.MailContent(common.subject, *parts)
        await pace.rest()
    return contents


def _list_values(approval: Row) -> dict[str, Any]:
    """Returns what is the same in all mails."""
    view = queries.build_view(approval)
    origin: Origin | None = view.origin
    return {
        "title": view.title,
        "message": view.message,
        "workflow_name": origin.workflow_name if origin is not None else None,
        "started_by": links.describe_starter(origin) if origin is not None else None,
        "details": view.details,
        "deadline": view.expires_at,
        "links_end_at": link_tokens.find_expiry(approval),
    }


def _list_choices(public_url: str, token: str) -> list[_Choice]:
    return [
        _Choice(label, f"{public_url}/approval?{urlencode({'decision': decision, 'token': token})}")
        for label, decision in (("Approve", "approved"), ("Reject", "rejected"))
    ]
