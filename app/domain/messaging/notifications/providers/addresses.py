"""E-mail addresses in the configs of mail providers."""

from email.headerregistry import Address
from email.utils import getaddresses
from functools import lru_cache
from typing import NamedTuple

import idna

from app.kit import email_addresses


class Mailbox(NamedTuple):
    name: str
    address: str

    @property
    def header(self) -> str:
        """Returns the value of a From header."""
        return str(Address(self.name, addr_spec=self.address))

    @property
    def domain(self) -> str:
        return self.address.rpartition("@")[2]


def encode_domain(address: str) -> str:
    """Returns the address with a non-ASCII domain in IDNA encoding, which every server accepts."""
    local, _, domain = address.rpartition("@")
    return address if domain.isascii() else f"{local}@{idna.encode(domain, uts46=True).decode()}"


# Each mail of a channel has the same sender, and the syntax takes long to check.
@lru_cache(maxsize=256)
def parse(text: str) -> Mailbox:
    """Parses `ann@example.com` or `Ann <ann@example.com>`. Raises ValueError."""
    if not text.isprintable():
        raise ValueError("must be one line")
    mailboxes = getaddresses([text])
    if len(mailboxes) != 1:
        raise ValueError("must be one address")
    name, address = mailboxes[0]
    return Mailbox(name, encode_domain(email_addresses.normalize(address)))


def find_problem(sender: str, recipients: list[str]) -> tuple[str, str] | None:
    """Returns the key of an address that is not valid, and a reason that does not repeat it."""
    try:
        parse(sender)
    except ValueError:
        return "from", "must be an address like ann@example.com or Ann <ann@example.com>"
    for index, recipient in enumerate(recipients):
        try:
            email_addresses.normalize(recipient)
        except ValueError:
            return f"to.{index}", "is not an e-mail address"
    return None
