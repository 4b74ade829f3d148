"""Templates and conditions reach nothing but their values, and checks refuse what is invalid."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from app.templating.expressions import ExpressionProblem, Expressions, Source
from tests.assertions import until

_ROOT = Path(__file__).parents[3]
_NAMES = ["input", "nodes"]
_REFUSED_TEMPLATES = [
    ("{{ ''.__class__.__mro__ }}", "no keys"),
    ("{{ cycler.__init__.__globals__ }}", "'cycler' is unknown"),
    ("{{ lipsum.__globals__ }}", "'lipsum' is unknown"),
    ("{{ request }}", "known names: input, nodes"),
    ("{{ self }}", "'self'"),
    ("{{ self._TemplateReference__context }}", "'self'"),
    ("{{ namespace() }}", "calls"),
    ("{{ namespace }}", "'namespace' is unknown"),
    ("{{ dict }}", "'dict'"),
    ("{{ joiner }}", "'joiner'"),
    ("{{ '{0.__class__}'.format(1) }}", "calls"),
    ("{{ input.name.upper() }}", "calls"),
    ("{{ range.__call__(1) }}", "calls"),
    ("{{ range(*input) }}", "calls"),
    ("{{ input | attr('x') }}", "'attr' is unknown"),
    ("{{ '%s' | format(1) }}", "'format' is unknown"),
    ("{{ input | pprint }}", "'pprint' is unknown"),
    ("{{ input is callable }}", "'callable' is unknown"),
    ("{% include 'x' %}", "'include' is not allowed"),
    ("{% import 'x' as y %}", "'import' is not allowed"),
    ("{% from 'x' import y %}", "'from' is not allowed"),
    ("{% extends 'x' %}", "'extends' is not allowed"),
    ("{% block a %}{% endblock %}", "'block' is not allowed"),
    ("{% macro a() %}{% endmacro %}", "'macro' is not allowed"),
    ("{% set input.a = 1 %}", "without a dot"),
    ("{% for x in input recursive %}{% endfor %}", "recursive"),
    ("{% for x in input %}{{ loop(x) }}{% endfor %}", "calls"),
    ("{% call a() %}{% endcall %}", "'call' is not allowed"),
    ("{% autoescape false %}{% endautoescape %}", "'autoescape' is not allowed"),
    ("{% do input.clear() %}", "'do' is not allowed"),
    ("{% debug %}", "'debug' is not allowed"),
    ("{% break %}", "'break' is not allowed"),
    ("{{ ''['x'] }}", "no keys"),
    ("{{ super() }}", "calls"),
    ("{{ input | default(input()) }}", "calls"),
    ("{{ loop }}", "'loop' is unknown"),
    ("{{ __builtins__ }}", "'__builtins__' is unknown"),
    ("{{ input | safe }}", "'safe' is unknown"),
    ("{{ [x for x in input] }}", "line 1"),
    ("{{ lambda: 1 }}", "line 1"),
    ("{{ (a := 1) }}", "line 1"),
    ("{% endif %}", "line 1"),
    ("{% if input %}", "line 1"),
    ("{% if input %}{% else %}{% else %}{% endif %}", "line 1"),
    ("{% raw %}x", "line 1"),
    ("{# x", "line 1"),
    ("{{ input }", "line 1"),
    ("{{ }}", "line 1"),
    ("{{ input. }}", "line 1"),
    ("{{ input | }}", "line 1"),
    ("{{ 'a }}", "line 1"),
    ("{{ input)) }}", "line 1"),
    ("{{ input ? 1 }}", "line 1"),
    ("{{ '\\U00110000' }}", "line 1"),
    ("{{ input", "line 1"),
    ("a\n{{ input } }}", "line 2"),
    ("{{ " + "(" * 5_000 + "1" + ")" * 5_000 + " }}", "nested too deeply"),
    ("{{ " + "[" * 2_000 + "]" * 2_000 + " }}", "nested too deeply"),
    ("{{ " + "not " * 4_000 + "1 }}", "nested too deeply"),
    ("{" * 19_000, "nested too deeply"),
    ("{{ " + "-" * 9_000 + "1 }}", "nested too deeply"),
    ("{{ input" + " if input else input" * 900 + " }}", "nested too deeply"),
    ("{% if 1 %}" * 16 + "{% endif %}" * 16, "nested too deeply"),
    ("{% if 1 %}" * 500 + "{% endif %}" * 500, "nested too deeply"),
    ("{{ input" + "|upper" * 2_000 + " }}", "operations"),
    ("{{ input" + "[0]" * 2_000 + " }}", "operations"),
    ("{{ input" + ".a" * 100 + " }}", "operations"),
    ("{{ input" + " or input" * 100 + " }}", "operations"),
    ("{{ 1 }}" * 2_800, "too long"),
    ("{{ " + "9" * 5_000 + " }}", "digits"),
    ("{{ input\n[" + "9" * 5_000 + "] }}", "digits"),
    ("{{ 0x" + "f" * 10_000 + " }}", "digits"),
    ("a" * 20_001, "longer than 20000 characters"),
]
_REFUSED_CONDITIONS = [
    ("", "line 1, column 1"),
    ("input.a ==", "line 1, column 11"),
    ("request == 1", "'request' is unknown; known names: input, nodes"),
    ("input.exists(x, y)", "'y' is unknown"),
    ("open('/etc/passwd')", "function 'open' is unknown"),
    ("(" * 5_000 + "true" + ")" * 5_000, "nested too deeply"),
    ("[" * 2_000 + "]" * 2_000 + " == []", "nested too deeply"),
    ("true || " * 2_500 + "true", "longer than 20000 characters"),
]
_ACCEPTED = [
    Source("template", "{% set x = 1 %}{% for y in input %}{{ x }}{{ y }}{% endfor %}", ""),
    Source("condition", "input.l.exists(x, x.a == 1) && has(nodes.b) && type(1) == int", ""),
    Source("condition", "'a.map(q, 1)' != \"request\" // comment", ""),
]
# Attributes are keys, and missing keys are null.
_NULL = [
    "{{ input.__class__ }}",
    "{{ input.name.__class__.__mro__ }}",
    "{{ input['__class__'] }}",
    "{{ input.keys }}",
    "{{ range.__globals__ }}",
    "{{ input.name.format }}",
    "{{ [input] | map(attribute='__class__') | first }}",
    "{{ range }}",
]


async def test_checks_refuse_templates_with_the_reason(
    expressions: Expressions, subtests: pytest.Subtests
) -> None:
    for text, reason in _REFUSED_TEMPLATES:
        with subtests.test(text[:60]):
            problems = await expressions.check([Source("template", text, "a.b")], _NAMES)
            assert [path for path, _ in problems] == ["a.b"]
            assert reason in problems[0][1]
            assert len(problems[0][1]) < 400
            with pytest.raises(ExpressionProblem):
                await expressions.render("{{ 1 }}" + text, {"input": {}, "nodes": {}}, group="a")


async def test_checks_refuse_conditions_with_the_reason(
    expressions: Expressions, subtests: pytest.Subtests
) -> None:
    for text, reason in _REFUSED_CONDITIONS:
        with subtests.test(text[:60]):
            problems = await expressions.check([Source("condition", text, "c")], _NAMES)
            assert [path for path, _ in problems] == ["c"]
            assert reason in problems[0][1]
            with pytest.raises(ExpressionProblem):
                await expressions.evaluate(text, {"input": {}, "nodes": {}}, group="a")


async def test_checks_accept_valid_sources(expressions: Expressions) -> None:
    assert await expressions.check(_ACCEPTED, _NAMES) == []


async def test_attributes_of_python_are_not_reachable(
    expressions: Expressions, subtests: pytest.Subtests
) -> None:
    for text in _NULL:
        with subtests.test(text):
            values = {"input": {"name": "Ann"}}
            assert await expressions.render(text, values, group="a") is None


async def test_errors_show_no_internals(expressions: Expressions) -> None:
    for text in (
        "{{ input | upper(1) }}",
        "{{ input | default(1, 2, 3) }}",
        "{{ input | truncate(input) }}",
        "{{ input | round(10**9) }}",
        "{{ input.a | sort }}",
        "{{ input | abs }}",
        "{{ input | batch }}",
        "{{ +input }}",
    ):
        with pytest.raises(ExpressionProblem) as caught:
            await expressions.render(text, {"input": {"a": [1, "b"]}}, group="a")
        for word in ("dict", "Traceback", "0x", "jinja", "/"):
            assert word not in str(caught.value)


def _read(pid: int, name: str) -> str:
    return Path(f"/proc/{pid}/{name}").read_text(encoding="ascii")


async def test_the_process_has_no_rights(expressions: Expressions) -> None:
    await expressions.render("{{ 1 }}", {}, group="a")
    await until(lambda: len(expressions._pool._idle) == 2)
    for process in expressions._pool._started:
        child = psutil.Process(process.pid)
        assert child.environ() == {}
        assert os.getsid(child.pid) == child.pid
        status = _read(child.pid, "status")
        assert "NoNewPrivs:\t1" in status
        assert "Seccomp:\t2" in status
        assert child.num_fds() == 4  # with that of its own memory use
        assert os.geteuid() != 0 or child.uids().real == 65534
        limits = _read(child.pid, "limits").splitlines()
        hard = {line[:25].strip(): line[47:67].strip() for line in limits}
        assert hard["Max address space"] == str(256 * 1024 * 1024)
        assert {hard[f"Max {name}"] for name in ("processes", "file size", "core file size")} == {
            "0"
        }


def test_the_process_loads_no_application() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(_ROOT)!r})\n"
        "from app.sandbox import isolation\nfrom app.templating.evaluation import requests\n"
        "names = (name for name in sys.modules if name.startswith(('app', 'db', 'workers')))\n"
        "print(*sorted(name for name in names if not name.startswith('app.templating.evaluation')))"
    )
    command = [sys.executable, "-I", "-c", code]
    output = subprocess.run(command, check=True, capture_output=True, text=True, env={}).stdout
    assert set(output.split()) == {
        *(
            "app",
            "app.kit",
            "app.sandbox.isolation",
            "app.templating",
            "app.kit.texts",
        ),
        *("app.sandbox", "app.sandbox.landlock", "app.sandbox.seccomp"),
        *("app.sandbox.calls", "app.sandbox.call_groups"),
    }


def test_the_parent_does_not_import_jinja() -> None:
    code = "import sys, app.templating.expressions; sys.exit('jinja2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=_ROOT).returncode == 0
