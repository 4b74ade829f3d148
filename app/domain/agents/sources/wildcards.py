"""Patterns in which * stands for any characters, as in robots.txt."""

from collections.abc import Sequence


def matches(pattern: str, path: str) -> bool:
    """True when the pattern covers the whole path. Takes time in proportion to both lengths."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == path
    *middle, last = rest
    if not path.startswith(first) or not path.endswith(last):
        return False
    position, end = len(first), len(path) - len(last)
    for part in middle:
        position = path.find(part, position, end)
        if position < 0:
            return False
        position += len(part)
    return position <= end


def is_selected(path: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    """True for a path that `include` covers, if it has any pattern, and `exclude` does not."""
    if include and not any(matches(pattern, path) for pattern in include):
        return False
    return not any(matches(pattern, path) for pattern in exclude)
