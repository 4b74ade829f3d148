"""Parses the values of settings. The message of a ValueError is the end of a sentence about one."""

import ipaddress
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from app.kit import email_addresses
from db import url as database_urls

_SCHEMES_WITH_HOST = {"http", "https", "redis", "rediss", "smtp", "smtps"}
_HOST = re.compile(r"(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_-]+)*\.?\Z")
_MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/+-]{0,199}\Z")

OFF: Final = "off"
AUTO: Final = "auto"


def parse_text(value: str) -> str:
    return value


def parse_email(value: str) -> str:
    try:
        return email_addresses.normalize(value)
    except ValueError:
        raise ValueError("must be an e-mail address") from None


def parse_path(value: str) -> Path:
    return Path(value).expanduser().absolute()


def parse_flag(value: str) -> bool:
    words = {"true": True, "on": True, "1": True, "yes": True}
    words |= {"false": False, "off": False, "0": False, "no": False}
    try:
        return words[value.lower()]
    except KeyError:
        raise ValueError("must be true or false") from None


def parse_flag_or_auto(value: str) -> bool | str:
    try:
        return AUTO if value.lower() == AUTO else parse_flag(value)
    except ValueError:
        raise ValueError("must be true, false or auto") from None


def parse_int(low: int, high: int) -> Callable[[str], int]:
    def parse(value: str) -> int:
        try:
            number = int(value)
        except ValueError:
            raise ValueError("must be a whole number") from None
        if not low <= number <= high:
            raise ValueError(f"must be from {low} to {high}")
        return number

    return parse


def parse_seconds(value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        raise ValueError("must be a number of seconds") from None
    if not 0 < number <= 3600:  # noqa: PLR2004
        raise ValueError("must be more than 0 and at most 3600 seconds")
    return number


def parse_one_of(*words: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if value.lower() not in words:
            raise ValueError(f"must be one of {', '.join(words)}")
        return value.lower()

    return parse


def parse_list(value: str) -> tuple[str, ...]:
    return tuple(filter(None, (item.strip() for item in value.split(","))))


def parse_hosts(value: str) -> tuple[str, ...]:
    """Host names, `*.` suffixes, addresses and networks."""
    items = parse_list(value)
    for item in items:
        try:
            ipaddress.ip_network(item, strict=False)
        except ValueError:
            if not _HOST.match(item):
                raise ValueError(f"{item!r} is not a host name, address or network") from None
    return items


def parse_networks(value: str) -> tuple[str, ...]:
    items = parse_list(value)
    for item in items:
        try:
            ipaddress.ip_network(item, strict=False)
        except ValueError:
            raise ValueError(f"{item!r} is not an address or network") from None
    return items


def split_address(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)


def parse_address_or_off(value: str) -> str:
    if value.lower() == OFF:
        return OFF
    try:
        host, port = split_address(value)
    except ValueError:
        host, port = "", 0
    is_bare_ipv6 = ":" in host and not value.startswith("[")
    if not host or is_bare_ipv6 or not 1 <= port <= 65535:  # noqa: PLR2004
        raise ValueError("must be an address and a port, like 127.0.0.1:9464 or [::1]:9464, or off")
    return value


def parse_delays(value: str) -> tuple[int, ...]:
    try:
        delays = tuple(int(item) for item in parse_list(value))
    except ValueError:
        raise ValueError("must be whole seconds, separated by commas") from None
    if not delays or min(delays) < 0:
        raise ValueError("must be at least one delay, none below 0")
    return delays


def parse_url(*schemes: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        try:
            url = urlsplit(value)
            _ = url.port
        except ValueError:
            raise ValueError("is not a valid URL") from None
        if url.scheme not in schemes:
            raise ValueError(f"must start with {' or '.join(s + '://' for s in schemes)}")
        if not url.hostname and url.scheme in _SCHEMES_WITH_HOST:
            raise ValueError("must contain a host")
        return value

    return parse


def parse_model_name(value: str) -> str:
    if not _MODEL_NAME.match(value):
        raise ValueError("must be the name of a model, like openai/text-embedding-3-small")
    return value


def parse_plain_url(value: str) -> str:
    """The address of a service that needs no login, without a trailing slash."""
    url = urlsplit(parse_url("http", "https")(value))
    if url.username is not None or url.password is not None:
        raise ValueError("must have no user name and no password")
    if url.query or url.fragment:
        raise ValueError("must not have a query or a fragment")
    return value.rstrip("/")


def parse_model(embedded: str, hosted: str) -> Callable[[str], str]:
    """The name of the embedded model, or of a provider's model."""

    def parse(value: str) -> str:
        is_other_local = value.startswith("local/") and value != embedded
        if is_other_local or not value.partition("/")[2] or not _MODEL_NAME.match(value):
            raise ValueError(f"must be {embedded} or a provider's model, like {hosted}")
        return value

    return parse


def parse_database_url(value: str) -> str:
    database_urls.parse_url(value)
    return value
