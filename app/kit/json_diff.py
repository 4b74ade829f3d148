"""The differences between two JSON values, as a list that a person can read."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

MAX_CHANGES: Final = 1000
MAX_TEXT_CHARS: Final = 10_000
# Deeper values are compared as a whole.
_MAX_DEPTH = 100
_CUT_MARK = "… [cut]"
# By words, so that `max_tokens` is no secret.
_SECRET_KEY = re.compile(
    r"passw(or)?d|passphrase|secret|(?<![a-z])tokens?$|(access|refresh|bearer|auth)[_-]?token"
    r"|api[_-]?key|(access|private|signing|master)[_-]?key|authorization|cookie|credentials?$",
    re.IGNORECASE,
)
_COUNT_KEY = re.compile(
    r"(max|min|total|prompt|completion|input|output)[_-]?tokens$", re.IGNORECASE
)
_ABSENT: Final = object()


class Change(msgspec.Struct, omit_defaults=True):
    """`path` is dotted. An item of a list has its index, or its `id` where all items have one. A
    secret has neither value; a long text is cut.
    """

    path: str
    op: Literal["added", "removed", "changed"]
    before: Any | UnsetType = UNSET
    after: Any | UnsetType = UNSET


class Diff(msgspec.Struct, frozen=True):
    """`truncated`: there are more changes than the list has."""

    changes: list[Change]
    truncated: bool = False


def is_secret_key(key: str) -> bool:
    return _SECRET_KEY.search(key) is not None and _COUNT_KEY.search(key) is None


def diff(before: Any, after: Any) -> list[Change]:
    """Returns all changes; `diff_bounded` limits their number."""
    return list(_find_changes(before, after, "", is_secret=False))


def diff_bounded(before: Any, after: Any, limit: int = MAX_CHANGES) -> Diff:
    changes: list[Change] = []
    for change in _find_changes(before, after, "", is_secret=False):
        if len(changes) == limit:
            return Diff(changes, truncated=True)
        changes.append(change)
    return Diff(changes)


def _find_changes(
    before: Any, after: Any, path: str, depth: int = 0, *, is_secret: bool
) -> Iterator[Change]:
    is_inner = depth < _MAX_DEPTH
    if is_inner and isinstance(before, dict) and isinstance(after, dict):
        yield from _compare(before, after, path, depth, is_secret=is_secret)
    elif is_inner and isinstance(before, list) and isinstance(after, list):
        old, new = _index_items(before, after)
        yield from _compare(old, new, path, depth, is_secret=is_secret)
    elif not _is_equal(before, after):
        yield _build_change(before, after, path, is_secret=is_secret)


def _compare(
    before: dict[str, Any], after: dict[str, Any], path: str, depth: int, *, is_secret: bool
) -> Iterator[Change]:
    for key in dict.fromkeys((*before, *after)):
        yield from _find_changes(
            before.get(key, _ABSENT),
            after.get(key, _ABSENT),
            f"{path}.{key}" if path else key,
            depth + 1,
            is_secret=is_secret or is_secret_key(key),
        )


def _index_items(before: list[Any], after: list[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the items by their names where each list has different ones, or else by position."""
    old_names, new_names = _find_names(before), _find_names(after)
    if old_names is None or new_names is None:
        old_names, new_names = map(str, range(len(before))), map(str, range(len(after)))
    return dict(zip(old_names, before, strict=True)), dict(zip(new_names, after, strict=True))


def _find_names(items: list[Any]) -> Iterable[str] | None:
    """Returns the name of each item, or None unless all have different ones."""
    names = [_find_name(item) for item in items]
    texts = [name for name in names if name is not None]
    return texts if len(set(texts)) == len(items) else None


def _find_name(item: Any) -> str | None:
    """An object is named by its id, an edge by its ends."""
    match item:
        case {"id": str(name)}:
            return name
        case {"from": str(source), "to": str(target)}:
            when = item.get("when")
            return f"{source}->{target}" + ("" if when is None else f":{str(when).lower()}")
    return None


def _is_equal(before: Any, after: Any) -> bool:
    """Python takes 1, 1.0 and true for equal; in JSON only the numbers are."""
    return isinstance(before, bool) == isinstance(after, bool) and bool(before == after)


def _build_change(before: Any, after: Any, path: str, *, is_secret: bool) -> Change:
    change = Change(path, "changed")
    if before is _ABSENT:
        change.op = "added"
    elif after is _ABSENT:
        change.op = "removed"
    if not is_secret:
        if before is not _ABSENT:
            change.before = _show(before)
        if after is not _ABSENT:
            change.after = _show(after)
    return change


def _show(value: Any, depth: int = 0) -> Any:
    """Cuts long texts and deep values, and leaves out the values of secrets inside."""
    match value:
        case str() if len(value) > MAX_TEXT_CHARS:
            return value[:MAX_TEXT_CHARS] + _CUT_MARK
        case list() | dict() if depth == _MAX_DEPTH:
            return _CUT_MARK
        case list():
            return [_show(item, depth + 1) for item in value]
        case dict():
            items = ((key, item) for key, item in value.items() if not is_secret_key(key))
            return {key: _show(item, depth + 1) for key, item in items}
    return value
