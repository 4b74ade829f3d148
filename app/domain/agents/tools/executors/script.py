from typing import Any

import msgspec

from app.domain.agents.tools.configs import ScriptConfig
from app.domain.agents.tools.errors import ToolFailed
from app.sandbox.program import Program

from . import user_code
from .protocol import ExecutorEnvironment, Task


async def run(task: Task[ScriptConfig], environment: ExecutorEnvironment) -> Any:
    """The script reads its input as JSON from standard input. Its standard output is the output
    when it is JSON; else the output has standard output, standard error and exit code as texts.
    """
    config = task.config
    program = Program(language=config.runtime, files=config.files, entry=config.entrypoint)
    run = await user_code.run_program(environment, program, task, config.packages)
    texts = {
        "stdout": run.output.decode(errors="replace"),
        "stderr": run.log.decode(errors="replace"),
        "exit_code": run.exit_code,
    }
    if run.exit_code != 0:
        message = user_code.append_log(f"the script ended with {run.exit_code}", run)
        raise ToolFailed("runtime_error", message, texts)
    try:
        return msgspec.json.decode(run.output)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return texts
