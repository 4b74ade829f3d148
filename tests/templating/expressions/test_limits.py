"""Expressions end at their limits, and harm neither other groups nor the next evaluation."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from app.kit.errors import Unavailable
from app.templating.expressions import Budget, ExpressionProblem, Expressions, Source
from tests.assertions import until
from tests.lengths import rounds

_ITEMS = {"l": list(range(300))}
_SLOW_CONDITION = "l.map(x, l.map(y, l.map(z, x + y + z))).size() > 0"
_SLOW_TEMPLATE = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
_ROOT = Path(__file__).parents[3]


def _pids(expressions: Expressions) -> list[int]:
    return [process.pid for process in expressions._pool._started if process.pid]


def _kill_running(expressions: Expressions) -> None:
    for process in expressions._pool._running:
        os.kill(process.pid or 0, signal.SIGKILL)


async def _is_alive(expressions: Expressions, group: str = "other") -> bool:
    result: int = await expressions.render("{{ a + 1 }}", {"a": 1}, group=group)
    return result == 2


async def test_a_slow_expression_ends_while_others_go_on(own_expressions: Expressions) -> None:
    own_expressions._pool._seconds = 0.2
    await _is_alive(own_expressions)
    started = time.monotonic()
    slow = [
        asyncio.create_task(own_expressions.evaluate(_SLOW_CONDITION, _ITEMS, group="slow")),
        asyncio.create_task(own_expressions.render(_SLOW_TEMPLATE, {}, group="slow")),
    ]
    answers = 0
    while not slow[0].done():
        assert await _is_alive(own_expressions)
        answers += 1
    assert time.monotonic() - started < 2
    assert answers > 20
    for result in await asyncio.gather(*slow, return_exceptions=True):
        assert isinstance(result, ExpressionProblem)
        assert (result.code, str(result)) == (
            "expression_limit",
            "the expression takes longer than 0.2 s",
        )
    assert await _is_alive(own_expressions, "slow")


async def test_slow_groups_never_hold_all_processes(own_expressions: Expressions) -> None:
    own_expressions._pool._seconds = 0.1
    await _is_alive(own_expressions)
    for group in "ab":
        with pytest.raises(ExpressionProblem):
            await own_expressions.evaluate(_SLOW_CONDITION, _ITEMS, group=group)
    own_expressions._pool._seconds = 1
    slow = [
        asyncio.create_task(own_expressions.evaluate(_SLOW_CONDITION, _ITEMS, group=group))
        for group in "ab"
    ]
    await until(lambda: own_expressions._pool._running)
    assert await _is_alive(own_expressions)
    assert len(own_expressions._pool._running_groups) == 1
    assert sum(task.done() for task in slow) <= 1
    for task in slow:
        task.cancel()
    _kill_running(own_expressions)


BOMBS = [
    "{{ 'a' * 10**9 }}",
    "{{ 10**10**10 }}",
    "{{ [0] * 10**9 }}",
    "{{ range(10**9) }}",
    "{{ range(10**30) }}",
    "{{ 'a' | center(10**9) }}",
    "{{ 'a\\nb' | indent(10**9) }}",
    "{{ ('a' * 10**6) | replace('a', 'b' * 1000) }}",
    "{{ 'a' * 2 * 10**6 }}",
]


async def test_common_bombs_fail_at_once(
    expressions: Expressions, subtests: pytest.Subtests
) -> None:
    await _is_alive(expressions)
    pids = _pids(expressions)
    for text in BOMBS:
        with subtests.test(text):
            with pytest.raises(ExpressionProblem) as caught:
                await expressions.render(text, {}, group="a")
            assert caught.value.code == "expression_limit"
    assert _pids(expressions) == pids


# Each has a value within its time, or takes more than one of the limits.
COSTLY = [
    ("{{ event.text | upper | length }}", 2**20),
    ("{{ event.text | title | length }}", 2**20),
    ("{{ event.text | trim | length }}", 2**20 - 1),
    ("{{ event.list | join('0123456789') | length }}", 11 * 2**18 - 10),
    ("{{ event.list | tojson | length }}", 2**19 + 1),
    ("{{ event.list | truncate | length }}", 255),
    ("{{ event.list == event.equal }}", True),
    ("{{ event.text < event.text }}", False),
    ("{{ event.needle in event.text }}", False),
    ("{{ event.needle[:100] in event.text[:29999] }}", True),
    ("{{ 2 in event.list }}", False),
    ("{{ event.text in event.object }}", False),
    ("{{ event.list | join(event.text) }}", None),
    ("{{ event.quotes" + " | tojson" * 45 + " | length }}", None),
]


async def test_costly_expressions_end_within_the_limits(
    own_expressions: Expressions, subtests: pytest.Subtests
) -> None:
    own_expressions._pool._seconds = 10  # the processor may be busy
    event = {
        "text": "a " * 2**19,
        "list": [1] * 2**18,
        "equal": [1] * 2**18,
        "needle": "a " * 500 + "b",
        "object": {"a": 1},
        "quotes": '"',
    }
    for template, value in COSTLY:
        with subtests.test(template):
            if value is not None:
                rendered = await own_expressions.render(template, {"event": event}, group="a")
                assert rendered == value
                continue
            with pytest.raises(ExpressionProblem) as caught:
                await own_expressions.render(template, {"event": event}, group="a")
            assert caught.value.code == "expression_limit"


async def test_the_templates_of_one_value_share_a_budget(own_expressions: Expressions) -> None:
    """None of them is slow by itself."""
    own_expressions._pool._seconds = 10  # the processor may be busy
    slow = "{% for i in range(20000) %}{% endfor %}"
    assert await own_expressions.render([slow] * 60, {}, group="slow") == [""] * 60
    budget = Budget(seconds=0.1)
    with pytest.raises(ExpressionProblem) as caught:
        await own_expressions.render([slow] * 2_000, {}, group="slow", budget=budget)
    assert caught.value.message == "the expressions take longer than 0.1 s together"


async def test_an_expression_ends_at_the_limit_of_memory(own_expressions: Expressions) -> None:
    own_expressions._pool._seconds = 10  # the processor may be busy
    doubled = "{{ " + "[" * 10 + "'x' * 4000000" + "]" * 10 + " | list }}"
    text = "".join(f"{{% set a{number} = 'x' * 999999 %}}" for number in range(600))
    for template in (text, doubled):
        with pytest.raises(ExpressionProblem) as caught:
            await own_expressions.render(template, {}, group="a")
        assert caught.value.code == "expression_limit"
    condition = "l.map(x, l.map(y, s + s + s)).size() > 0"
    with pytest.raises(ExpressionProblem) as caught:
        await own_expressions.evaluate(condition, {"l": [1] * 99, "s": "x" * 10**6}, group="a")
    assert caught.value.code == "expression_limit"
    assert await _is_alive(own_expressions)


async def test_sizes_are_limited(expressions: Expressions) -> None:
    large = {"a": "x" * 1_050_000}
    for value, values, message in (
        ("{{ a }}", large, "the result is larger than 1 MiB"),
        ("{{ a }}!", large, "the result is larger than 1 MiB"),
        ("{{ a }}", {"a": "x" * 4_200_000}, "the values are larger than 4 MiB"),
    ):
        with pytest.raises(ExpressionProblem, match=message) as caught:
            await expressions.render(value, values, group="a")
        assert caught.value.code == "expression_limit"
    assert await expressions.render("{{ a | length }}", {"a": "x" * 4_000_000}, group="a")


async def test_a_result_that_is_too_large_names_where(expressions: Expressions) -> None:
    for template, values in (
        ("{{ a }}", {"a": ["x" * 300_000]}),
        ("{{ a }}!", {"a": "x" * 300_000}),
    ):
        with pytest.raises(ExpressionProblem, match="larger than 1 MiB") as caught:
            await expressions.render({"texts": [template] * 9}, values, group="a")
        assert caught.value.path == "texts.3"


async def test_values_of_extreme_depth_are_refused(expressions: Expressions) -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ExpressionProblem, match="nests too deeply"):
        await expressions.render("{{ a }}", {"a": deep}, group="a")
    assert await _is_alive(expressions)


async def test_a_killed_process_is_replaced(own_expressions: Expressions) -> None:
    await _is_alive(own_expressions)
    killed = own_expressions._pool._idle[-1].pid
    assert killed is not None
    os.kill(killed, signal.SIGKILL)
    assert await _is_alive(own_expressions)
    await until(lambda: killed not in _pids(own_expressions))
    own_expressions._pool._seconds = 0.2
    task = asyncio.create_task(own_expressions.evaluate(_SLOW_CONDITION, _ITEMS, group="a"))
    await until(lambda: own_expressions._pool._running)
    _kill_running(own_expressions)
    with pytest.raises(ExpressionProblem):
        await task
    assert await _is_alive(own_expressions, "a")


async def test_a_cancelled_caller_leaves_the_process_usable(own_expressions: Expressions) -> None:
    await _is_alive(own_expressions)
    pids = _pids(own_expressions)
    text = "{% for i in range(9999) %}{% for j in range(99) %}{% endfor %}{% endfor %}{{ a }}"
    task = asyncio.create_task(own_expressions.render(text, {"a": "old"}, group="a"))
    await until(lambda: own_expressions._pool._running)
    task.cancel()
    results = [await own_expressions.render("{{ a }}", {"a": i}, group="a") for i in range(20)]
    assert results == list(range(20))
    assert _pids(own_expressions) == pids


async def test_many_concurrent_calls_are_answered(expressions: Expressions) -> None:
    count = rounds(300, 2_000)
    calls = (expressions.render("{{ a }}", {"a": i}, group=f"group {i % 50}") for i in range(count))
    assert await asyncio.gather(*calls) == list(range(count))
    assert not expressions._pool._waiting


async def test_a_check_ends_at_the_first_overrun(own_expressions: Expressions) -> None:
    await _is_alive(own_expressions)
    own_expressions._pool._seconds = 0.000_1
    sources = [Source("template", "{{ a }}" * 1_500, path) for path in "xyz"]
    problems = await own_expressions.check(sources, ["a"])
    assert [path for path, _ in problems] == ["x"]


async def test_a_closed_object_has_no_process() -> None:
    expressions = Expressions(processes=1)
    await _is_alive(expressions)
    pids = _pids(expressions)
    slow = asyncio.create_task(expressions.evaluate(_SLOW_CONDITION, _ITEMS, group="a"))
    queued = asyncio.create_task(_is_alive(expressions, "a"))
    await until(lambda: expressions._pool._running)
    await expressions.close()
    results = await asyncio.gather(slow, queued, return_exceptions=True)
    assert [type(result) for result in results] == [Unavailable, Unavailable]
    assert not any(psutil.pid_exists(pid) for pid in pids)
    with pytest.raises(Unavailable):
        await _is_alive(expressions)


_PARENT = """
import asyncio, sys
from app.templating.expressions import Expressions
async def main():
    expressions = Expressions(seconds=60)
    await expressions.render("{{ 1 }}", {}, group="a")
    print(*(process.pid for process in expressions._pool._started), flush=True)
    await expressions.evaluate(sys.argv[1], {"l": list(range(300))}, group="a")
asyncio.run(main())
"""


async def test_processes_end_with_their_parent() -> None:
    """Also after SIGKILL, in the middle of an evaluation."""
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _PARENT, _SLOW_CONDITION),
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
    )
    assert parent.stdout
    children = [psutil.Process(int(pid)) for pid in (await parent.stdout.readline()).split()]
    assert len(children) == 2
    parent.kill()
    await parent.wait()
    await until(lambda: not any(child.is_running() for child in children))


async def test_the_sources_of_one_check_share_a_budget(own_expressions: Expressions) -> None:
    """None of them is slow by itself."""
    own_expressions._pool._seconds = 10  # the processor may be busy
    # Each has a text of its own, because a process keeps those that it has checked.
    text = "{% if a == @number@ %}" + "{% elif a %}" * 50 + "{% endif %}"
    sources = [
        Source("template", text.replace("@number@", str(number)), f"nodes.{number}")
        for number in range(200)
    ]
    budget = Budget(seconds=0.1)
    problems = await own_expressions.check(sources, ["a"], group="slow", budget=budget)
    assert [message for _, message in problems] == [
        "the expressions take longer than 0.1 s together"
    ]
    assert budget.seconds_left <= 0
    # The next check has a budget of its own.
    assert await own_expressions.check(sources[:3], ["a"], group="slow") == []


async def test_a_wait_for_a_process_is_bounded(own_expressions: Expressions) -> None:
    own_expressions._pool._seconds = 0.3
    await _is_alive(own_expressions)
    first = asyncio.create_task(own_expressions.render(_SLOW_TEMPLATE, {}, group="a"))
    await until(lambda: own_expressions._pool._running)
    source = Source("template", "{{ a }}", "text")
    with pytest.raises(Unavailable, match="Try again in 5 seconds"):
        await own_expressions.check([source], ["a"], group="a", budget=Budget(wait_seconds=0.05))
    with pytest.raises(ExpressionProblem):
        await first
