"""The nesting depth of JSON text is the same on every Python, without decoding."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kit.texts import nests_deeper
from tests.lengths import rounds

_CASES: list[tuple[bytes, int]] = [
    (b"", 0),
    (b"1", 0),
    (b"[]", 1),
    (b'{"a": [1, {"b": []}]}', 4),
    (b"[[], [], [], []]", 2),
    (b'"[[[["', 0),
    (b'["[[", "]]", "{{"]', 1),
    (b'["\\"[[", [1]]', 2),
    (b'["\\\\", [[1]]]', 3),
    (b"[[[", 3),
    (b'[[["[', 3),
    (b'"\\', 0),
    (b"]]]]", 0),
    (b"[" * 5000, 5000),
]


def test_the_depth_of_a_json_text(subtests: pytest.Subtests) -> None:
    for raw, depth in _CASES:
        with subtests.test(raw=raw, depth=depth):
            assert not nests_deeper(raw, depth)
            if depth:
                assert nests_deeper(raw, depth - 1)


_values = st.recursive(
    st.none() | st.text(alphabet='[]{}"\\a'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='[]{}"\\'), inner),
)


def _depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0


@settings(max_examples=rounds(20, 200), deadline=None)
@given(_values)
def test_the_depth_of_a_text_is_the_depth_of_its_value(value: object) -> None:
    raw, depth = msgspec.json.encode(value), _depth(value)
    assert not nests_deeper(raw, depth)
    assert depth == 0 or nests_deeper(raw, depth - 1)


def test_a_hostile_text_takes_linear_time(subtests: pytest.Subtests) -> None:
    """In quadratic time, the test would exceed its timeout."""
    for raw in [
        b'"' + b'\\"' * 500_000,
        b'"' + b'\\"' * 500_000 + b"\\",
        b'"[' * 500_000,
        b"[]," * 330_000,
    ]:
        with subtests.test(raw=raw):
            assert not nests_deeper(raw, len(raw) - 1)
            assert nests_deeper(b"[" * 20 + raw, 10)
