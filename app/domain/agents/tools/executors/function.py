from typing import Any, Final

import msgspec

from app.domain.agents.tools.configs import FunctionConfig
from app.domain.agents.tools.errors import ToolFailed
from app.sandbox.program import Program

from . import user_code
from .protocol import ExecutorEnvironment, Task

# Each calls `main(input)` of the user's code and writes the result to file descriptor 3 as JSON.
_PYTHON = """
import json, os, sys, traceback

def _encode(value):
    return json.dumps(value, allow_nan=False, ensure_ascii=False)

def _report(kind, value):
    with os.fdopen(3, "wb") as out:
        out.write(_encode({kind: value}).encode("utf-8", "replace"))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)

arguments = json.load(sys.stdin)
try:
    import user_code
    main = user_code.main
    result = main(arguments)
    if hasattr(result, "__await__"):
        import asyncio
        result = asyncio.run(result)
except BaseException as error:
    traceback.print_exc()
    _report("error", f"{type(error).__name__}: {error}"[:2000])
try:
    _encode(result).encode("utf-8")
except (TypeError, ValueError, RecursionError) as error:
    _report("not_json", str(error)[:500])
_report("result", result)
"""
_JAVASCRIPT = """
const fs = require("fs");
function report(kind, value) {
  fs.writeSync(3, JSON.stringify({ [kind]: value === undefined ? null : value }));
  process.exit(0);
}
function reportError(error) {
  console.error(error);
  report("error", String((error && error.message) || error).slice(0, 2000));
}
process.on("uncaughtException", reportError);
process.on("unhandledRejection", reportError);
const input = JSON.parse(fs.readFileSync(0, "utf8"));
(async () => {
  const code = fs.readFileSync(__dirname + "/user_code.js", "utf8");
  const exports_ = {};
  const module_ = { exports: exports_ };
  const load = new Function("require", "module", "exports",
    code + "\\n;return typeof main === 'function' ? main : undefined;");
  const main = load(require, module_, exports_) || module_.exports.main || module_.exports;
  if (typeof main !== "function") throw new Error("there is no function main");
  const result = await main(input);
  let text;
  try { text = JSON.stringify(result === undefined ? null : result); }
  catch (error) { return report("not_json", String(error.message)); }
  if (text === undefined) return report("not_json", "the result is not JSON");
  fs.writeSync(3, '{"result":' + text + "}");
  process.exit(0);
})().catch(reportError);
"""
_LANGUAGES: Final = {
    "python": ("python", "start.py", _PYTHON, "user_code.py"),
    "javascript": ("node", "start.js", _JAVASCRIPT, "user_code.js"),
}


class _Report(msgspec.Struct):
    result: Any = msgspec.UNSET
    error: str | None = None
    not_json: str | None = None


async def run(task: Task[FunctionConfig], environment: ExecutorEnvironment) -> Any:
    language, start_file, start_code, code_file = _LANGUAGES[task.config.runtime]
    program = Program(
        language=language,  # type: ignore[arg-type]
        files={start_file: start_code, code_file: task.config.code},
        entry=start_file,
        result_on_fd3=True,
    )
    run = await user_code.run_program(environment, program, task, task.config.packages)
    try:
        report = msgspec.json.decode(run.output, type=_Report)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = f"ended with {run.exit_code} and without a result"
        raise ToolFailed("runtime_error", user_code.append_log(message, run)) from error
    if report.error is not None:
        raise ToolFailed("runtime_error", report.error)
    if report.not_json is not None:
        raise ToolFailed("invalid_output", f"main must return JSON: {report.not_json}")
    return None if report.result is msgspec.UNSET else report.result
