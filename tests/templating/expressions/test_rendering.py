"""What templates render as, and what they may not use."""

from typing import Any

import pytest

from app.templating.expressions import (
    ExpressionProblem,
    Expressions,
    Source,
    has_templates,
    list_sources,
)
from app.templating.expressions.sources import split_sources

_EVENT = {
    "name": "Nightly import",
    "error": None,
    "count": 3,
    "ratio": 2.345,
    "zero": 0,
    "yes": True,
    "no": False,
    "empty": "",
    "words": "it's a-new day",
    "tags": ["a", "b", 3, None, True, {"k": [1]}],
    "items": "the key",
    "get": {"keys": "deep key"},
    "two words": "both",
    "nothing": [],
    "infinite": float("inf"),
}

_TEXTS = [
    ("", ""),
    ("plain", "plain"),
    ("two\nlines\n", "two\nlines\n"),
    ("# for x in y\n## set", "# for x in y\n## set"),
    ("a } b { c %} d", "a } b { c %} d"),
    ("{# {{ event.__class__ }} #}x", "x"),
    ("{% raw %}{{ literal }}{% endraw %}", "{{ literal }}"),
    ("{{ event.name }}!", "Nightly import!"),
    ("{{ event['name'] }} {{ event['two words'] }}", "Nightly import both"),
    ("a \n{{- event.count -}}\n b", "a3b"),
    ("[{{ event.error }}]", "[]"),
    ("[{{ event.missing.a.b['c'].d[0] }}]", "[]"),
    ("[{{ event.name.upper }}]", "[]"),
    ("[{{ event.name[0] }}]", "[]"),
    ("[{{ event.__class__ }}{{ event['__class__'] }}{{ event.tags.append }}]", "[]"),
    ("{{ event.items }} {{ event.get.keys }}", "the key deep key"),
    ("{{ event.yes }} {{ event.no }}", "true false"),
    ("{{ event.count }} {{ event.ratio }}", "3 2.345"),
    ("[{{ event.infinite }}]", "[]"),
    ("{{ event.tags }}", '["a","b",3,null,true,{"k":[1]}]'),
    ("{{ event.get }}", '{"keys":"deep key"}'),
    ("{{ event.tags[0] }}{{ event.tags.1 }}{{ event.tags[-4] }}{{ event.tags[-6] }}", "ab3a"),
    ("[{{ event.tags[99] }}{{ event.tags[-99] }}{{ event.tags['0'] }}]", "[]"),
    ("{{ event.error | default('unknown') }}", "unknown"),
    ("{{ event.missing.deep | default(event.name) }}", "Nightly import"),
    ("[{{ event.empty | default('x') }}]", "[]"),
    ("{{ event.empty | default('x', true) }}", "x"),
    ("{{ event.zero | default(default_value=-1, boolean=true) }}", "-1"),
    ("{{ event.name | upper }} {{ event.name | lower }}", "NIGHTLY IMPORT nightly import"),
    ("{{ event.words | capitalize }}", "It's a-new day"),
    ("{{ event.words | title }}", "It's A-New Day"),
    ("[{{ '  x ' | trim }}]", "[x]"),
    ("{{ event.tags | length }} {{ event.get | length }} {{ event.name | length }}", "6 1 14"),
    ("{{ event.missing | length }} {{ event.count | length }}", "0 0"),
    ("{{ event.ratio | round }} {{ event.ratio | round(1) }}", "2 2.3"),
    ("{{ event.name | round }} {{ event.count | round(2) }}", "Nightly import 3"),
    ("[{{ event.infinite | round }}]", "[]"),
    ("{{ event.name | tojson }} {{ event.missing | tojson }}", '"Nightly import" null'),
    ("{{ event.name | truncate(12) }}", "Nightly..."),
    ("{{ event.name | truncate(12, true) }}", "Nightly i..."),
    ("{{ event.name | truncate(12, end='~') }}", "Nightly~"),
    ("{{ event.name | truncate(14) }}", "Nightly import"),
    ("{{ event.tags | first }} {{ event.name | last }}", "a t"),
    ("[{{ event.nothing | first }}{{ event.get | first }}{{ event.count | last }}]", "[]"),
    ("{{ event.tags | join(', ') }}", 'a, b, 3, , true, {"k":[1]}'),
    ("{{ event.name | join('-') }}", "Nightly import"),
    ("{{ 'yes' if event.count > 2 else 'no' }}", "yes"),
    ("[{{ 'yes' if event.count > 5 }}]", "[]"),
    ("{{ 1 < event.count <= 3 }} {{ 1 < event.count < 3 }}", "true false"),
    ("{{ event.name > 5 }} {{ event.missing >= 0 }} {{ event.yes > 0 }}", "false false false"),
    ("{{ 'a' < 'b' }} {{ event.tags < event.tags }}", "true false"),
    ("{{ event.tags == event.tags }} {{ event.tags != event.get }}", "true true"),
    ("{{ event.count == '3' }} {{ event.name == 3 }} {{ event.get == 1 }}", "false false false"),
    ("{{ event.error == none }} {{ event.missing == none }}", "true true"),
    (
        "{{ 'a' in event.tags }} {{ 'port' in event.name }} {{ 'keys' in event.get }}",
        "true " * 2 + "true",
    ),
    (
        "{{ 3 in event.name }} {{ 'x' not in event.tags }} {{ 1 in event.count }}",
        "false true false",
    ),
    ("{{ event.get in event.tags }} {{ event.get in event.get }}", "false false"),
    ("{{ event.empty or 'else' }} {{ event.name and event.count }}", "else 3"),
    ("{{ not event.count }}", "false"),
    ("{% if event.no %}a{% elif event.count == 3 %}b{% else %}c{% endif %}", "b"),
    ("{% if event.missing %}a{% elif event.no %}b{% else %}c{% endif %}", "c"),
    ("{% if event.yes %}{% if event.no %}a{% endif %}b{% endif %}", "b"),
    ("{{ (event.missing or event.get).keys }}", "deep key"),
    ("{{ event.count }}{{ 'a' 'b' }}{{ '\\u00fc\\n' }}", "3abü\n"),
    ("{{ '\\ud800\\x00' }}|\0", "?|"),
    ("{{ 'x' | truncate(10) | truncate(10000) }}{{ 0.5 | round(0) | round(15) }}", "x0"),
    ("{{ 9223372036854775807 }} {{ -9223372036854775807 }}", f"{2**63 - 1} {1 - 2**63}"),
    ("{{ " + "(" * 15 + "1" + ")" * 15 + " }}", "1"),
    ("{{ 0x" + "f" * 25 + " }}", str(2**100 - 1)),
    ("{{ event" + ".a" * 50 + " }}{{ event.name" + " | upper" * 50 + " }}", "NIGHTLY IMPORT"),
    ("{% if event %}" * 15 + "{{ " + "not " * 20 + "1 }}" + "{% endif %}" * 15, "true"),
    ("{{ true }}{{ none }}{{ -5 }}{{ 1.5 }}", "true-51.5"),
]

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
    ("{% raw %}{{ 1 }}{% endraw %}", "{{ 1 }}"),
]


async def test_a_template_renders_as_text(
    expressions: Expressions, subtests: pytest.Subtests
) -> None:
    for source, text in _TEXTS:
        with subtests.test(source):
            assert await expressions.check([Source("template", source, "")], ["event"]) == []
            # The comment makes a template of texts without one.
            rendered = await expressions.render(
                source + "{##}", {"event": _EVENT}, group="a", as_texts=True
            )
            assert rendered == text


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


async def test_each_result_is_a_text_where_texts_are_wanted(expressions: Expressions) -> None:
    value = {
        "number": "{{ input.count }}",
        "list": ["{{ input.tags }}", 7],
        "null": "{{ input.missing }}",
    }
    rendered = await expressions.render(value, _VALUES, group="a", as_texts=True)
    assert rendered == {"number": "3", "list": ['["a","b"]', 7], "null": ""}


async def test_texts_are_cut(expressions: Expressions, subtests: pytest.Subtests) -> None:
    values = {"a": "x" * 2_000_000, "l": [1] * 100}
    for source, typed, text in [
        ("{{ a }}", "xxxxx", "xxxxx"),
        ("ab{{ a }}", "abxxx", "abxxx"),
        ("{{ a | upper }}", "XXXXX", "XXXXX"),
        ("{{ l }}", [1] * 100, "[1,1,"),
        ("{{ l }}.", "[1,1,", "[1,1,"),
        ("long {{ a }}{{ 1 / 0 }}", "long ", "long "),
        ("{{ a }}" * 100, "xxxxx", "xxxxx"),
    ]:
        for as_texts, expected in ((False, typed), (True, text)):
            with subtests.test(source[:50], as_texts=as_texts):
                rendered = await expressions.render(
                    source, values, group="a", max_chars=5, as_texts=as_texts
                )
                assert rendered == expected


async def test_a_problem_names_its_line(expressions: Expressions) -> None:
    for text, message in (
        ("a\n\n{{ b }}{{ c }}", "line 3: the name 'b' is unknown; known names: input"),
        ("{{ input }}\n{{ input() }}", "line 2: calls are not allowed"),
        ("a\n{% include 'b' %}", "line 2: the tag 'include' is not allowed"),
        ("a\n{{ input | sort }}", "line 2: "),
    ):
        with pytest.raises(ExpressionProblem) as caught:
            await expressions.render(text, {"input": 1}, group="a")
        assert caught.value.message.startswith(message)


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


def test_many_templates_are_evaluated_in_parts(subtests: pytest.Subtests) -> None:
    for lengths, parts in [
        ([10] * 101, [50, 50, 1]),
        ([3_000] * 5, [2, 2, 1]),
        ([20_000, 20_000, 10], [1, 1, 1]),
        ([10], [1]),
        ([], []),
    ]:
        with subtests.test(lengths=lengths):
            sources = [Source("template", "x" * length, "") for length in lengths]
            split = list(split_sources(sources))
            assert [len(part) for part in split] == parts
            assert [source for part in split for source in part] == sources


async def test_the_results_of_parts_have_their_places(expressions: Expressions) -> None:
    value = {"a": [f"{{{{ input.count + {number} }}}}" for number in range(120)], "b": "{{ 1 }}"}
    rendered = await expressions.render(value, _VALUES, group="a")
    assert rendered == {"a": list(range(3, 123)), "b": 1}
    with pytest.raises(ExpressionProblem) as caught:
        await expressions.render({**value, "c": ["{{ 1 / 0 }}"]}, _VALUES, group="a")
    assert caught.value.path == "c.0"


async def test_texts_can_be_stored(expressions: Expressions) -> None:
    values = {"input": "a\ud800\0"}
    assert await expressions.render("{{ input }}", values, group="a") == "a?"
    assert await expressions.render("{{ '\\ud800\\x00' }}|", values, group="a") == "?|"
    assert await expressions.render("{{ 1 }}\ud800\0", values, group="a") == "1?"
