"""Tools that run scripts, and configs that are refused."""

from typing import Any

import pytest

from tests.agents.tools.executor import ToolExecutor
from tests.agents.tools.factories import ToolClient
from tests.assertions import refused
from workers.main import WorkerProcess


@pytest.fixture(scope="module")
def tools(executor: ToolExecutor) -> ToolExecutor:
    return executor


async def _create_script(tools: ToolExecutor, runtime: str, *files: str, **config: Any) -> str:
    """The first file is the entrypoint; the others are `file_a.py`, `file_b.py`, `file_c.py`."""
    names = ["main.txt", *(f"file_{letter}.py" for letter in "abc")]
    files_by_name = dict(zip(names, files, strict=False))
    full_config = {"runtime": runtime, "entrypoint": "main.txt", "files": files_by_name, **config}
    return await tools.create("script", full_config)


# Scripts


async def test_json_that_a_script_prints_is_its_output(
    tools: ToolExecutor, subtests: pytest.Subtests
) -> None:
    for runtime, code in [
        ("bash", 'read -r line; echo "{\\"got\\": $line}"'),
        ("python", "import json, sys\nprint(json.dumps({'got': json.load(sys.stdin)}))"),
        ("node", "console.log(`{\"got\": ${require('fs').readFileSync(0)}}`)"),
    ]:
        with subtests.test(runtime=runtime, code=code):
            arguments = {"text": "Zoë 🌍", "n": [1, None]}
            assert await tools.get_output(
                await _create_script(tools, runtime, code), arguments
            ) == {"got": arguments}


async def test_text_that_a_script_prints_is_in_its_output(
    tools: ToolExecutor, subtests: pytest.Subtests
) -> None:
    for runtime, code in [
        ("bash", "echo out; echo err >&2"),
        ("python", "import sys\nprint('out')\nprint('err', file=sys.stderr)"),
        ("node", "console.log('out'); console.error('err')"),
    ]:
        with subtests.test(runtime=runtime, code=code):
            output = await tools.get_output(await _create_script(tools, runtime, code))
            assert output == {"stdout": "out\n", "stderr": "err\n", "exit_code": 0}


async def test_a_script_that_fails_reports_exit_code_and_output(
    tools: ToolExecutor, subtests: pytest.Subtests
) -> None:
    for runtime, code in [
        ("bash", "echo out; echo broken >&2; exit 3"),
        ("python", "import sys\nprint('out')\nprint('broken', file=sys.stderr)\nsys.exit(3)"),
        ("node", "console.log('out'); console.error('broken'); process.exit(3)"),
    ]:
        with subtests.test(runtime=runtime, code=code):
            error = await tools.get_failure(await _create_script(tools, runtime, code))
            assert error["code"] == "runtime_error"
            assert "3" in error["message"]
            assert "broken" in error["message"]
            assert error["output"] == {"stdout": "out\n", "stderr": "broken\n", "exit_code": 3}


async def test_a_script_that_prints_nothing_has_empty_output(tools: ToolExecutor) -> None:
    output = await tools.get_output(await _create_script(tools, "bash", "true"))
    assert output == {"stdout": "", "stderr": "", "exit_code": 0}


async def test_invalid_utf8_is_replaced(tools: ToolExecutor) -> None:
    output = await tools.get_output(await _create_script(tools, "bash", "printf 'a\\xff\\x00b'"))
    assert output["stdout"] == "a\ufffdb"


async def test_invalid_json_is_text(tools: ToolExecutor, subtests: pytest.Subtests) -> None:
    for text in ("NaN", "[1, 2", '{"a":', "1 2", "'a'"):
        with subtests.test(text=text):
            tool = await _create_script(tools, "bash", f"cat <<'END'\n{text}\nEND\n")
            assert (await tools.get_output(tool))["stdout"] == f"{text}\n"


async def test_files_of_python_import_each_other(tools: ToolExecutor) -> None:
    tool = await _create_script(
        tools,
        "python",
        "import file_a\nprint(file_a.doubled(21))",
        "import file_b\ndef doubled(n): return n * file_b.TWO",
        "TWO = 2",
    )
    assert await tools.get_output(tool) == 42


async def test_files_of_node_require_each_other(tools: ToolExecutor) -> None:
    files = {
        "main.js": "const {double} = require('./lib.js'); console.log(double(21))",
        "lib.js": "const two = require('./two.json'); exports.double = (n) => n * two",
        "two.json": "2",
    }
    config = {"runtime": "node", "entrypoint": "main.js", "files": files}
    assert await tools.get_output(await tools.create("script", config)) == 42


async def test_files_of_bash_source_each_other(tools: ToolExecutor) -> None:
    files = {
        "main.sh": '. "$(dirname "$0")/lib.sh"; double 21',
        "lib.sh": "double() { echo $(($1 * 2)); }",
    }
    config = {"runtime": "bash", "entrypoint": "main.sh", "files": files}
    assert await tools.get_output(await tools.create("script", config)) == 42


async def test_a_script_need_not_read_its_input(tools: ToolExecutor) -> None:
    tool = await _create_script(tools, "bash", "echo 1")
    assert await tools.get_output(tool, {"text": "x" * 500_000}) == 1


async def test_a_script_that_prints_too_much_is_ended(tools: ToolExecutor) -> None:
    assert (
        await tools.get_error_code(await _create_script(tools, "bash", "yes")) == "output_too_large"
    )


async def test_a_script_that_does_not_end_is_killed_with_all_it_started(
    tools: ToolExecutor,
) -> None:
    code = "sleep 60 & (sleep 60 &) ; sleep 60"
    data = await tools.run(await _create_script(tools, "bash", code, timeout_ms=700))
    assert data["status"] == "timeout"
    assert data["execution_time_ms"] < 5000


async def test_a_background_process_does_not_prolong_a_script(tools: ToolExecutor) -> None:
    data = await tools.run(
        await _create_script(tools, "bash", "sleep 60 & echo 7", timeout_ms=5000)
    )
    assert (data["status"], data.get("output")) == ("completed", 7)


# Without a sandbox


async def test_without_a_sandbox_no_code_runs(
    tools: ToolExecutor,
    worker: WorkerProcess,
    monkeypatch: pytest.MonkeyPatch,
    subtests: pytest.Subtests,
) -> None:
    cases: list[tuple[str, dict[str, Any]]] = [
        ("function", {"runtime": "python", "code": "main = lambda i: i"}),
        ("function", {"runtime": "javascript", "code": "const main = (i) => i"}),
        ("script", {"runtime": "bash", "entrypoint": "a", "files": {"a": "echo 1"}}),
        ("script", {"runtime": "python", "entrypoint": "a", "files": {"a": "print(1)"}}),
        ("script", {"runtime": "node", "entrypoint": "a", "files": {"a": "console.log(1)"}}),
    ]
    for tool_type, config in cases:
        with subtests.test(tool_type=tool_type, config=config):
            monkeypatch.setattr(worker.services.sandbox, "tier", "none")
            error = await tools.get_failure(await tools.create(tool_type, config))
            assert (error["status"], error["code"]) == ("failed", "sandbox_unavailable")


# Refused configs


async def test_a_function_that_cannot_run_is_not_saved(
    tool_client: ToolClient, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"runtime": "ruby", "code": "x"}, "config.runtime"),
        ({"runtime": "python", "code": ""}, "config.code"),
        ({"runtime": "python", "code": "x", "packages": ["no-such-package"]}, "config.packages"),
        ({"runtime": "python", "code": "x", "timeout_ms": 0}, "config.timeout_ms"),
    ]
    for config, field in cases:
        with subtests.test(config=config, field=field):
            answer = await tool_client.request_create("function", config)
            assert field in refused(answer, 422, "validation_error")["details"]


async def test_a_file_of_a_script_has_a_plain_name(
    tool_client: ToolClient, subtests: pytest.Subtests
) -> None:
    for name in (
        "../main.py",
        "/etc/passwd",
        "a/b.py",
        ".hidden",
        "-rf",
        "a..b",
        "",
        "a\nb",
        "ä.py",
    ):
        with subtests.test(name=name):
            config = {"runtime": "bash", "entrypoint": name, "files": {name: "echo 1"}}
            answer = await tool_client.request_create("script", config)
            refused(answer, 422, "validation_error")


async def test_the_entrypoint_is_one_of_the_files(tool_client: ToolClient) -> None:
    config = {"runtime": "bash", "entrypoint": "other", "files": {"main": "echo 1"}}
    answer = await tool_client.request_create("script", config)
    assert "config.entrypoint" in refused(answer, 422, "validation_error")["details"]
