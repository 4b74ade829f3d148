"""Helpers for lists of SQL statements."""

import re

ALL_OPERATIONS = [
    "select",
    "insert",
    "update",
    "delete",
    "merge",
    "create",
    "alter",
    "drop",
    "truncate",
]

READ_ONLY = ["select"]


def split_queries(text: str) -> list[str]:
    """Splits a text into queries, one per line; a line that begins with a bar continues a query."""
    joined = re.sub(r"\n\s+\| ", " ", text)
    return [line.strip() for line in joined.splitlines() if line.strip()]
