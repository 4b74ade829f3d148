"""The language of templates: what renders as what, and what is refused."""

from typing import Any

import pytest

from app.templating.templates import MAX_SOURCE, TemplateProblem, check, evaluate, render

DATA = {
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
    "huge": 10**5000,
    "infinite": float("inf"),
    "object": object(),
}

RENDERED = [
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
    ("[{{ event.huge }}{{ event.infinite }}{{ event.object }}]", "[]"),
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
    ("{{ true }}{{ none }}{{ -5 }}{{ 1.5 }}", "true-51.5"),
]

REFUSED = [
    ("{{ ''.__class__ }}", "no keys"),
    ("{{ ''['x'] }}", "no keys"),
    ("{{ event.name.upper() }}", "calls"),
    ("{{ event() }}", "calls"),
    ("{{ event.get('x') }}", "calls"),
    ("{{ event.__class__.__mro__[1].__subclasses__() }}", "calls"),
    ("{{ range(10**9) }}", "calls"),
    ("{{ lipsum() }}", "calls"),
    ("{{ super() }}", "calls"),
    ("{{ cycler }}", "'cycler'"),
    ("{{ self }}", "'self'"),
    ("{{ loop }}", "'loop'"),
    ("{{ __builtins__ }}", "'__builtins__'"),
    ("{{ other }}", "known names: event"),
    ("{{ 'a' * 10**9 }}", "arithmetic"),
    ("{{ 10**10**10 }}", "arithmetic"),
    ("{{ '%1000000000d' % 1 }}", "arithmetic"),
    ("{{ event.count + 1 }}", "arithmetic"),
    ("{{ -event.count }}", "arithmetic"),
    ("{{ +1 }}", "arithmetic"),
    ("{{ -'a' }}", "arithmetic"),
    ("{{ -true }}", "arithmetic"),
    ("{{ - - 1 }}", "arithmetic"),
    ("{{ event.a ~ event.b }}", "`~`"),
    ("{{ '%1000000000d' | format(1) }}", "'format'"),
    ("{{ event | center(10**9) }}", "'center'"),
    ("{{ event | attr('x') }}", "'attr'"),
    ("{{ event | map('upper') }}", "'map'"),
    ("{{ event | safe }}", "'safe'"),
    ("{{ event | pprint }}", "'pprint'"),
    ("{{ event | replace('', 'aaaa') }}", "'replace'"),
    ("{{ event | join('-' , attribute='x') }}", "arguments"),
    ("{{ event | join(event.name) }}", "at most 10 characters"),
    ("{{ event | join('12345678901') }}", "at most 10 characters"),
    ("{{ event | round(10**9) }}", "arithmetic"),
    ("{{ event | round(1000000) }}", "from 0 to 15"),
    ("{{ event | round(true) }}", "from 0 to 15"),
    ("{{ event | truncate(1) }}", "from 10 to 10000"),
    ("{{ event | truncate(10001) }}", "from 10 to 10000"),
    ("{{ event | truncate(event.count) }}", "from 10 to 10000"),
    ("{{ event | truncate(20, false, '12345678901') }}", "at most 10 characters"),
    ("{{ event | default('a', 1) }}", "true or false"),
    ("{{ event | default('a', default_value='b') }}", "arguments"),
    ("{{ event | default(*event) }}", "arguments"),
    ("{{ event | default(**event) }}", "arguments"),
    ("{{ event | upper(1) }}", "arguments"),
    ("{{ event | default(range(9)) }}", "calls"),
    ("{{ event is defined }}", "compare with `none`"),
    ("{{ event[event.name] }}", "a string or an integer"),
    ("{{ event[1.5] }}", "a string or an integer"),
    ("{{ event[true] }}", "a string or an integer"),
    ("{{ event[none] }}", "a string or an integer"),
    ("{{ event[-event.count] }}", "a string or an integer"),
    ("{{ event[0:1000] }}", "slices"),
    ("{{ event[::2] }}", "slices"),
    ("{{ [1, 2] }}", "lists"),
    ("{{ (1, 2) }}", "lists"),
    ("{{ 1, 2 }}", "lists"),
    ("{{ {'a': 1} }}", "dictionaries"),
    ("{{ [x for x in event] }}", "line 1"),
    ("{{ lambda: 1 }}", "line 1"),
    ("{{ (a := 1) }}", "line 1"),
    ("{% for x in event %}{% endfor %}", "'for'"),
    ("{% set x = event %}", "'set'"),
    ("{% set x %}a{% endset %}", "'set'"),
    ("{% include 'x' %}", "'include'"),
    ("{% extends 'x' %}", "'extends'"),
    ("{% import 'x' as y %}", "'import'"),
    ("{% from 'x' import y %}", "'from'"),
    ("{% block a %}{% endblock %}", "'block'"),
    ("{% macro a() %}{% endmacro %}", "'macro'"),
    ("{% call a() %}{% endcall %}", "'call'"),
    ("{% filter upper %}a{% endfilter %}", "'filter'"),
    ("{% with a = 1 %}{% endwith %}", "'with'"),
    ("{% autoescape false %}{% endautoescape %}", "'autoescape'"),
    ("{% trans %}a{% endtrans %}", "'trans'"),
    ("{% do event.clear() %}", "'do'"),
    ("{% debug %}", "'debug'"),
    ("{% break %}", "'break'"),
    ("{% endif %}", "line 1"),
    ("{% if event %}", "line 1"),
    ("{% if event %}{% else %}{% else %}{% endif %}", "line 1"),
    ("{% raw %}x", "line 1"),
    ("{# x", "line 1"),
    ("{{ event", "line 1"),
    ("{{ event }", "line 1"),
    ("{{ }}", "line 1"),
    ("{{ event. }}", "line 1"),
    ("{{ event | }}", "line 1"),
    ("{{ 'a }}", "line 1"),
    ("{{ event)) }}", "line 1"),
    ("{{ event ? 1 }}", "line 1"),
    ("{{ '\\d' }}", "escape"),
    ("{{ '\\N{BULLET}' }}", "escape"),
    ("{{ '\\U00110000' }}", "line 1"),
    ("{{ 1e999 }}", "too large"),
    ("{{ 9223372036854775808 }}", "too large"),
    ("{{ 0x" + "f" * 10_000 + " }}", "too large"),
    ("{{ event\n[" + "9" * 5_000 + "] }}", "too many digits"),
    ("{{ " + "(" * 5_000 + "1" + ")" * 5_000 + " }}", "nested too deeply"),
    ("{{ " + "(" * 16 + "1" + ")" * 16 + " }}", "nested too deeply"),
    ("{{ " + "[" * 5_000, "nested too deeply"),
    ("{" * 19_000, "nested too deeply"),
    ("{{ " + "not " * 4_000 + "event }}", "nested too deeply"),
    ("{{ " + "-" * 9_000 + "1 }}", "nested too deeply"),
    ("{{ event" + " if event else event" * 900 + " }}", "nested too deeply"),
    ("{% if event %}" * 300 + "{% endif %}" * 300, "nested too deeply"),
    ("{{ event" + "|upper" * 3_000 + " }}", "too long"),
    ("{{ event" + "|upper" * 60 + " }}", "too many operations"),
    ("{{ event" + ".a" * 60 + " }}", "too many operations"),
    ("{{ event" + " or event" * 60 + " }}", "too many operations"),
    ("{{ event" + "[0]" * 60 + " }}", "too many operations"),
    ("{{ 1 }}" * 2_000, "too long"),
    ("{{'\\n'}}" + "{##}" * 4_900, "too long"),
    ("a" * (MAX_SOURCE + 1), "longer than 20000"),
]


def test_a_template_renders_as_text(subtests: pytest.Subtests) -> None:
    for source, text in RENDERED:
        with subtests.test(source):
            check(source, ["event"])
            assert render(source, {"event": DATA}, max_chars=1_000) == text


def test_a_template_outside_of_the_language_is_refused(subtests: pytest.Subtests) -> None:
    for source, reason in REFUSED:
        with subtests.test(source[:60]):
            with pytest.raises(TemplateProblem) as refusal:
                check(source, ["event"])
            assert reason in str(refusal.value)
            assert len(str(refusal.value)) < 400
            with pytest.raises(TemplateProblem):
                render(source, {"event": DATA}, max_chars=10)
            with pytest.raises(TemplateProblem):
                evaluate(source, {"event": DATA}, max_chars=10)


def test_a_problem_states_its_line() -> None:
    with pytest.raises(TemplateProblem, match=r"^line 3: calls are not allowed"):
        check("a\nb\n{{ event() }}", ["event"])
    with pytest.raises(TemplateProblem, match=r"^line 2: the tag 'for' is not allowed"):
        check("a\n{% for x in event %}", ["event"])


def test_names_are_those_of_the_caller() -> None:
    source = "{{ input.a }}{{ nodes }}"
    assert render(source, {"input": {"a": 1}, "nodes": []}, max_chars=9) == "1[]"
    with pytest.raises(TemplateProblem, match="known names: event, input"):
        check(source, ["input", "event"])
    with pytest.raises(TemplateProblem, match="'nodes' is unknown"):
        render(source, {"input": {}}, max_chars=9)


_CASES: list[tuple[str, Any]] = [
    ("{{ event.count }}", 3),
    ("{{- event.yes -}}", True),
    ("{{ event.tags }}", DATA["tags"]),
    ("{{ event.missing }}", None),
    ("{{ event.name }}", "Nightly"),
    ("{{ event.count > 1 }}", True),
    ("{{ event.ratio | round }}", 2),
    ("{{ event.count }} ", "3 "),
    ("{{ event.count }}{{ event.count }}", "33"),
    ("{% if event %}{{ event.count }}{% endif %}", "3"),
    ("{% raw %}{{ 1 }}{% endraw %}", "{{ 1 }}"),
    ("plain text", "plain t"),
    ("", ""),
]


def test_a_single_expression_keeps_the_type_of_its_value(subtests: pytest.Subtests) -> None:
    for source, value in _CASES:
        with subtests.test(source=source, value=value):
            result = evaluate(source, {"event": DATA}, max_chars=7)
            assert result == value
            assert type(result) is type(value)


def test_a_template_does_not_change_its_data() -> None:
    event = {"list": [3, 1], "text": "a"}
    render(
        "{{ event.list | join }}{{ event | tojson }}{{ event.clear }}",
        {"event": event},
        max_chars=99,
    )
    assert event == {"list": [3, 1], "text": "a"}
