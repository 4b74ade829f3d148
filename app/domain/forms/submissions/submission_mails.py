"""Mails about submissions: one for each, up to a limit per form and hour; then a digest at the end
of the hour.
"""

from typing import Any, Final

import msgspec

from app.domain.forms.definition.api import FormDefinition, LiveForm, live, recipients
from app.domain.forms.definition.api import recipient_queries as queries
from app.domain.forms.definition.errors import FormNotFound
from app.domain.platform.mail import api as mail
from app.jobs import work
from app.services import Services
from db.fast import Row
from db.session import Tx

from . import file_links, upload_queries
from .work_kinds import SEND_DIGEST

MAX_PER_HOUR: Final = 30
_MAX_ANSWER_CHARS: Final = 2000


async def send(
    tx: Tx,
    services: Services,
    form: LiveForm,
    definition: FormDefinition,
    submission: Row,
    answers: dict[str, Any],
) -> None:
    """Queues the mail, or counts the submission for the digest: in the transaction that processes
    it, so that none is mailed twice or lost.
    """
    recipient = await _find_recipient(tx, services, form)
    if recipient is None:
        return
    count = await queries.count_mail(tx, form.tenant_id, form.id, MAX_PER_HOUR)
    if count["mails"] > MAX_PER_HOUR:
        await _accept_digest(tx, form, count)
        return
    content = mail.render(
        "form_submission",
        form_name=form.name,
        answers=_list_answers(
            definition,
            answers,
            await upload_queries.list_names(tx, form.tenant_id, submission["id"]),
            file_links.build_files_url(services, form.id),
        ),
        submission_id=submission["id"],
        url=file_links.build_submission_url(services, form.id, submission["id"]),
        created_at=submission["created_at"],
    )
    await _queue(tx, services, form, recipient, content)


async def _find_recipient(tx: Tx, services: Services, form: LiveForm) -> str | None:
    recipient = form.settings.notifications.email
    if recipient is None:
        return None
    ids = (form.tenant_id, recipient, form.created_by)
    return recipient if await recipients.is_allowed(tx, services, *ids) else None


class MailedAnswer(msgspec.Struct, frozen=True):
    """`url` is the address of a file."""

    label: str
    text: str
    url: str | None = None


def _list_answers(
    definition: FormDefinition, answers: dict[str, Any], names: dict[str, str], files_url: str
) -> list[MailedAnswer]:
    """`names` has the names of files, by their ids."""
    found: list[MailedAnswer] = []
    for field in definition.inputs:
        value = answers.get(field.id)
        if value is None:
            continue
        if field.file_rules is not None and not field.type.is_inline(value):
            url = f"{files_url}{value}"
            found.append(MailedAnswer(field.label, names.get(value, value), url))
        else:
            text = field.type.format(field, value)[:_MAX_ANSWER_CHARS]
            found.append(MailedAnswer(field.label, text))
    return found


async def _accept_digest(tx: Tx, form: LiveForm, count: Row) -> None:
    """The first submission that is not mailed accepts the digest; it counts all that follow."""
    if count["withheld"] == 1 or count["mails"] == MAX_PER_HOUR + 1:
        ends_at = count["ends_at"]
        await work.accept(
            tx,
            SEND_DIGEST,
            tenant_id=form.tenant_id,
            ref_id=form.id,
            dedupe_key=f"{form.id}:{count['digests']}:{ends_at.timestamp():.0f}",
            run_at=ends_at,
        )


async def send_digest(tx: Tx, services: Services, tenant_id: str, form_id: str) -> None:
    """Mails how many submissions were not mailed, in the transaction that ends its work."""
    count = await queries.take_withheld(tx, tenant_id, form_id)
    try:
        form = await live.find(tx, tenant_id, form_id)
    except FormNotFound:
        return
    recipient = await _find_recipient(tx, services, form)
    if count and recipient is not None:
        url = f"{services.settings.public_url}/api/v1/forms/{form.id}/submissions"
        content = mail.render(
            "form_digest", form_name=form.name, count=count, limit=MAX_PER_HOUR, url=url
        )
        await _queue(tx, services, form, recipient, content)


async def _queue(
    tx: Tx, services: Services, form: LiveForm, recipient: str, content: mail.MailContent
) -> None:
    await mail.queue(
        tx, services.keyring, tenant_id=form.tenant_id, recipient=recipient, content=content
    )
