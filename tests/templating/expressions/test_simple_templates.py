"""Templates of `app.templating.templates`, checked and rendered in processes with limits."""

from typing import Any

import pytest

from app.templating.expressions import ExpressionProblem, Expressions, Source

_VALUES = {"event": {"n": 7, "list": [1, None], "text": "a\x00b"}}


async def _render(expressions: Expressions, value: Any, **options: Any) -> Any:
    values = options.pop("values", _VALUES)
    options = {"group": "t", "max_chars": 1_000, "keeps_types": True, **options}
    return await expressions.render_simple(value, values, **options)


async def test_values_keep_their_types_unless_texts_are_wanted(
    expressions: Expressions, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[Any, Any, Any]] = [
        ("plain {", "plain {", "plain {"),
        (7, 7, 7),
        ("{{ event.n }}", 7, "7"),
        ("n={{ event.n }}", "n=7", "n=7"),
        ("{{ event.list }}", [1, None], "[1,null]"),
        ("{{ event.missing }}", None, ""),
        ("{{ event.text }}", "ab", "ab"),
        ({"{{ k }}": ["{{ event.n }}"]}, {"{{ k }}": [7]}, {"{{ k }}": ["7"]}),
    ]
    for value, typed, text in cases:
        with subtests.test(str(value)):
            assert await _render(expressions, value) == typed
            assert await _render(expressions, value, keeps_types=False) == text


async def test_a_text_is_cut(expressions: Expressions) -> None:
    values = {"event": "x" * 50}
    assert await _render(expressions, "{{ event }}", values=values, max_chars=10) == "x" * 10


async def test_problems_name_their_place(
    expressions: Expressions, subtests: pytest.Subtests
) -> None:
    slow = "{{ event | title | title | title | length }}"
    cases: list[tuple[str, Any, Any, str, str]] = [
        ("invalid", {"a": ["{{"]}, "", "a.0", "line 1: unexpected 'end of template'"),
        (
            "unknown name",
            {"a": "{{ b }}"},
            "",
            "a",
            "line 1: the name 'b' is unknown; known names: event",
        ),
        ("one budget", [slow] * 9, "a " * 15_000, "6", "the templates take too many operations"),
        ("large", ["{{ event }}"] * 4, "a" * 300_000, "3", "the result is larger than 1 MiB"),
    ]
    for name, value, event, path, message in cases:
        with subtests.test(name):
            with pytest.raises(ExpressionProblem) as raised:
                await _render(expressions, value, values={"event": event}, max_chars=10**6)
            assert (raised.value.path, raised.value.message) == (path, message)


async def test_all_invalid_templates_are_named(expressions: Expressions) -> None:
    sources = [
        Source("template", "{{ event.a }}", "a"),
        Source("template", "{{ a }}", "b"),
        Source("template", "{{ event() }}", "c"),
    ]
    problems = await expressions.check_simple(sources, ["event"], group="t")
    assert [path for path, _ in problems] == ["b", "c"]
    assert await expressions.check_simple([], ["event"], group="t") == []
