"""Links in the texts of a form's author, written as in Markdown: [privacy notice](https://…).

The page and the chat show them as links; all other places show their text. What is not a link to
http, https or mailto stays text. The pattern takes linear time, and means the same to PostgreSQL
and to browsers (app/web/static/form/links.js).
"""

import re
from typing import Final

_CHARACTER = r"\x01-\x20\x7f-\xa0()<>\"'\\"
# Without a user name before the host: it serves to deceive.
PATTERN: Final = (
    r"\[([^\[\]\n]+)\]\("
    rf"(?:https?://[^{_CHARACTER}@/?#]+(?:[/?#][^{_CHARACTER}]*)?|mailto:[^{_CHARACTER}]+)\)"
)
_LINK = re.compile(PATTERN)


def to_plain_text(text: str) -> str:
    """Returns a text with the texts of its links."""
    return _LINK.sub(r"\1", text) if "](" in text else text


def disarm(text: str) -> str:
    """Returns a visitor's text without links, for messages whose links are shown."""
    return text.replace("](", "] (")
