"""E-mail addresses in the configs of mail providers."""

from email.headerregistry import Address
from email.utils import getaddresses
from typing import NamedTuple

from app import email_addresses


class Mailbox(NamedTuple):
    name: str
    address: str

    @property
    def header(self) -> str:
        """Returns the value of a From header."""
        return str(Address(self.name, addr_spec=self.address))


def parse(text: str) -> Mailbox:
    """Parses `ann@example.com` or `Ann <ann@example.com>`. Raises ValueError."""
    if not text.isprintable():
        raise ValueError("must be one line")
    mailboxes = getaddresses([text])
    if len(mailboxes) != 1:
        raise ValueError("must be one address")
    name, address = mailboxes[0]
    return Mailbox(name, email_addresses.normalize(address))


def find_problem(sender: str, recipients: list[str]) -> tuple[str, str] | None:
    """Returns the key of an address that is not valid, and the reason."""
    try:
        parse(sender)
    except ValueError as problem:
        return "from", str(problem)
    for index, recipient in enumerate(recipients):
        try:
            email_addresses.normalize(recipient)
        except ValueError as problem:
            return f"to.{index}", str(problem)
    return None
