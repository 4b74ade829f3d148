"""Job function: send a queued mail."""

import aiosmtplib

from app.domain.mail import service as mail
from app.kit import clock
from app.kit.crypto import CannotOpen
from db.models import MailMessage
from workers.runner import GiveUp, Job, Retry


async def send_mail(job: Job) -> None:
    async with job.read() as tx:
        message = await (await tx.session()).get(MailMessage, job.ref_id)
    if message is None or message.body is None:
        return
    try:
        context = mail.seal_context(message.tenant_id, message.id)
        text = job.services.keyring.open(message.body, context).decode()
    except CannotOpen as error:
        raise GiveUp(f"the mail cannot be decrypted: {error}") from error
    settings = job.services.settings
    content = mail.compose(settings, message.id, message.recipient, message.subject, text)
    try:
        await mail.send(settings, message.id, message.recipient, content)
    except aiosmtplib.SMTPResponseException as error:
        raise Retry(f"the mail server answered {error.code}") from error
    except (aiosmtplib.SMTPException, OSError) as error:
        raise Retry(f"the mail cannot be sent: {type(error).__name__}") from error
    async with job.finish() as tx:
        sent = await (await tx.session()).get(MailMessage, job.ref_id)
        if sent is not None:
            sent.body, sent.sent_at = None, clock.now()
