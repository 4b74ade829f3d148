"""What the executors of user code share."""

from app.domain.tools.executors.protocol import Surroundings, ToolFailed
from app.kit.sandbox import packages
from app.kit.sandbox.box import SandboxUnavailable
from app.kit.sandbox.program import Program, RunResult

_LOG_CHARS = 2000


async def run(
    around: Surroundings, program: Program, given: bytes, seconds: float, wanted: list[str]
) -> RunResult:
    """What came of it, if it came to an end by itself."""
    missing = packages.missing(around.settings.sandbox_home, wanted)
    if missing:
        raise ToolFailed("runtime_error", f"not installed on this worker: {', '.join(missing)}")
    try:
        ran = await around.sandbox.run(program, given, seconds)
    except SandboxUnavailable as error:
        raise ToolFailed("sandbox_unavailable", str(error)) from error
    match ran.ending:
        case "timeout":
            raise ToolFailed("timeout", f"did not end within {seconds:g} s")
        case "output":
            raise ToolFailed("output_too_large", "gave more than 1 MiB of output")
        case "memory":
            raise ToolFailed("runtime_error", "used more memory than it may")
        case "exited":
            return ran


def log_of(ran: RunResult) -> str:
    """The end of what it printed, where errors stand."""
    return ran.log.decode(errors="replace").strip()[-_LOG_CHARS:]
