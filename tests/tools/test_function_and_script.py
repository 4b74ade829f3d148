"""Tools that run the tenant's own code: what goes in, what comes out, and how it can end."""

import asyncio
from typing import Any

import pytest

from tests.asking import refused
from tests.tools.factories import Bench, bench_of
from tests.world import World
from workers.main import WorkerProcess


@pytest.fixture(scope="module")
async def bench(world: World, worker: WorkerProcess) -> Bench:
    return await bench_of(world)


async def _python(bench: Bench, code: str, **config: Any) -> str:
    return await bench.create("function", {"runtime": "python", "code": code, **config})


async def _javascript(bench: Bench, code: str, **config: Any) -> str:
    return await bench.create("function", {"runtime": "javascript", "code": code, **config})


async def _script(bench: Bench, runtime: str, *files: str, **config: Any) -> str:
    """The first text is where it begins; the others are named `a`, `b` and so on."""
    names = ["main.txt", *(f"file_{letter}.py" for letter in "abc")]
    given = dict(zip(names, files, strict=False))
    whole = {"runtime": runtime, "entrypoint": "main.txt", "files": given, **config}
    return await bench.create("script", whole)


# What a function returns


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("return {'a': [1, 2.5, None, True]}", {"a": [1, 2.5, None, True]}),
        ("return 'Grüße 🌍'", "Grüße 🌍"),
        ("return [1, (2, 3)]", [1, [2, 3]]),
        ("return None", None),
        ("pass", None),
        ("return 0", 0),
        ("return False", False),
        ("return ''", ""),
        ("return {1: 2}", {"1": 2}),
        ("return 'a\\0b'", "ab"),
        ("return 2**53", 2**53),
    ],
)
async def test_what_python_returns_is_the_output(bench: Bench, code: str, value: object) -> None:
    tool = await _python(bench, f"def main(input):\n    {code}\n")
    assert await bench.output(tool) == value


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("return {a: [1, 2.5, null, true]}", {"a": [1, 2.5, None, True]}),
        ("return 'Grüße 🌍'", "Grüße 🌍"),
        ("return undefined", None),
        ("", None),
        ("return 0", 0),
        ("return false", False),
        ("return new Date(0)", "1970-01-01T00:00:00.000Z"),
        ("return NaN", None),
        ("return {toJSON: () => 7}", 7),
    ],
)
async def test_what_javascript_returns_is_the_output(
    bench: Bench, code: str, value: object
) -> None:
    tool = await _javascript(bench, f"function main(input) {{ {code} }}")
    assert await bench.output(tool) == value


@pytest.mark.parametrize("given", [{}, {"text": "Zoë\n🌍", "deep": {"n": [1, {"a": None}]}}])
async def test_the_input_reaches_python_as_it_is(bench: Bench, given: dict[str, Any]) -> None:
    assert await bench.output(await _python(bench, "main = lambda input: input"), given) == given


@pytest.mark.parametrize("given", [{}, {"text": "Zoë\n🌍", "deep": {"n": [1, {"a": None}]}}])
async def test_the_input_reaches_javascript_as_it_is(bench: Bench, given: dict[str, Any]) -> None:
    assert await bench.output(await _javascript(bench, "const main = (i) => i"), given) == given


async def test_an_async_function_of_python_is_awaited(bench: Bench) -> None:
    code = "import asyncio\nasync def main(input):\n    await asyncio.sleep(0.01)\n    return 7\n"
    assert await bench.output(await _python(bench, code)) == 7


async def test_a_promise_of_javascript_is_awaited(bench: Bench) -> None:
    code = "async function main() { return await new Promise((ok) => setTimeout(ok, 5, 7)) }"
    assert await bench.output(await _javascript(bench, code)) == 7


@pytest.mark.parametrize(
    "code",
    [
        "module.exports = (input) => input.n + 1",
        "module.exports.main = (input) => input.n + 1",
        "exports.main = async (input) => input.n + 1",
        "const main = (input) => input.n + 1",
    ],
)
async def test_main_may_be_exported_in_any_usual_way(bench: Bench, code: str) -> None:
    assert await bench.output(await _javascript(bench, code), {"n": 1}) == 2


async def test_what_python_prints_does_not_disturb_the_result(bench: Bench) -> None:
    code = (
        "import sys\nprint('{\"result\": 1}')\n"
        "def main(input):\n    print('x' * 100000)\n    sys.stderr.write('y')\n    return 7\n"
    )
    assert await bench.output(await _python(bench, code)) == 7


async def test_what_javascript_prints_does_not_disturb_the_result(bench: Bench) -> None:
    code = "function main() { console.log('{\"result\":1}'); console.error('x'); return 7 }"
    assert await bench.output(await _javascript(bench, code)) == 7


@pytest.mark.parametrize("runtime", ["python", "javascript"])
async def test_a_big_input_arrives_and_comes_back(bench: Bench, runtime: str) -> None:
    code = {"python": "main = lambda i: i", "javascript": "const main = (i) => i"}[runtime]
    tool = await bench.create("function", {"runtime": runtime, "code": code})
    given = {"text": "é" * 250_000, "more": "x" * 200_000}
    assert await bench.output(tool, given) == given


# How a function fails


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise ValueError('no such order')", "ValueError: no such order"),
        ("return 1 / 0", "ZeroDivisionError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("import sys; sys.exit()", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("return main(input)", "RecursionError"),
        ("import os; os._exit(0)", "ended with 0"),
        ("import os; os._exit(9)", "ended with 9"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "without a result"),
        ("import no_such_module", "ModuleNotFoundError"),
    ],
)
async def test_an_exception_of_python_is_told(bench: Bench, code: str, said: str) -> None:
    error = await bench.failure(await _python(bench, f"def main(input):\n    {code}\n"))
    assert (error["status"], error["code"]) == ("failed", "runtime_error")
    assert said in error["message"]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("throw new Error('no such order')", "no such order"),
        ("throw 'plain'", "plain"),
        ("throw undefined", "undefined"),
        ("return input.a.b.c", "Cannot read properties"),
        ("process.exit(3)", "ended with 3"),
        ("return Promise.reject(new Error('later'))", "later"),
        ("return new Promise(() => setTimeout(() => { throw new Error('apart') }, 1))", "apart"),
        ("return require('no-such-module')", "no-such-module"),
    ],
)
async def test_an_exception_of_javascript_is_told(bench: Bench, code: str, said: str) -> None:
    error = await bench.failure(await _javascript(bench, f"function main(input) {{ {code} }}"))
    assert error["code"] == "runtime_error"
    assert said in error["message"]


@pytest.mark.parametrize(
    ("runtime", "code", "said"),
    [
        ("python", "def other(input): pass", "main"),
        ("python", "main = 7", "not callable"),
        ("python", "def main(input)", "SyntaxError"),
        ("python", "def main(): pass", "TypeError"),
        ("python", "raise RuntimeError('on import')", "on import"),
        ("javascript", "function other() {}", "no function main"),
        ("javascript", "function main( {", "Unexpected"),
        ("javascript", "const main = 7", "no function main"),
    ],
)
async def test_code_without_a_usable_main_is_told(
    bench: Bench, runtime: str, code: str, said: str
) -> None:
    error = await bench.failure(await bench.create("function", {"runtime": runtime, "code": code}))
    assert error["code"] == "runtime_error"
    assert said in error["message"]


@pytest.mark.parametrize(
    "value",
    [
        "object()",
        "{1, 2}",
        "b'bytes'",
        "float('nan')",
        "[float('inf')]",
        "{(1, 2): 3}",
        "__import__('datetime').date.today()",
        "'\\ud800'",
    ],
)
async def test_a_result_of_python_that_is_not_json_is_invalid(bench: Bench, value: str) -> None:
    tool = await _python(bench, f"def main(input):\n    return {value}\n")
    assert await bench.code(tool) == "invalid_output"


@pytest.mark.parametrize("value", ["10n", "() => 1", "Symbol('a')", "(a = {}, a.a = a, a)"])
async def test_a_result_of_javascript_that_is_not_json_is_invalid(bench: Bench, value: str) -> None:
    tool = await _javascript(bench, f"let a; function main() {{ return {value} }}")
    assert await bench.code(tool) == "invalid_output"


async def test_a_result_that_holds_itself_is_invalid(bench: Bench) -> None:
    code = "def main(input):\n    a = []\n    a.append(a)\n    return a\n"
    assert await bench.code(await _python(bench, code)) == "invalid_output"


@pytest.mark.parametrize("levels", [100, 900])
async def test_a_result_that_is_nested_too_deeply_is_invalid(bench: Bench, levels: int) -> None:
    code = (
        f"def main(input):\n    a = 1\n    for _ in range({levels}):\n        a = [a]\n    return a"
    )
    assert await bench.code(await _python(bench, code)) == "invalid_output"


@pytest.mark.parametrize(
    ("runtime", "code"),
    [
        ("python", "main = lambda i: 'x' * 1_100_000"),
        ("python", "main = lambda i: 'x' * 50_000_000"),
        ("javascript", "const main = () => 'x'.repeat(1_100_000)"),
    ],
)
async def test_a_huge_result_is_too_large(bench: Bench, runtime: str, code: str) -> None:
    tool = await bench.create("function", {"runtime": runtime, "code": code})
    assert await bench.code(tool) == "output_too_large"


@pytest.mark.parametrize(
    ("runtime", "code"),
    [
        ("python", "main = lambda i: 'x' * 1_000_000"),
        ("javascript", "const main = () => 'x'.repeat(1_000_000)"),
    ],
)
async def test_a_large_result_comes_whole(bench: Bench, runtime: str, code: str) -> None:
    tool = await bench.create("function", {"runtime": runtime, "code": code})
    assert len(await bench.output(tool)) == 1_000_000


@pytest.mark.parametrize(
    ("runtime", "code"),
    [
        ("python", "def main(input):\n    while True: pass\n"),
        ("python", "import time\ndef main(input): time.sleep(60)\n"),
        ("python", "import time\ntime.sleep(60)\n"),
        ("javascript", "function main() { for (;;); }"),
        ("javascript", "function main() { return new Promise(() => setInterval(() => 0, 1e6)) }"),
    ],
)
async def test_code_that_does_not_end_is_killed(bench: Bench, runtime: str, code: str) -> None:
    config = {"runtime": runtime, "code": code, "timeout_ms": 700}
    data = await bench.run(await bench.create("function", config))
    assert (data["status"], data["error"]["code"]) == ("timeout", "timeout")
    assert data["execution_time_ms"] < 5000


async def test_many_run_at_once_each_with_its_own_input(bench: Bench) -> None:
    tool = await _python(bench, "main = lambda input: input['n'] * 2")
    results = await asyncio.gather(*(bench.output(tool, {"n": n}) for n in range(8)))
    assert results == [n * 2 for n in range(8)]


async def test_one_run_leaves_nothing_to_the_next(bench: Bench) -> None:
    code = (
        "import os\ndef main(input):\n    seen = os.path.exists('/tmp/mark')\n"
        "    open('/tmp/mark', 'w').close()\n    return seen\n"
    )
    tool = await _python(bench, code)
    data = [await bench.run(tool) for _ in range(2)]
    assert all(one.get("output") is not True for one in data)


# Scripts


@pytest.mark.parametrize(
    ("runtime", "code"),
    [
        ("bash", 'read -r line; echo "{\\"got\\": $line}"'),
        ("python", "import json, sys\nprint(json.dumps({'got': json.load(sys.stdin)}))"),
        ("node", "console.log(`{\"got\": ${require('fs').readFileSync(0)}}`)"),
    ],
)
async def test_a_script_that_prints_json_gives_it(bench: Bench, runtime: str, code: str) -> None:
    given = {"text": "Zoë 🌍", "n": [1, None]}
    assert await bench.output(await _script(bench, runtime, code), given) == {"got": given}


@pytest.mark.parametrize(
    ("runtime", "code"),
    [
        ("bash", "echo out; echo err >&2"),
        ("python", "import sys\nprint('out')\nprint('err', file=sys.stderr)"),
        ("node", "console.log('out'); console.error('err')"),
    ],
)
async def test_a_script_that_prints_text_gives_what_it_said(
    bench: Bench, runtime: str, code: str
) -> None:
    output = await bench.output(await _script(bench, runtime, code))
    assert output == {"stdout": "out\n", "stderr": "err\n", "exit_code": 0}


@pytest.mark.parametrize(
    ("runtime", "code"),
    [
        ("bash", "echo out; echo broken >&2; exit 3"),
        ("python", "import sys\nprint('out')\nprint('broken', file=sys.stderr)\nsys.exit(3)"),
        ("node", "console.log('out'); console.error('broken'); process.exit(3)"),
    ],
)
async def test_a_script_that_fails_gives_its_code_and_what_it_said(
    bench: Bench, runtime: str, code: str
) -> None:
    error = await bench.failure(await _script(bench, runtime, code))
    assert error["code"] == "runtime_error"
    assert "3" in error["message"]
    assert "broken" in error["message"]
    assert error["output"] == {"stdout": "out\n", "stderr": "broken\n", "exit_code": 3}


async def test_a_script_that_says_nothing_gives_an_empty_text(bench: Bench) -> None:
    output = await bench.output(await _script(bench, "bash", "true"))
    assert output == {"stdout": "", "stderr": "", "exit_code": 0}


async def test_bytes_that_are_no_text_are_replaced(bench: Bench) -> None:
    output = await bench.output(await _script(bench, "bash", "printf 'a\\xff\\x00b'"))
    assert output["stdout"] == "a\ufffdb"


@pytest.mark.parametrize("text", ["NaN", "[1, 2", '{"a":', "1 2", "'a'"])
async def test_what_only_resembles_json_is_text(bench: Bench, text: str) -> None:
    tool = await _script(bench, "bash", f"cat <<'END'\n{text}\nEND\n")
    assert (await bench.output(tool))["stdout"] == f"{text}\n"


async def test_files_of_python_import_each_other(bench: Bench) -> None:
    tool = await _script(
        bench,
        "python",
        "import file_a\nprint(file_a.doubled(21))",
        "import file_b\ndef doubled(n): return n * file_b.TWO",
        "TWO = 2",
    )
    assert await bench.output(tool) == 42


async def test_files_of_node_require_each_other(bench: Bench) -> None:
    files = {
        "main.js": "const {double} = require('./lib.js'); console.log(double(21))",
        "lib.js": "const two = require('./two.json'); exports.double = (n) => n * two",
        "two.json": "2",
    }
    config = {"runtime": "node", "entrypoint": "main.js", "files": files}
    assert await bench.output(await bench.create("script", config)) == 42


async def test_files_of_bash_source_each_other(bench: Bench) -> None:
    files = {
        "main.sh": '. "$(dirname "$0")/lib.sh"; double 21',
        "lib.sh": "double() { echo $(($1 * 2)); }",
    }
    config = {"runtime": "bash", "entrypoint": "main.sh", "files": files}
    assert await bench.output(await bench.create("script", config)) == 42


async def test_a_script_need_not_read_its_input(bench: Bench) -> None:
    tool = await _script(bench, "bash", "echo 1")
    assert await bench.output(tool, {"text": "x" * 500_000}) == 1


async def test_a_script_that_floods_is_ended(bench: Bench) -> None:
    assert await bench.code(await _script(bench, "bash", "yes")) == "output_too_large"


async def test_a_script_that_does_not_end_is_killed_with_all_it_started(bench: Bench) -> None:
    code = "sleep 60 & (sleep 60 &) ; sleep 60"
    data = await bench.run(await _script(bench, "bash", code, timeout_ms=700))
    assert data["status"] == "timeout"
    assert data["execution_time_ms"] < 5000


async def test_what_a_script_leaves_running_does_not_hold_it_up(bench: Bench) -> None:
    data = await bench.run(await _script(bench, "bash", "sleep 60 & echo 7", timeout_ms=5000))
    assert (data["status"], data.get("output")) == ("completed", 7)


# Where there is no cage


@pytest.mark.parametrize(
    ("tool_type", "config"),
    [
        ("function", {"runtime": "python", "code": "main = lambda i: i"}),
        ("function", {"runtime": "javascript", "code": "const main = (i) => i"}),
        ("script", {"runtime": "bash", "entrypoint": "a", "files": {"a": "echo 1"}}),
        ("script", {"runtime": "python", "entrypoint": "a", "files": {"a": "print(1)"}}),
        ("script", {"runtime": "node", "entrypoint": "a", "files": {"a": "console.log(1)"}}),
    ],
)
async def test_without_a_sandbox_no_code_runs(
    bench: Bench,
    worker: WorkerProcess,
    monkeypatch: pytest.MonkeyPatch,
    tool_type: str,
    config: dict[str, Any],
) -> None:
    monkeypatch.setattr(worker.services.sandbox, "tier", "none")
    error = await bench.failure(await bench.create(tool_type, config))
    assert (error["status"], error["code"]) == ("failed", "sandbox_unavailable")


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"runtime": "ruby", "code": "x"}, "config.runtime"),
        ({"runtime": "python", "code": ""}, "config.code"),
        ({"runtime": "python", "code": "x", "packages": ["no-such-package"]}, "config.packages"),
        ({"runtime": "python", "code": "x", "timeout_ms": 0}, "config.timeout_ms"),
    ],
)
async def test_a_function_that_cannot_run_is_not_saved(
    bench: Bench, config: dict[str, Any], field: str
) -> None:
    body = {"name": "T", "category": "custom", "auth_type": "none", "tool_type": "function"}
    answer = await bench.client.post("/v1/tools", {**body, "config": config})
    assert field in refused(answer, 422, "validation_error")["details"]


@pytest.mark.parametrize(
    "name", ["../main.py", "/etc/passwd", "a/b.py", ".hidden", "-rf", "a..b", "", "a\nb", "ä.py"]
)
async def test_a_file_of_a_script_has_a_plain_name(bench: Bench, name: str) -> None:
    config = {"runtime": "bash", "entrypoint": name, "files": {name: "echo 1"}}
    body = {"name": "T", "category": "custom", "auth_type": "none", "tool_type": "script"}
    answer = await bench.client.post("/v1/tools", {**body, "config": config})
    refused(answer, 422, "validation_error")


async def test_the_entrypoint_is_one_of_the_files(bench: Bench) -> None:
    config = {"runtime": "bash", "entrypoint": "other", "files": {"main": "echo 1"}}
    body = {"name": "T", "category": "custom", "auth_type": "none", "tool_type": "script"}
    answer = await bench.client.post("/v1/tools", {**body, "config": config})
    assert "config.entrypoint" in refused(answer, 422, "validation_error")["details"]
