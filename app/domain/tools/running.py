"""What a worker does with a run: prepare, execute within its time, and tell what came of it."""

import asyncio
import time
import traceback
from typing import Any

import msgspec

from app.domain.tools import identity, json_schema
from app.domain.tools.auths import MeantForElsewhere
from app.domain.tools.configs import host_of, is_repeatable
from app.domain.tools.executors.protocol import Auth, Surroundings, Task, ToolFailed, noting
from app.domain.tools.executors.registry import EXECUTORS
from app.domain.tools.plans import Plan, plan_of, seconds_of
from app.kit import logs
from app.kit.crypto import CannotOpen
from app.kit.errors import ApiError
from app.kit.redaction import Redactor
from app.kit.texts import as_json, is_deeper, storable
from app.services import Services
from db.fast import Row

log = logs.get("tools")

_DEEPEST = 64
_MESSAGE_CHARS = 2000
_STORED_CHARS = 2 * 1024 * 1024
_UNKNOWN = "a worker stopped while this ran; it was not repeated because it may have had effects"


class Outcome(msgspec.Struct, frozen=True):
    status: str
    output: str | None
    error: tuple[str | None, str | None]
    milliseconds: int


async def run(services: Services, row: Row) -> Outcome:
    """Never raises for what a tool did; secrets are taken out of whatever it says."""
    started = time.perf_counter()
    secrets: list[str] = []
    try:
        value, failed = await _value(services, row, secrets), None
    except ToolFailed as error:
        # The body of a refusal, say, may be nested as deeply as its sender likes.
        value = None if is_deeper(error.output, _DEEPEST) else error.output
        failed = error
    took = round((time.perf_counter() - started) * 1000)
    redactor = Redactor(secrets)
    output = None if value is None and failed else as_json(redactor.value(value))
    if output is not None and len(output) > _STORED_CHARS:
        output, failed = None, ToolFailed("output_too_large", "the output is too large to be kept")
    if failed is None:
        return Outcome("completed", output, (None, None), took)
    status = "timeout" if failed.code == "timeout" else "failed"
    message = storable(redactor.text(failed.message))[:_MESSAGE_CHARS]
    return Outcome(status, output, (failed.code, message), took)


async def _value(services: Services, row: Row, secrets: list[str]) -> Any:
    plan = _planned(services, row)
    given: dict[str, Any] = msgspec.json.decode(row["input"])
    if row["before"] == "running" and not is_repeatable(plan.config, given):
        raise ToolFailed("runtime_error", _UNKNOWN)
    seconds = seconds_of(plan.config)
    try:
        async with asyncio.timeout(seconds):
            auth = await identity.auth_of(
                services,
                row["tenant_id"],
                plan.auth_type,
                opened(services, plan),
                plan.user,
                host_of(plan.config, services.egress.guard),
            )
            secrets += auth.hidden
            value = await execute(services, row["tenant_id"], plan, given, noting(auth, secrets))
    except TimeoutError as error:
        raise ToolFailed("timeout", f"did not end within {seconds:g} s") from error
    _check_output(row, value)
    return value


async def execute(
    services: Services, tenant_id: str, plan: Plan, given: dict[str, Any], auth: Auth
) -> Any:
    around = Surroundings(services.settings, services.egress, services.sandbox)
    task = Task(tenant_id, plan.config, given, auth, seconds_of(plan.config))
    try:
        return await EXECUTORS[plan.tool_type](task, around)
    except (ToolFailed, TimeoutError):
        raise
    except Exception as error:
        # Its text may hold anything, a secret too; the log gets what it was and where.
        at = traceback.extract_tb(error.__traceback__)[-1]
        log.error(  # noqa: TRY400
            "an executor raised",
            tool_id=plan.tool_id,
            tool_type=plan.tool_type,
            error=type(error).__name__,
            at=f"{at.filename}:{at.lineno}",
        )
        said = f"the tool failed unexpectedly: {type(error).__name__}"
        raise ToolFailed("runtime_error", said) from error


def _planned(services: Services, row: Row) -> Plan:
    try:
        return plan_of(row, row["agent_id"], services.egress.guard)
    except ApiError as error:
        raise ToolFailed("runtime_error", f"the config cannot be used: {error.message}") from error
    except msgspec.ValidationError as error:
        raise ToolFailed("runtime_error", "the stored config cannot be used") from error


def opened(services: Services, plan: Plan) -> Any:
    try:
        return plan.auth(services.keyring, services.egress.guard)
    except MeantForElsewhere as error:
        said = "the auth_config was given for another host; set it again"
        raise ToolFailed("auth_failed", said) from error
    except CannotOpen as error:
        raise ToolFailed("auth_failed", "the auth_config does not open; set it again") from error


def _check_output(row: Row, value: Any) -> None:
    if is_deeper(value, _DEEPEST):
        raise ToolFailed("invalid_output", f"the output is nested deeper than {_DEEPEST} levels")
    if row["output_schema"] is None:
        return
    schema = msgspec.json.decode(row["output_schema"])
    found = json_schema.problems(schema, value, "output")
    if found:
        where, said = next(iter(found.items()))
        raise ToolFailed("invalid_output", f"{where}: {said}", value)
