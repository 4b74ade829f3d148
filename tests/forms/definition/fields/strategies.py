"""Generates values for several types of fields."""

from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]

# With lone surrogates and NUL characters. The strategies of texts take seconds to start.
_STRANGE = st.sampled_from("\0\n\t \x7f\x85\u2028\u202e\ufeff\ud800\udfff<\"'\\\u00e9\U0001f30d")
TEXTS = st.lists(_STRANGE | st.integers(0, 0x10FFFF).map(chr), max_size=20).map("".join)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | TEXTS
    | st.sampled_from([10**400, -(10**400), "\0", "\ud800", " ", "x" * 20_000, "0" * 300])
)
LINES = st.text("abcX019 \u00e9\U0001f30d", min_size=1, max_size=8)


def generate_range(values: st.SearchStrategy[Any], low: str, high: str) -> st.SearchStrategy[Json]:
    """Generates both limits, the upper one, or none."""
    pairs = st.tuples(values, values).map(sorted).map(lambda pair: {low: pair[0], high: pair[1]})
    return pairs | values.map(lambda value: {high: value}) | st.just({})


def join(*parts: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    return st.tuples(*parts).map(lambda maps: {k: v for part in maps for k, v in part.items()})


def generate_optional(key: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    return st.just({}) | values.map(lambda value: {key: value})
