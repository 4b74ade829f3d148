"""Why a document of a source, or all of it, cannot be read. Messages continue a sentence that
starts with the address.
"""


def make_printable(text: str) -> str:
    """Returns a message that may have words of a server, as it can be stored and shown."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else "?" for letter in text)


class DocumentSkipped(Exception):
    """A document cannot be read now; the one that was read before stays."""


class DocumentGone(Exception):
    """There is no such document any more."""


class SyncFailed(Exception):
    """The source cannot be read. Its server may have said when to come back."""

    def __init__(self, message: str, wait_seconds: float | None = None) -> None:
        super().__init__(message)
        self.wait_seconds = wait_seconds


class OutOfTime(Exception):
    """The rest is read in a next turn, so that other sources get theirs."""
