"""Any template over any data has a result or a problem, and never ends the process by an error."""

from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.templating.evaluation import requests, templates
from app.templating.evaluation.filters import FILTERS
from tests.lengths import rounds

_fragments = st.lists(
    st.sampled_from(
        [
            *("{{", "}}", "{%", "%}", "{#", "#}", "(", ")", "[", "]", "{", "}", "'x'", '"', "\\"),
            *("event", "a", "0", "1", "1.5", "none", ".", ",", ":", "|", "-", "+", "*", "~", "="),
            *("==", "<", "in", "not", "and", "or", "is", "if", "elif", "else", "endif", "for"),
            *("set", "with", "raw", "endraw", "default", "upper", "join", "tojson", "truncate"),
        ]
    )
    | st.text(max_size=4),
    max_size=30,
).map(" ".join)
_expressions = st.recursive(
    st.sampled_from(["event", "event.a", "event['a'].b[0]", "'x'", "-1", "none", "true", "1.5"]),
    lambda inner: (
        st.builds(
            "({} {} {})".format,
            inner,
            st.sampled_from(["==", "<", "in", "and", "or", "+", "/", "%", "~"]),
            inner,
        )
        | st.builds(
            "({} | {})".format,
            inner,
            st.sampled_from(sorted(name for name in FILTERS if name.isalpha())),
        )
        | st.builds("({} if {} else {})".format, inner, inner, inner)
        | st.builds("(not {})".format, inner)
        | st.builds("({}[{}:])".format, inner, inner)
    ),
    max_leaves=6,
)
_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.sampled_from("abc") | st.text(max_size=3), inner, max_size=5)
    ),
)


def _ask(**request: Any) -> requests.Answer:
    return requests.respond(msgspec.json.encode(request))


def _render(template: str, event: Any) -> Any:
    """Returns None when there is a problem."""
    answer = _ask(
        operation="render",
        texts=[[template, "place"]],
        values={"event": event},
        free_bytes=1_000,
        max_chars=50,
        as_texts=True,
    )
    if answer.problem is not None:
        code, _, path = answer.problem
        assert (code in {"expression_error", "expression_limit"}, path) == (True, "place")
        return None
    ((text,), _) = msgspec.json.decode(answer.value)
    return text


@pytest.mark.filterwarnings("ignore:invalid escape sequence")
@settings(max_examples=rounds(25, 300), deadline=None)
@given(st.text() | _fragments, _json)
@example("{{ event[0x" + "f" * 9_000 + "] }}", None)
@example("{{ 1_000 }}{{ event.0 }}", [1])
def test_any_source_renders_or_is_refused(source: str, event: Any) -> None:
    check = _ask(operation="check", kind="template", text=source, names=["event"])
    text = _render(source, event)
    assert text is None or len(text) <= 50
    if check.problem is not None:
        assert text is None


@settings(max_examples=rounds(25, 300), deadline=None)
@given(_expressions, _json)
def test_any_data_render_or_have_a_problem(expression: str, event: Any) -> None:
    text = _render("{{ " + expression + " }}", event)
    assert text is None or (len(text) <= 50 and "\0" not in text)


def test_templates_are_compiled_once_unless_they_are_long() -> None:
    short, long = "{{ event }}", "{{ event }}" + "x" * 4_000
    assert templates.load(short) is templates.load(short)
    assert templates.load(long) is not templates.load(long)
