"""Strategies for entries and origins."""

import string

from hypothesis import strategies as st

LABELS = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=4)

HOSTS = st.lists(LABELS, min_size=2, max_size=4).map(".".join).map(lambda name: f"x{name}.com")

SCHEMES = st.sampled_from(["http", "https"])

PORTS = st.none() | st.sampled_from([80, 443, 8080]) | st.integers(1, 65535)


def format_entry(scheme: str | None, wildcard: str, host: str, port: int | None) -> str:
    return (f"{scheme}://" if scheme else "") + wildcard + host + (f":{port}" if port else "")
