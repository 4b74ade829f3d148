"""Templates of tenants cost no more than their budget, whatever their source and data are."""

import inspect
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.templating import template_filters, templates
from app.templating.template_filters import CostExceeded, Run
from app.templating.templates import TemplateProblem, check, evaluate, render
from tests.lengths import rounds

_NESTED = "{{ " + "not " * 20 + "(" * 15 + "a" + ")" * 15 + " }}"
_DEEPEST = "{% if a %}" * 15 + _NESTED + "{% endif %}" * 15


def _render_with_frames(frames: int) -> str:
    templates._parse_cached.cache_clear()
    return _render_with_frames(frames - 1) if frames else render(_DEEPEST, {"a": 1}, max_chars=9)


def test_limits_on_nesting_do_not_depend_on_the_stack_of_the_caller(
    subtests: pytest.Subtests,
) -> None:
    for frames in [0, 500]:
        with subtests.test(frames=frames):
            assert _render_with_frames(frames) == "true"
            with pytest.raises(TemplateProblem):
                check("{% if a %}" + _DEEPEST + "{% endif %}", "a")


def test_a_caller_at_the_end_of_the_stack_gets_a_problem() -> None:
    check("{{ a }}", "a")  # imports Jinja
    frames = sys.getrecursionlimit() - len(inspect.stack(0)) - 150
    with pytest.raises(TemplateProblem, match="nested too deeply"):
        _render_with_frames(frames)


def test_the_output_ends_at_the_limit() -> None:
    event = {"text": "x" * 2**20, "list": [1] * 2**18}
    for source in ("{{ event.text }}" * 100, "{{ event.list }}" * 100, "y" * 9_000):
        assert len(render(source, {"event": event}, max_chars=200)) == 200
    assert render("abc{{ event.text }}", {"event": event}, max_chars=5) == "abcxx"
    assert render("abc", {"event": event}, max_chars=0) == ""
    assert len(evaluate("{{ event.text | upper }}", {"event": event}, max_chars=7)) == 7


def test_an_object_beyond_the_budget_is_cut() -> None:
    text = render("{{ event }}{{ event }}", {"event": ["x" * 3_000_000]}, max_chars=4_000_000)
    assert text == '["' + "x" * 3_000_000 + '"]'


def test_nothing_is_evaluated_after_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    charges: list[int] = []
    monkeypatch.setattr(Run, "charge", lambda _, units: charges.append(units))
    render("{{ event | upper }}" * 300, {"event": "x" * 100}, max_chars=250)
    assert charges == [100, 100, 100]


# Each would take seconds, or gigabytes, without a budget.
COSTLY = [
    "{{ event.text | upper | length }}",
    "{{ event.text | title | length }}",
    "{{ event.text | trim | length }}",
    "{{ event.list | join('0123456789') | length }}",
    "{{ event.list | tojson | length }}",
    "{{ event.surrogates | tojson | length }}",
    "{{ event.list | truncate | length }}",
    "{{ event.list == event.equal }}",
    "{{ event.text == event.text }}",
    "{{ event.text < event.text }}",
    "{{ event.needle in event.text }}",
    "{{ 2 in event.list }}",
    "{{ event.text in event.object }}",
    "{{ event.unlimited | tojson | length }}",
    "{{ event.unlimited == event.unlimited }}",
    "{{ event.quotes" + " | tojson" * 45 + " | length }}",
]


def test_operations_end_at_the_budget(subtests: pytest.Subtests) -> None:
    event = {
        "text": "a " * 2**19,
        "list": [1] * 2**18,
        "equal": [1] * 2**18,
        "surrogates": ["\ud800"] * 2**16,
        "needle": "a " * 500 + "b",
        "object": {"a": 1},
        "quotes": '"',
        "unlimited": [*([1] * 2**18), 10**5_000],  # cannot be encoded, which shows at its end
    }
    for expression in COSTLY:
        with subtests.test(expression), pytest.MonkeyPatch.context() as patch:
            charges = _record_charges(patch)
            text = render(expression * 20 + "end", {"event": event}, max_chars=10_000)
            assert "end" not in text
            # All but the last operation are within the budget, and the last one is bounded.
            assert sum(charges[:-1]) <= template_filters.MAX_COST
            assert charges[-1] <= 20 * 2**20


def _record_charges(patch: pytest.MonkeyPatch) -> list[int]:
    charges, charge = [], Run.charge

    def record(run: Run, units: int) -> None:
        charges.append(units)
        charge(run, units)

    patch.setattr(Run, "charge", record)
    return charges


def test_an_expression_beyond_the_budget_has_no_value() -> None:
    source = "{{ event | tojson | tojson | tojson | tojson | upper }}"
    assert evaluate(source, {"event": '"' * 2**20}, max_chars=100) is None
    assert render("a" + source + "b", {"event": '"' * 2**20}, max_chars=100) == "a"


def test_a_search_is_charged_by_its_worst_case(subtests: pytest.Subtests) -> None:
    """CPython's search takes quadratic time in short texts."""
    for length, needle, cost in [
        (2_499, 1_200, 302_379),
        (29_999, 99, 326_989),
        (10**6, 50, 10**6 + 50),
    ]:
        with subtests.test(length=length, needle=needle, cost=cost):
            text, item = "a" * length, "a" * needle
            run = Run({}, budget=cost)
            assert template_filters.COMPARISONS["in"](run, item, text)
            with pytest.raises(CostExceeded):
                run.charge(1)


def test_data_of_extreme_depth_render() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    other: Any = []
    for _ in range(100_000):
        other = [other]
    values = {"deep": deep, "other": other}
    assert render("{{ deep }}|{{ deep == other }}", values, max_chars=99) == "null|false"


def test_templates_are_parsed_once_unless_they_are_long() -> None:
    templates._parse_cached.cache_clear()
    for _ in range(3):
        render("{{ event }}", {"event": 1}, max_chars=9)
        render("{{ event }}" + "x" * 10_000, {"event": 1}, max_chars=9)
    info = templates._parse_cached.cache_info()
    assert (info.misses, info.hits) == (1, 2)


def test_the_import_of_templates_does_not_import_jinja() -> None:
    code = "import sys, app.templating.templates; sys.exit('jinja2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


_fragments = st.lists(
    st.sampled_from(
        [
            *("{{", "}}", "{%", "%}", "{#", "#}", "(", ")", "[", "]", "{", "}", "'x'", '"', "\\"),
            *("event", "a", "0", "1", "1.5", "none", ".", ",", ":", "|", "-", "+", "*", "~", "="),
            *("==", "<", "in", "not", "and", "or", "is", "if", "elif", "else", "endif", "for"),
            *("raw", "endraw", "default", "upper", "join", "tojson", "truncate", "round"),
        ]
    )
    | st.text(max_size=4),
    max_size=30,
).map(" ".join)
_expressions = st.recursive(
    st.sampled_from(["event", "event.a", "event['a'].b[0]", "'x'", "-1", "none", "true", "1.5"]),
    lambda inner: (
        st.builds(
            "({} {} {})".format, inner, st.sampled_from(["==", "<", "in", "and", "or"]), inner
        )
        | st.builds("({} | {})".format, inner, st.sampled_from(sorted(template_filters.FILTERS)))
        | st.builds("({} if {} else {})".format, inner, inner, inner)
        | st.builds("(not {})".format, inner)
    ),
    max_leaves=6,
)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.sampled_from("abc") | st.text(max_size=3), inner, max_size=5)
    ),
)


@settings(max_examples=rounds(25, 300), deadline=None)
@given(st.text() | _fragments, _json)
@example("{{ event[0x" + "f" * 9_000 + "] }}", None)
@example("{{ 1_000 }}{{ event.0 }}", [1])
def test_any_source_renders_or_is_refused(source: str, event: Any) -> None:
    try:
        check(source, ["event"])
    except TemplateProblem:
        with pytest.raises(TemplateProblem):
            render(source, {"event": event}, max_chars=50)
    else:
        assert len(render(source, {"event": event}, max_chars=50)) <= 50
        evaluate(source, {"event": event}, max_chars=50)


@settings(max_examples=rounds(25, 300), deadline=None)
@given(_expressions, _json)
def test_any_data_render(expression: str, event: Any) -> None:
    text = render("{{ " + expression + " }}", {"event": event}, max_chars=100)
    assert len(text) <= 100
    assert text.encode().decode() == text
    assert "\0" not in text
    evaluate("{{ " + expression + " }}", {"event": event}, max_chars=100)
