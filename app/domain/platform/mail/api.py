"""What other areas may call."""

from app.domain.platform.mail.rendering import MailContent, clean_subject, render
from app.domain.platform.mail.service import compose, mailbox, queue, queue_many, send
