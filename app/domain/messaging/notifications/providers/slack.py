"""Texts in Slack's markup."""

import re

from app.domain.messaging.notifications.providers.protocol import Notice

# Slack has no escape for its marks of bold, struck and code text: similar characters replace them.
_MARKS = str.maketrans(
    {
        "*": "\N{ASTERISK OPERATOR}",
        "~": "\N{TILDE OPERATOR}",
        "`": "\N{MODIFIER LETTER GRAVE ACCENT}",
    }
)
# Within a word an underscore is no mark.
_ITALIC_MARK = re.compile(r"(?<![^\W_])_|_(?![^\W_])")


def build_text(notice: Notice) -> str:
    """Returns the title in bold, then the message, which can mention nobody and hide no link."""
    title = _ITALIC_MARK.sub("\N{MODIFIER LETTER LOW MACRON}", notice.subject.translate(_MARKS))
    return "\n".join(filter(None, [f"*{escape(title)}*" if title else "", escape(notice.text)]))


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
