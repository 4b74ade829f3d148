from typing import Any, Final

import msgspec

from app.domain.tools.configs import FunctionConfig
from app.domain.tools.executors import sandboxed
from app.domain.tools.executors.protocol import Surroundings, Task, ToolFailed
from app.kit.sandbox.program import Program

# Each calls `main(input)` of the user's code and sends what it returns by descriptor 3.
_PYTHON = """
import json, os, sys, traceback

def _text(value):
    return json.dumps(value, allow_nan=False, ensure_ascii=False)

def _told(kind, value):
    with os.fdopen(3, "wb") as out:
        out.write(_text({kind: value}).encode("utf-8", "replace"))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)

given = json.load(sys.stdin)
try:
    import user_code
    main = user_code.main
    result = main(given)
    if hasattr(result, "__await__"):
        import asyncio
        result = asyncio.run(result)
except BaseException as error:
    traceback.print_exc()
    _told("error", f"{type(error).__name__}: {error}"[:2000])
try:
    _text(result).encode("utf-8")
except (TypeError, ValueError, RecursionError) as error:
    _told("unfit", str(error)[:500])
_told("result", result)
"""
_JAVASCRIPT = """
const fs = require("fs");
function told(kind, value) {
  fs.writeSync(3, JSON.stringify({ [kind]: value === undefined ? null : value }));
  process.exit(0);
}
function failed(error) {
  console.error(error);
  told("error", String((error && error.message) || error).slice(0, 2000));
}
process.on("uncaughtException", failed);
process.on("unhandledRejection", failed);
const given = JSON.parse(fs.readFileSync(0, "utf8"));
(async () => {
  const code = fs.readFileSync(__dirname + "/user_code.js", "utf8");
  const exports_ = {};
  const module_ = { exports: exports_ };
  const made = new Function("require", "module", "exports",
    code + "\\n;return typeof main === 'function' ? main : undefined;");
  const main = made(require, module_, exports_) || module_.exports.main || module_.exports;
  if (typeof main !== "function") throw new Error("there is no function main");
  const result = await main(given);
  let text;
  try { text = JSON.stringify(result === undefined ? null : result); }
  catch (error) { return told("unfit", String(error.message)); }
  if (text === undefined) return told("unfit", "the result is not JSON");
  fs.writeSync(3, '{"result":' + text + "}");
  process.exit(0);
})().catch(failed);
"""
_LANGUAGES: Final = {
    "python": ("python", "start.py", _PYTHON, "user_code.py"),
    "javascript": ("node", "start.js", _JAVASCRIPT, "user_code.js"),
}


class _Told(msgspec.Struct):
    result: Any = msgspec.UNSET
    error: str | None = None
    unfit: str | None = None


async def run(task: Task[FunctionConfig], around: Surroundings) -> Any:
    language, start, starter, code = _LANGUAGES[task.config.runtime]
    program = Program(
        language=language,  # type: ignore[arg-type]
        files={start: starter, code: task.config.code},
        entry=start,
        result_on_fd3=True,
    )
    given = msgspec.json.encode(task.input)
    ran = await sandboxed.run(around, program, given, task.seconds, task.config.packages)
    try:
        told = msgspec.json.decode(ran.output, type=_Told)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ToolFailed(
            "runtime_error", _how_it_ended(ran.exit_code, sandboxed.log_of(ran))
        ) from (error)
    if told.error is not None:
        raise ToolFailed("runtime_error", told.error)
    if told.unfit is not None:
        raise ToolFailed("invalid_output", f"main must return JSON: {told.unfit}")
    return None if told.result is msgspec.UNSET else told.result


def _how_it_ended(exit_code: int, log: str) -> str:
    return f"ended with {exit_code} and without a result" + (f": {log}" if log else "")
