"""Suggests the name that somebody who misspelt it probably meant."""

import difflib
from collections.abc import Iterable

# Longer ones are no misspelt names; comparing them takes quadratic time.
_MAX_CHARS = 64
_MIN_SIMILARITY = 0.7


def find_nearest(name: str, names: Iterable[str]) -> str | None:
    """Returns the most similar name, None if none is similar."""
    if len(name) > _MAX_CHARS:
        return None
    found = difflib.get_close_matches(name, names, 1, _MIN_SIMILARITY)
    return found[0] if found else None


def suggest(name: str, names: Iterable[str]) -> str:
    """Returns the end of a sentence about a field that does not exist: what exists instead."""
    known = list(names)
    nearest = find_nearest(name, known)
    if nearest is not None:
        return f"did you mean {nearest}?"
    return f"use one of: {', '.join(known)}" if known else "no fields are allowed here"
