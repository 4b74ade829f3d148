"""What other areas may call."""

from app.domain.platform.mail.rendering import MailContent, clean_subject, render
from app.domain.platform.mail.service import compose, domain_of, mailbox, queue, queue_many, send

__all__ = [
    "MailContent",
    "clean_subject",
    "compose",
    "domain_of",
    "mailbox",
    "queue",
    "queue_many",
    "render",
    "send",
]
