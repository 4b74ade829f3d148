"""What templates render as, and what they may not use."""

from typing import Any

import pytest

from app.templating import templates
from app.templating.expressions import (
    ExpressionProblem,
    Expressions,
    Source,
    has_templates,
    list_sources,
)
from tests.templating.test_templates import DATA, RENDERED

# What the child receives is JSON.
_JSON_DATA = {key: item for key, item in DATA.items() if key not in {"huge", "object"}}
# Both languages accept these; Jinja's compiler and limits differ in these on purpose: none.
_DIFFERENCES: set[str] = set()

_VALUES = {
    "input": {
        "name": "Ann",
        "amount": 100.5,
        "count": 3,
        "yes": True,
        "nothing": None,
        "tags": ["a", "b"],
        "rows": [{"k": "x", "n": 2}, {"k": "y", "n": 1}, {"n": 5}],
        "text": "ünïcode",
        "object": {"a": {"b": 1}},
    }
}
_TYPES: list[tuple[str, Any]] = [
    ("{{ input.count }}", 3),
    ("{{ input.amount }}", 100.5),
    ("{{- input.yes -}}", True),
    ("{{ input.nothing }}", None),
    ("{{ input.missing.deep[0] }}", None),
    ("{{ input.tags }}", ["a", "b"]),
    ("{{ input.object }}", {"a": {"b": 1}}),
    ("{{ input.name }}", "Ann"),
    ("{{ input.count + 1 }}", 4),
    ("{{ input.count / 2 }}", 1.5),
    ("{{ -input.count ** 2 }}", 9),
    ("{{ input.count > 1 }}", True),
    ("{{ [1, (2, 3)] }}", [1, [2, 3]]),
    ("{{ {'a': input.tags} }}", {"a": ["a", "b"]}),
    ("{{ input.tags | map('upper') }}", ["A", "B"]),
    ("{{ input.rows | map(attribute='k') | list }}", ["x", "y", None]),
    ("{{ input.rows | selectattr('n', 'gt', 1) | map(attribute='n') }}", [2, 5]),
    ("{{ input.rows | sort(attribute='n') | map(attribute='n') | join('-') }}", "1-2-5"),
    ("{{ input.rows | sum(attribute='n') }}", 8),
    ("{{ input.object | items }}", [["a", {"b": 1}]]),
    ("{{ input.tags[1:] }}", ["b"]),
    ("{{ range(3) }}", [0, 1, 2]),
    ("{{ 'x' if input.missing }}", None),
    ("{{ 7.5 | round(method='floor') }}", 7),
    ("{{ input.count }} ", "3 "),
    ("{{ input.count }}{{ input.yes }}", "3true"),
    ("{{ input.name ~ input.nothing ~ input.tags ~ true }}", 'Ann["a","b"]true'),
    ("{% for tag in input.tags %}{{ loop.index }}{{ tag }}{% endfor %}", "1a2b"),
    ("{% for x in input.missing %}{{ x }}{% else %}none{% endfor %}", "none"),
    ("{% for k, v in input.object | items %}{{ k }}={{ v }}{% endfor %}", 'a={"b":1}'),
    ("{% for x in range(4) %}{{ loop.cycle('a', 'b') }}{% endfor %}", "abab"),
    ("{% set x = 5 %}{{ x }}{% set y %}[{{ x }}]{% endset %}{{ y }}", "5[5]"),
    ("{{ input.name is defined }}{{ input.missing is defined }}", "truefalse"),
    ("{{ '<b>' | tojson }}{{ '<' | e }}", '"<b>"&lt;'),
    ("{{ input.name | replace('n', 'x') | center(5) }}|", " Axx |"),
    ("{{ 'a\\nb' | indent(2) }}.", "a\n  b."),
    ("{# note #}", ""),
]


async def test_both_template_languages_agree(
    expressions: Expressions, subtests: pytest.Subtests
) -> None:
    for source, _ in RENDERED:
        if source in _DIFFERENCES:
            continue
        with subtests.test(source):
            expected = templates.evaluate(source, {"event": _JSON_DATA}, max_chars=10_000)
            result = await expressions.render(source, {"event": _JSON_DATA}, group="a")
            if not has_templates(source):
                assert result == source
            else:
                assert result == expected
                assert await expressions.check([Source("template", source, "")], ["event"]) == []


async def test_a_single_expression_keeps_the_type_of_its_value(
    expressions: Expressions, subtests: pytest.Subtests
) -> None:
    for source, value in _TYPES:
        with subtests.test(source):
            result = await expressions.render(source, _VALUES, group="a")
            assert result == value
            assert type(result) is type(value)


async def test_texts_anywhere_in_a_value_are_rendered(expressions: Expressions) -> None:
    value = {"a": ["{{ input.count }}", {"{{ key }}": "x{{ input.name }}"}], "b": 5, "c": None}
    rendered = await expressions.render(value, _VALUES, group="a")
    assert rendered == {"a": [3, {"{{ key }}": "xAnn"}], "b": 5, "c": None}


async def test_a_problem_has_the_path_of_its_text(expressions: Expressions) -> None:
    for value, path in (
        ({"values": {"name": "{{ 1 + 'a' }}"}}, "values.name"),
        ({"rows": ["a", "{{ missing }}"]}, "rows.1"),
        ("{{ 1 / 0 }}", ""),
    ):
        with pytest.raises(ExpressionProblem) as caught:
            await expressions.render(value, _VALUES, group="a")
        assert (caught.value.path, caught.value.code) == (path, "expression_error")


async def test_a_value_without_templates_starts_no_process() -> None:
    unused = Expressions()
    value = {"a": ["x", 1, {"b": "{ c }"}]}
    assert await unused.render(value, {}, group="a") is value
    assert unused._pool._started == set()
    await unused.close()


def test_templates_are_listed_with_their_paths() -> None:
    value = {"a": "x", "b": ["{{ 1 }}", {"c": "{% if 1 %}{% endif %}"}], "d": "{# #}"}
    assert list_sources(value, "config") == [
        Source("template", "{{ 1 }}", "config.b.0"),
        Source("template", "{% if 1 %}{% endif %}", "config.b.1.c"),
        Source("template", "{# #}", "config.d"),
    ]
    assert list_sources("{{ 1 }}", "") == [Source("template", "{{ 1 }}", "")]
    deep: Any = "{{ 1 }}"
    for _ in range(10_000):
        deep = [deep]
    assert has_templates(deep)


async def test_texts_can_be_stored(expressions: Expressions) -> None:
    values = {"input": "a\ud800\0"}
    assert await expressions.render("{{ input }}", values, group="a") == "a?"
    assert await expressions.render("{{ '\\ud800\\x00' }}|", values, group="a") == "?|"
