from typing import Any

import msgspec

from app.domain.tools.configs import ScriptConfig
from app.domain.tools.executors import sandboxed
from app.domain.tools.executors.protocol import Surroundings, Task, ToolFailed
from app.kit.sandbox.program import Program


async def run(task: Task[ScriptConfig], around: Surroundings) -> Any:
    """The input as JSON on standard input; what it prints is the output, as JSON if it is that."""
    config = task.config
    program = Program(language=config.runtime, files=config.files, entry=config.entrypoint)
    given = msgspec.json.encode(task.input)
    ran = await sandboxed.run(around, program, given, task.seconds, config.packages)
    printed = {
        "stdout": ran.output.decode(errors="replace"),
        "stderr": ran.log.decode(errors="replace"),
        "exit_code": ran.exit_code,
    }
    if ran.exit_code != 0:
        log = sandboxed.log_of(ran)
        said = f"the script ended with {ran.exit_code}" + (f": {log}" if log else "")
        raise ToolFailed("runtime_error", said, printed)
    try:
        return msgspec.json.decode(ran.output)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return printed
