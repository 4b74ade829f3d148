"""Tools that run functions: their input, results and failures."""

import asyncio
from typing import Any

import pytest

from tests.agents.tools.executor import ToolExecutor
from tests.lengths import IS_LONG
from workers.main import WorkerProcess

ECHO_CODES = {"python": "main = lambda input: input", "javascript": "const main = (i) => i"}


@pytest.fixture(scope="module")
def tools(executor: ToolExecutor) -> ToolExecutor:
    return executor


async def _create_python(tools: ToolExecutor, code: str, **config: Any) -> str:
    return await tools.create("function", {"runtime": "python", "code": code, **config})


async def _create_javascript(tools: ToolExecutor, code: str, **config: Any) -> str:
    return await tools.create("function", {"runtime": "javascript", "code": code, **config})


# Results


# Values in one list, and those that a function returns as they are.
PYTHON_VALUES: list[tuple[str, object]] = [
    ("{'a': [1, 2.5, None, True]}", {"a": [1, 2.5, None, True]}),
    ("'Grüße 🌍'", "Grüße 🌍"),
    ("[1, (2, 3)]", [1, [2, 3]]),
    ("False", False),
    ("''", ""),
    ("{1: 2}", {"1": 2}),
    ("'a\\0b'", "ab"),
    ("2**53", 2**53),
]
PYTHON_RESULTS: list[tuple[str, object]] = [("return None", None), ("pass", None), ("return 0", 0)]
JAVASCRIPT_VALUES: list[tuple[str, object]] = [
    ("{a: [1, 2.5, null, true]}", {"a": [1, 2.5, None, True]}),
    ("'Grüße 🌍'", "Grüße 🌍"),
    ("undefined", None),
    ("false", False),
    ("new Date(0)", "1970-01-01T00:00:00.000Z"),
    ("NaN", None),
    ("{toJSON: () => 7}", 7),
]
JAVASCRIPT_RESULTS: list[tuple[str, object]] = [("return undefined", None), ("", None)]


def _join(values: list[tuple[str, object]]) -> tuple[str, object]:
    """Returns code that returns all values at once: each run takes a twentieth of a second."""
    return f"return [{', '.join(code for code, _ in values)}]", [value for _, value in values]


async def test_what_python_returns_is_the_output(
    tools: ToolExecutor, subtests: pytest.Subtests
) -> None:
    for code, value in (_join(PYTHON_VALUES), *PYTHON_RESULTS):
        with subtests.test(code=code):
            tool = await _create_python(tools, f"def main(input):\n    {code}\n")
            assert await tools.get_output(tool) == value


async def test_what_javascript_returns_is_the_output(
    tools: ToolExecutor, subtests: pytest.Subtests
) -> None:
    for code, value in (_join(JAVASCRIPT_VALUES), *JAVASCRIPT_RESULTS):
        with subtests.test(code=code):
            tool = await _create_javascript(tools, f"function main(input) {{ {code} }}")
            assert await tools.get_output(tool) == value


async def test_the_input_reaches_the_function_unchanged(
    tools: ToolExecutor, subtests: pytest.Subtests
) -> None:
    inputs: list[dict[str, Any]] = [{}, {"text": "Zoë\n🌍", "deep": {"n": [1, {"a": None}]}}]
    for runtime, code in ECHO_CODES.items():
        tool = await tools.create("function", {"runtime": runtime, "code": code})
        for arguments in inputs:
            with subtests.test(runtime=runtime, arguments=arguments):
                assert await tools.get_output(tool, arguments) == arguments


async def test_an_async_function_of_python_is_awaited(tools: ToolExecutor) -> None:
    code = "import asyncio\nasync def main(input):\n    await asyncio.sleep(0.01)\n    return 7\n"
    assert await tools.get_output(await _create_python(tools, code)) == 7


async def test_a_promise_of_javascript_is_awaited(tools: ToolExecutor) -> None:
    code = "async function main() { return await new Promise((ok) => setTimeout(ok, 5, 7)) }"
    assert await tools.get_output(await _create_javascript(tools, code)) == 7


async def test_main_may_be_exported_in_any_usual_way(
    tools: ToolExecutor, subtests: pytest.Subtests
) -> None:
    for code in [
        "module.exports = (input) => input.n + 1",
        "module.exports.main = (input) => input.n + 1",
        "exports.main = async (input) => input.n + 1",
        "const main = (input) => input.n + 1",
    ]:
        with subtests.test(code=code):
            assert await tools.get_output(await _create_javascript(tools, code), {"n": 1}) == 2


async def test_what_python_prints_does_not_disturb_the_result(tools: ToolExecutor) -> None:
    code = (
        "import sys\nprint('{\"result\": 1}')\n"
        "def main(input):\n    print('x' * 100000)\n    sys.stderr.write('y')\n    return 7\n"
    )
    assert await tools.get_output(await _create_python(tools, code)) == 7


async def test_what_javascript_prints_does_not_disturb_the_result(tools: ToolExecutor) -> None:
    code = "function main() { console.log('{\"result\":1}'); console.error('x'); return 7 }"
    assert await tools.get_output(await _create_javascript(tools, code)) == 7


async def test_a_large_input_arrives_and_is_returned(
    tools: ToolExecutor, subtests: pytest.Subtests
) -> None:
    arguments = {"text": "é" * 250_000, "more": "x" * 200_000}
    for runtime, code in ECHO_CODES.items():
        with subtests.test(runtime=runtime):
            tool = await tools.create("function", {"runtime": runtime, "code": code})
            assert await tools.get_output(tool, arguments) == arguments


# Failures


PYTHON_FAILURES: list[tuple[str, str]] = [
    ("raise ValueError('no such order')", "ValueError: no such order"),
    ("raise SystemExit(3)", "SystemExit: 3"),
    ("return main(input)", "RecursionError"),
    ("import os; os._exit(0)", "ended with 0"),
    ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "without a result"),
]
if IS_LONG:
    PYTHON_FAILURES += [
        ("return 1 / 0", "ZeroDivisionError"),
        ("import sys; sys.exit()", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("import os; os._exit(9)", "ended with 9"),
        ("import no_such_module", "ModuleNotFoundError"),
    ]


async def test_a_python_exception_is_a_runtime_error(
    tools: ToolExecutor, subtests: pytest.Subtests
) -> None:
    for code, message in PYTHON_FAILURES:
        with subtests.test(code=code):
            error = await tools.get_failure(
                await _create_python(tools, f"def main(input):\n    {code}\n")
            )
            assert (error["status"], error["code"]) == ("failed", "runtime_error")
            assert message in error["message"]


JAVASCRIPT_FAILURES: list[tuple[str, str]] = [
    ("throw new Error('no such order')", "no such order"),
    ("throw 'plain'", "plain"),
    ("throw undefined", "undefined"),
    ("return input.a.b.c", "Cannot read properties"),
    ("process.exit(3)", "ended with 3"),
    ("return Promise.reject(new Error('later'))", "later"),
    ("return new Promise(() => setTimeout(() => { throw new Error('apart') }, 1))", "apart"),
    ("return require('no-such-module')", "no-such-module"),
]


async def test_a_javascript_exception_is_a_runtime_error(
    tools: ToolExecutor, subtests: pytest.Subtests
) -> None:
    for code, message in JAVASCRIPT_FAILURES:
        with subtests.test(code=code):
            error = await tools.get_failure(
                await _create_javascript(tools, f"function main(input) {{ {code} }}")
            )
            assert error["code"] == "runtime_error"
            assert message in error["message"]


CODE_WITHOUT_MAIN: list[tuple[str, str, str]] = [
    ("python", "def other(input): pass", "main"),
    ("python", "main = 7", "not callable"),
    ("python", "def main(input)", "SyntaxError"),
    ("python", "def main(): pass", "TypeError"),
    ("python", "raise RuntimeError('on import')", "on import"),
    ("javascript", "function other() {}", "no function main"),
    ("javascript", "function main( {", "Unexpected"),
    ("javascript", "const main = 7", "no function main"),
]


async def test_code_without_a_usable_main_is_a_runtime_error(
    tools: ToolExecutor, subtests: pytest.Subtests
) -> None:
    for runtime, code, message in CODE_WITHOUT_MAIN:
        with subtests.test(runtime=runtime, code=code):
            error = await tools.get_failure(
                await tools.create("function", {"runtime": runtime, "code": code})
            )
            assert error["code"] == "runtime_error"
            assert message in error["message"]


PYTHON_VALUES_WITHOUT_JSON: list[str] = [
    "object()",
    "float('nan')",
    "{(1, 2): 3}",
    "'\\ud800'",
]
if IS_LONG:
    PYTHON_VALUES_WITHOUT_JSON += [
        "{1, 2}",
        "b'bytes'",
        "[float('inf')]",
        "__import__('datetime').date.today()",
    ]


async def test_a_result_of_python_that_is_not_json_is_invalid(
    tools: ToolExecutor, subtests: pytest.Subtests
) -> None:
    for value in PYTHON_VALUES_WITHOUT_JSON:
        with subtests.test(value=value):
            tool = await _create_python(tools, f"def main(input):\n    return {value}\n")
            assert await tools.get_error_code(tool) == "invalid_output"


async def test_a_result_of_javascript_that_is_not_json_is_invalid(
    tools: ToolExecutor, subtests: pytest.Subtests
) -> None:
    for value in ("10n", "() => 1", "Symbol('a')", "(a = {}, a.a = a, a)"):
        with subtests.test(value=value):
            tool = await _create_javascript(tools, f"let a; function main() {{ return {value} }}")
            assert await tools.get_error_code(tool) == "invalid_output"


async def test_a_result_that_contains_itself_is_invalid(tools: ToolExecutor) -> None:
    code = "def main(input):\n    a = []\n    a.append(a)\n    return a\n"
    assert await tools.get_error_code(await _create_python(tools, code)) == "invalid_output"


async def test_a_result_that_is_nested_too_deeply_is_invalid(
    tools: ToolExecutor, subtests: pytest.Subtests
) -> None:
    for levels in (100, 900):
        with subtests.test(levels=levels):
            code = "def main(input):\n    a = 1\n"
            code += f"    for _ in range({levels}):\n        a = [a]\n    return a"
            assert await tools.get_error_code(await _create_python(tools, code)) == "invalid_output"


async def test_a_huge_result_is_too_large(tools: ToolExecutor, subtests: pytest.Subtests) -> None:
    for runtime, code in [
        ("python", "main = lambda i: 'x' * 1_100_000"),
        ("python", "main = lambda i: 'x' * 50_000_000"),
        ("javascript", "const main = () => 'x'.repeat(1_100_000)"),
    ]:
        with subtests.test(runtime=runtime, code=code):
            tool = await tools.create("function", {"runtime": runtime, "code": code})
            assert await tools.get_error_code(tool) == "output_too_large"


async def test_a_large_result_is_returned_whole(
    tools: ToolExecutor, subtests: pytest.Subtests
) -> None:
    for runtime, code in [
        ("python", "main = lambda i: 'x' * 1_000_000"),
        ("javascript", "const main = () => 'x'.repeat(1_000_000)"),
    ]:
        with subtests.test(runtime=runtime, code=code):
            tool = await tools.create("function", {"runtime": runtime, "code": code})
            assert len(await tools.get_output(tool)) == 1_000_000


async def test_code_that_does_not_end_is_killed(
    tools: ToolExecutor, subtests: pytest.Subtests
) -> None:
    for runtime, code in [
        ("python", "def main(input):\n    while True: pass\n"),
        ("python", "import time\ndef main(input): time.sleep(60)\n"),
        ("python", "import time\ntime.sleep(60)\n"),
        ("javascript", "function main() { for (;;); }"),
        ("javascript", "function main() { return new Promise(() => setInterval(() => 0, 1e6)) }"),
    ]:
        with subtests.test(runtime=runtime, code=code):
            config = {"runtime": runtime, "code": code, "timeout_ms": 400}
            data = await tools.run(await tools.create("function", config))
            assert (data["status"], data["error"]["code"]) == ("timeout", "timeout")
            assert data["execution_time_ms"] < 5000


async def test_many_run_at_once_each_with_its_own_input(tools: ToolExecutor) -> None:
    tool = await _create_python(tools, "main = lambda input: input['n'] * 2")
    results = await asyncio.gather(*(tools.get_output(tool, {"n": n}) for n in range(8)))
    assert results == [n * 2 for n in range(8)]


async def test_one_run_leaves_nothing_to_the_next(tools: ToolExecutor) -> None:
    # The Landlock tier has no scratch space.
    code = """
import os
def main(input):
    exists = os.path.exists("/tmp/mark")
    try:
        open("/tmp/mark", "w").close()
    except OSError:
        pass
    return exists
"""
    tool = await _create_python(tools, code)
    assert [await tools.get_output(tool) for _ in range(2)] == [False, False]


# Memory


async def test_a_function_that_takes_too_much_memory_is_out_of_memory(tools: ToolExecutor) -> None:
    code = "import time\ndef main(input):\n    memory = 'x' * (600 << 20)\n    time.sleep(5)\n"
    failure = await tools.get_failure(await _create_python(tools, code))
    assert (failure["status"], failure["code"]) == ("failed", "out_of_memory")
    assert "512 MiB" in failure["message"]


async def test_a_function_waits_for_a_machine_that_is_short_of_memory(
    tools: ToolExecutor, worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not run, and its error says that it may be tried again."""
    monkeypatch.setattr(worker.services.sandbox.watcher, "read_available", lambda: 0)
    tool = await _create_python(tools, ECHO_CODES["python"], timeout_ms=300)
    failure = await tools.get_failure(tool)
    assert (failure["status"], failure["code"]) == ("failed", "out_of_memory")
    assert "try again later" in failure["message"]
