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
    """A query a line; one that begins with a bar goes on from the line before."""
    joined = re.sub(r"\n\s+\| ", " ", text)
    return [line.strip() for line in joined.splitlines() if line.strip()]
