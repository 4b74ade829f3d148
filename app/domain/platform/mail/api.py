"""What other areas may call."""

from .rendering import MailContent, clean_subject, render
from .service import compose, mailbox, parse_server, queue, queue_many, send
