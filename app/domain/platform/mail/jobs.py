"""Job function: send a queued mail."""

import asyncio

from app.crypto.keyring import CannotOpen
from app.domain.job import GiveUp, Job, Retry
from app.kit import clock
from app.net.smtp import SessionRefused, SmtpFailed
from db.models import MailMessage

from . import service as mail
from .rendering import MailContent


async def send_mail(job: Job) -> None:
    async with job.read() as tx:
        message = await (await tx.session()).get(MailMessage, job.ref_id)
    if message is None or message.body is None:
        return
    try:
        content = mail.open_content(job.services.keyring, message)
    except CannotOpen as error:
        raise GiveUp(f"the mail cannot be decrypted: {error}") from error
    await _send(job, message, content)
    async with job.finish() as tx:
        sent = await (await tx.session()).get(MailMessage, job.ref_id)
        if sent is not None:
            # The subject may have what somebody answered, too.
            sent.subject, sent.body, sent.sent_at = "", None, clock.now()


async def _send(job: Job, message: MailMessage, content: MailContent) -> None:
    settings = job.services.settings
    # Encoding a long mail takes a tenth of a second.
    composed = await asyncio.to_thread(
        mail.compose,
        settings.mail_from,
        message.id,
        message.recipient,
        content,
        domain=mail.domain_of(settings),
    )
    try:
        await mail.send(settings, message.id, message.recipient, composed)
    except SessionRefused as error:
        # The operator can correct the login: the mail is not lost.
        raise Retry(f"the mail cannot be sent: {error}") from error
    except SmtpFailed as error:
        reason = f"the mail cannot be sent: {error}"
        raise (GiveUp(reason) if error.is_permanent else Retry(reason)) from error
    except OSError as error:
        raise Retry(f"the mail cannot be sent: {type(error).__name__}") from error
