"""Reads composed mails."""

import email
import email.policy
from email.message import EmailMessage
from typing import Literal


def parse(content: bytes) -> EmailMessage:
    return email.message_from_bytes(content, policy=email.policy.default)


def read_part(content: bytes, kind: Literal["plain", "html"] = "plain") -> str:
    """Returns the decoded text or HTML of a mail."""
    body = parse(content).get_body((kind,))
    assert body is not None
    text: str = body.get_content()
    return text.replace("\r\n", "\n")
