"""Bodies with many problems: how many an answer lists, and how many values are looked at."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta

from app.http.errors import envelope
from app.kit import validation
from app.kit.errors import Invalid

MAX_PROBLEMS = 100
MAX_BYTES = 16 * 1024
REST = "the rest was not checked"


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    name: str = ""
    color: Literal["red", "blue"] = "red"


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    numbers: list[int] = []
    values: dict[str, int] = {}
    inner: Inner | None = None
    inners: dict[str, Inner] = {}
    lists: list[list[int]] = []
    choices: dict[str, int | bool] = {}
    few: Annotated[dict[str, int], Meta(max_length=10)] = {}


class CountingMap(dict[str, Any]):
    """Counts the items that Python code takes from it."""

    lookups = 0

    def __iter__(self) -> Iterator[str]:
        for key in super().__iter__():
            self.lookups += 1
            yield key

    def items(self) -> Iterator[tuple[str, Any]]:  # type: ignore[override]
        for key in self:
            yield key, self[key]


class CountingList(list[Any]):
    lookups = 0

    def __iter__(self) -> Iterator[Any]:
        for item in super().__iter__():
            self.lookups += 1
            yield item


def find(value: dict[str, Any], kind: Any = Outer) -> Invalid:
    with pytest.raises(Invalid) as caught:
        validation.convert_field(kind, value, "config")
    return caught.value


def items(count: int, value: object, key: str = "k") -> CountingMap:
    return CountingMap({f"{key}{number}": value for number in range(count)})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("numbers", CountingList(["x"] * 5000)),
        ("values", items(5000, "x")),
        ("inner", items(5000, 1)),
        ("inners", items(5000, {"other": 1})),
        ("lists", CountingList([["x"]] * 5000)),
        ("choices", items(5000, "x")),
    ],
)
def test_looking_stops_where_the_list_is_full(
    field: str, value: CountingMap | CountingList
) -> None:
    error = find({field: value})
    assert len(error.details or {}) == MAX_PROBLEMS
    assert error.message.endswith(f"(and {MAX_PROBLEMS - 1} more; {REST})")
    assert value.lookups <= MAX_PROBLEMS + 1


def test_unknown_keys_of_the_body_itself_are_limited() -> None:
    value = items(5000, 1)
    assert len(find(value).details or {}) == MAX_PROBLEMS
    assert value.lookups <= MAX_PROBLEMS + 1


def test_a_full_list_ends_the_search_in_the_fields_that_follow() -> None:
    numbers, values = CountingList(["x"] * 200), items(200, "x")
    assert len(find({"numbers": numbers, "values": values}).details or {}) == MAX_PROBLEMS
    assert values.lookups == 0


def test_a_short_list_is_complete() -> None:
    error = find({"numbers": ["x"] * MAX_PROBLEMS})
    assert len(error.details or {}) == MAX_PROBLEMS
    assert error.message.endswith(f"(and {MAX_PROBLEMS - 1} more)")


@pytest.mark.parametrize("key", ["k" * 5000, "\x01" * 5000, "\U0001f600" * 5000, "é" * 199])
def test_long_keys_are_clipped_and_the_list_has_a_limit_in_bytes(key: str) -> None:
    value = items(300, "x", key)
    error = find({"values": value})
    assert error.details
    assert len(envelope(error)) <= MAX_BYTES
    assert max(map(len, error.details)) <= 200
    assert REST in error.message
    assert len(error.message) < 1000
    assert value.lookups <= MAX_PROBLEMS + 1


def test_a_map_with_too_many_items_is_one_problem_and_none_is_looked_at() -> None:
    value = items(80_000, "x")
    assert find({"few": value}).details == {"config.few": "must have at most 10 keys"}
    assert value.lookups == 0


def test_the_search_through_valid_items_is_limited() -> None:
    value = CountingMap(items(80_000, 1) | {"last": "x"})
    assert find({"values": value}).details == {
        "config.values": "must be a whole number",
        "config": "has too many values to check them all",
    }
    assert value.lookups <= 10_000


def test_the_message_of_a_value_is_clipped() -> None:
    error = Invalid.field("x" * 5000, "y" * 5000)
    assert error.details == {"x" * 200: "y" * 500}
    assert len(error.message) < 1000


# Looks like the start of the path in an error message of msgspec.
SEPARATOR = " - at `"


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"color": SEPARATOR * 130_000}, "config.inner.color"),
        ({"color": "a" + SEPARATOR * 130_000 + "\n"}, "config.inner.color"),
        ({SEPARATOR * 130_000 + "\n": 1}, f"config.inner.{SEPARATOR * 30}"),
    ],
)
def test_a_value_that_looks_like_a_path_is_read_in_linear_time(
    value: dict[str, Any], path: str
) -> None:
    details = find({"inner": value}).details or {}
    assert list(details) == [path[:200]]


@pytest.mark.timeout(20)
def test_many_values_that_look_like_paths_are_read_in_linear_time() -> None:
    value = {f"k{number}": {"color": SEPARATOR * 5000 + "\n"} for number in range(200)}
    assert len(find({"inners": value}).details or {}) == MAX_PROBLEMS


def test_a_text_at_the_end_of_a_message_is_no_path() -> None:
    with pytest.raises(Invalid) as caught:
        validation.decode(b'" - at `$.a`"', Literal["a"] | int)
    assert caught.value.details == {"body": "has a value that is not allowed"}


def test_the_longest_problem_fits_into_an_answer() -> None:
    problems = [(f"{number:03}" + "\x01" * 500, "\x02" * 500) for number in range(3)]
    error = Invalid.fields(problems)
    assert len(error.details or {}) == 2
    assert REST in error.message
    assert len(envelope(error)) <= MAX_BYTES


def test_a_check_without_problems_passes() -> None:
    Invalid.check([])


class _Item(msgspec.Struct):
    color: str = "red"


@pytest.mark.parametrize("body", [b"null", b" null ", b'"text"', b"{}", b'[{"color": "blue"}]'])
def test_a_body_may_be_something_else_than_an_object(body: bytes) -> None:
    kind = list[_Item] if body[:1] == b"[" else _Item | str | None
    validation.decode(body, kind)


@pytest.mark.parametrize(
    ("body", "path"), [(b' {"colr": ""}', "colr"), (b'[{}, {"colr": ""}]', "1.colr")]
)
def test_unknown_keys_are_found_at_any_depth(body: bytes, path: str) -> None:
    with pytest.raises(Invalid) as caught:
        validation.decode(body, list[_Item] if body[:1] == b"[" else _Item | None)
    assert caught.value.details == {path: "is not a known field; did you mean color?"}
