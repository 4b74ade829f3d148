"""Differences between JSON values: paths, values, secrets and limits."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kit import json_diff
from app.kit.json_diff import MAX_CHANGES, MAX_TEXT_CHARS, diff, diff_bounded


def _changed(path: str, before: Any, after: Any) -> dict[str, Any]:
    return {"path": path, "op": "changed", "before": before, "after": after}


_CASES: list[tuple[Any, Any, list[dict[str, Any]]]] = [
    ({"a": 1}, {"a": 1}, []),
    ({"a": 1}, {"a": 1.0}, []),
    ({"a": 1}, {"a": True}, [_changed("a", 1, after=True)]),
    ({"a": None}, {"a": 0}, [_changed("a", None, 0)]),
    ({"a": 1}, {"a": 2}, [_changed("a", 1, 2)]),
    ({}, {"a": None}, [{"path": "a", "op": "added", "after": None}]),
    ({"a": [1]}, {}, [{"path": "a", "op": "removed", "before": [1]}]),
    ({"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 2}}}, [_changed("a.b.c", 1, 2)]),
    ({"a": {"b": 1}}, {"a": [1]}, [_changed("a", {"b": 1}, [1])]),
    ([1, 2], [1, 3, 4], [_changed("1", 2, 3), {"path": "2", "op": "added", "after": 4}]),
    (
        {"nodes": [{"id": "x", "n": 1}, {"id": "y", "n": 2}]},
        {"nodes": [{"id": "y", "n": 3}, {"id": "x", "n": 1}]},
        [_changed("nodes.y.n", 2, 3)],
    ),
    (
        {"nodes": [{"id": "x"}]},
        {"nodes": [{"id": "z"}]},
        [
            {"path": "nodes.x", "op": "removed", "before": {"id": "x"}},
            {"path": "nodes.z", "op": "added", "after": {"id": "z"}},
        ],
    ),
    # The same id twice: by position.
    (
        [{"id": "x", "n": 1}, {"id": "x", "n": 2}],
        [{"id": "x", "n": 1}, {"id": "x", "n": 3}],
        [_changed("1.n", 2, 3)],
    ),
    ({"api_key": "a"}, {"api_key": "b"}, [{"path": "api_key", "op": "changed"}]),
    ({}, {"password": "b"}, [{"path": "password", "op": "added"}]),
    ({"token": "a"}, {}, [{"path": "token", "op": "removed"}]),
    ({"secrets": {"x": [1]}}, {"secrets": {"x": [2]}}, [{"path": "secrets.x.0", "op": "changed"}]),
    ({}, {"auth": {"secret": "s", "n": 1}}, [{"path": "auth", "op": "added", "after": {"n": 1}}]),
    ({"max_tokens": 1}, {"max_tokens": 2}, [_changed("max_tokens", 1, 2)]),
]


def test_the_changes_of_two_values(subtests: pytest.Subtests) -> None:
    for before, after, expected in _CASES:
        with subtests.test(before=before, after=after):
            assert msgspec.to_builtins(diff(before, after)) == expected


def test_keys_of_secrets_are_known_by_their_words() -> None:
    secrets = ("password", "client_secret", "apiKey", "access_token", "X-Api-Key", "Authorization")
    assert [name for name in secrets if not json_diff.is_secret_key(name)] == []
    others = ("max_tokens", "total_tokens", "name", "key", "author", "system_prompt")
    assert [name for name in others if json_diff.is_secret_key(name)] == []


def test_a_long_text_is_cut_with_a_mark() -> None:
    whole, long = "x" * MAX_TEXT_CHARS, "y" * (MAX_TEXT_CHARS + 1)
    (change,) = diff({"a": whole}, {"a": long})
    assert change.before == whole
    assert change.after == "y" * MAX_TEXT_CHARS + "… [cut]"


def test_the_number_of_changes_is_limited() -> None:
    full = diff_bounded({}, dict.fromkeys(map(str, range(MAX_CHANGES)), 1))
    assert (len(full.changes), full.truncated) == (MAX_CHANGES, False)
    more = diff_bounded({}, dict.fromkeys(map(str, range(MAX_CHANGES + 1)), 1))
    assert (len(more.changes), more.truncated) == (MAX_CHANGES, True)


def test_very_deep_values_are_compared_as_a_whole() -> None:
    before, after = [msgspec.json.decode("[" * 600 + number + "]" * 600) for number in "12"]
    (change,) = diff(before, after)
    assert change.path == ".".join("0" * 100)


_KEYS = st.sampled_from(["a", "b", "c", "d"])
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.text("xy", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(_VALUES)
def test_a_value_does_not_differ_from_itself(value: Any) -> None:
    assert diff(value, value) == []


@given(_VALUES, _VALUES)
def test_each_difference_is_reported_once_and_the_other_way_round(before: Any, after: Any) -> None:
    changes, reverse = diff(before, after), diff(after, before)
    paths = [change.path for change in changes]
    assert len(set(paths)) == len(paths)
    assert not any(path.startswith(f"{other}.") for path in paths for other in paths)
    opposites = {"added": "removed", "removed": "added", "changed": "changed"}
    expected = {
        (item.path, opposites[item.op], item.after, item.before) for item in map(_key, changes)
    }
    assert expected == {
        (item.path, item.op, item.before, item.after) for item in map(_key, reverse)
    }


def test_edges_are_named_by_their_ends() -> None:
    before = [{"from": "a", "to": "b"}, {"from": "b", "to": "c", "when": True}]
    after = [{"from": "a", "to": "x"}, *before]
    (change,) = diff({"edges": before}, {"edges": after})
    assert (change.path, change.op) == ("edges.a->x", "added")
    (change,) = diff({"edges": after}, {"edges": after[:-1]})
    assert (change.path, change.op) == ("edges.b->c:true", "removed")


def _key(change: json_diff.Change) -> json_diff.Change:
    """Returns the change with values that a set can hold."""
    return msgspec.structs.replace(change, before=repr(change.before), after=repr(change.after))


@given(_VALUES, _VALUES)
def test_the_changes_lead_from_one_value_to_the_other(before: Any, after: Any) -> None:
    wrapped = _apply({"root": before}, diff({"root": before}, {"root": after}))
    assert diff(wrapped, {"root": after}) == []


def _apply(value: dict[str, Any], changes: list[json_diff.Change]) -> Any:
    value = msgspec.json.decode(msgspec.json.encode(value))
    # The last items of a list are removed first.
    for change in sorted(changes, key=lambda item: item.op == "removed"):
        if change.op != "removed":
            _set(value, change.path.split("."), change.after)
    for change in reversed(changes):
        if change.op == "removed":
            _set(value, change.path.split("."), None, remove=True)
    return value


def _set(value: Any, keys: list[str], item: Any, *, remove: bool = False) -> None:
    for key in keys[:-1]:
        value = value[int(key)] if isinstance(value, list) else value[key]
    last = keys[-1]
    if isinstance(value, dict):
        if remove:
            del value[last]
        else:
            value[last] = item
    elif remove:
        del value[int(last)]
    elif int(last) < len(value):
        value[int(last)] = item
    else:
        value.append(item)
