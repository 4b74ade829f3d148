"""Executes a tool on a worker: builds its plan, runs its executor, and records the outcome."""

import asyncio
import time
import traceback
from typing import Any

import msgspec

from app.kit import logs
from app.kit.errors import ApiError, Invalid
from app.kit.texts import as_json, is_deeper, storable
from app.net.redaction import Redactor
from app.sandbox.box import MAX_WAIT_SECONDS
from app.services import Services
from db.fast import Row

from . import authentication, json_schema
from .configs import FunctionConfig, ScriptConfig, is_repeatable
from .errors import ToolFailed
from .executors.protocol import Auth, ExecutorEnvironment, Task, record_renewed_secrets
from .executors.registry import EXECUTORS
from .run_plan import RunPlan, build_plan, timeout_seconds

log = logs.get("tools")

_MAX_DEPTH = 64
_MAX_MESSAGE_CHARS = 2000
_MAX_OUTPUT_CHARS = 2 * 1024 * 1024
_OUTCOME_UNKNOWN = (
    "a worker stopped while this ran; it was not repeated because it may have had effects"
)


class Outcome(msgspec.Struct, frozen=True):
    status: str
    output: str | None
    error: tuple[str | None, str | None]
    milliseconds: int


async def execute_tool(services: Services, row: Row) -> Outcome:
    """Returns the outcome, without secrets in it. A tool that fails is an outcome as well."""
    started = time.perf_counter()
    secrets: list[str] = []
    failure: ToolFailed | None = None
    try:
        value = await _run_plan(services, row, secrets)
    except ToolFailed as error:
        # A server can nest the body of its error response to any depth.
        value = None if is_deeper(error.output, _MAX_DEPTH) else error.output
        failure = error
    milliseconds = round((time.perf_counter() - started) * 1000)
    redactor = Redactor(secrets)
    output = None if value is None and failure else as_json(redactor.value(value))
    if output is not None and len(output) > _MAX_OUTPUT_CHARS:
        output = None
        failure = ToolFailed("output_too_large", "the output is too large to be stored")
    if failure is None:
        return Outcome("completed", output, (None, None), milliseconds)
    status = "timeout" if failure.code == "timeout" else "failed"
    message = storable(redactor.text(failure.message, _MAX_MESSAGE_CHARS))[:_MAX_MESSAGE_CHARS]
    return Outcome(status, output, (failure.code, message), milliseconds)


async def _run_plan(services: Services, row: Row, secrets: list[str]) -> Any:
    """Returns the output, and adds the secrets that the run uses to `secrets`."""
    plan = _build_plan(services, row)
    arguments: dict[str, Any] = msgspec.json.decode(row["input"])
    if row["previous_status"] == "running" and not is_repeatable(plan.config, arguments):
        raise ToolFailed("runtime_error", _OUTCOME_UNKNOWN)
    seconds = timeout_seconds(plan.config)
    # Code may wait for a machine that is short of memory before its own time starts.
    waiting = MAX_WAIT_SECONDS if isinstance(plan.config, FunctionConfig | ScriptConfig) else 0
    try:
        async with asyncio.timeout(seconds + waiting):
            auth = await authentication.resolve_auth(services, row["tenant_id"], plan)
            secrets += auth.secrets
            auth = record_renewed_secrets(auth, secrets)
            output = await run_executor(services, row["tenant_id"], plan, arguments, auth)
    except TimeoutError as error:
        raise ToolFailed("timeout", f"did not end within {seconds:g} s") from error
    _check_output(row, output, Redactor(secrets))
    return output


async def run_executor(
    services: Services, tenant_id: str, plan: RunPlan, arguments: dict[str, Any], auth: Auth
) -> Any:
    """Returns the output. Raises ToolFailed also for an unexpected error of the executor."""
    environment = ExecutorEnvironment(services.settings, services.egress, services.sandbox)
    task = Task(tenant_id, plan.config, arguments, auth, timeout_seconds(plan.config))
    try:
        return await EXECUTORS[plan.tool_type](task, environment)
    except (ToolFailed, TimeoutError):
        raise
    except Exception as error:
        # The error's text can hold a secret, so only its type and place are logged.
        frame = traceback.extract_tb(error.__traceback__)[-1]
        log.error(  # noqa: TRY400
            "an executor raised",
            tool_id=plan.tool_id,
            tool_type=plan.tool_type,
            error=type(error).__name__,
            at=f"{frame.filename}:{frame.lineno}",
        )
        message = f"the tool failed unexpectedly: {type(error).__name__}"
        raise ToolFailed("runtime_error", message) from error


def _build_plan(services: Services, row: Row) -> RunPlan:
    try:
        return build_plan(row, row["agent_id"], services.egress.guard)
    except ApiError as error:
        raise ToolFailed("runtime_error", f"the config cannot be used: {error.message}") from error
    except msgspec.ValidationError as error:
        raise ToolFailed("runtime_error", "the stored config cannot be used") from error


def _check_output(row: Row, output: Any, redactor: Redactor) -> None:
    if is_deeper(output, _MAX_DEPTH):
        raise ToolFailed("invalid_output", f"the output is nested deeper than {_MAX_DEPTH} levels")
    if row["output_schema"] is None:
        return
    schema = msgspec.json.decode(row["output_schema"])
    try:
        # The error cuts long names, which may leave a part of a secret.
        Invalid.check(
            (redactor.text(path, _MAX_MESSAGE_CHARS), redactor.text(problem, _MAX_MESSAGE_CHARS))
            for path, problem in json_schema.find_problems(schema, output, "output")
        )
    except Invalid as error:
        raise ToolFailed("invalid_output", error.message, output) from None
