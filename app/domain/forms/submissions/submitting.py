"""Accepts submissions. All of them go through `submit`: those of users, visitors and
conversations.
"""

import hashlib
import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Final

import msgspec

from app.domain.forms.definition.api import FormDefinition, LiveForm, live, options
from app.domain.forms.definition.errors import FormClosed, FormNotFound
from app.domain.platform.events import api as events
from app.domain.platform.storage import api as storage
from app.kit import clock
from app.kit.errors import ApiError, Invalid
from app.kit.ids import new_id
from app.kit.texts import as_json, is_deeper, storable
from app.services import Services
from db.fast import Row
from db.session import Tx

from . import answer_threads, answers, inline_files, uploads
from . import submission_queries as queries
from .errors import InvalidAnswers
from .events import SubmissionCreated
from .inline_files import InlineFile
from .submission_queries import LISTED_BYTES, NewRow
from .submission_schemas import AcceptedSubmission
from .triggers import try_workflow
from .work_kinds import PROCESS

_PER_SECOND: Final = 50.0
_BURST: Final = 50.0


# Kept from callers: these describe the request itself.
_RESERVED: Final = frozenset({"ip_address", "user_agent", "page_url", "referrer"})
_MAX_METADATA_BYTES = 16 * 1024
_MAX_METADATA_DEPTH = 10
_MAX_SOURCE_CHARS = 100
_MAX_TEXT_CHARS = 2000
_MAX_COMPLETION_SECONDS = 30 * 24 * 3600

# Runs in the transaction that stores the submission.
AfterInsert = Callable[[Tx, AcceptedSubmission], Awaitable[None]]


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """How the answers came. `source` is used unless the caller's metadata names one."""

    source: str
    ip_address: str
    user_agent: str = ""
    page_url: str = ""
    referrer: str = ""
    submitted_by: str | None = None
    conversation_id: str | None = None


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """What was sent, not checked yet. Without a version it is the form's newest one."""

    data: dict[str, Any]
    metadata: dict[str, Any] = {}
    version: int | None = None
    started_at: datetime | None = None
    is_suspicious: bool = False


async def submit(
    services: Services,
    form: LiveForm,
    sent: Answers,
    origin: Origin,
    after_insert: AfterInsert | None = None,
) -> AcceptedSubmission:
    """Raises FormNotPublished, FormClosed, InvalidAnswers, or Invalid for metadata."""
    form.require_open()
    version = sent.version or form.version
    definition = await live.load_definition(services, form, version)
    source, metadata = _split_metadata(sent.metadata, origin)
    checked = await check(services, form, definition, sent.data)
    inline = await inline_files.store(services, form, definition, checked)
    values = inline_files.replace(checked, inline)
    submission_id = new_id("sbm")
    row = NewRow(
        id=submission_id,
        form_id=form.id,
        version=version,
        data=as_json(values),
        metadata=as_json(metadata),
        source=source,
        ip_address=origin.ip_address,
        user_agent=storable(origin.user_agent)[:_MAX_TEXT_CHARS],
        page_url=storable(origin.page_url)[:_MAX_TEXT_CHARS],
        referrer=storable(origin.referrer)[:_MAX_TEXT_CHARS],
        answered="".join("1" if field.id in values else "0" for field in definition.inputs),
        completion_seconds=_measure(sent.started_at),
        fingerprint=_compute_fingerprint(form.id, origin.ip_address, checked),
        submitted_by=origin.submitted_by,
        conversation_id=origin.conversation_id,
        flags=["honeypot"] if sent.is_suspicious else [],
        events=_encode_event(form, version, submission_id, values, source, origin),
        max_submissions=form.settings.max_submissions,
        is_dispatched=services.get(WakePace).may_wake(),
        work_id=new_id("wrk"),
    )
    answer_files = AnswerFiles(uploads.select_files(definition, checked), inline)
    return await _store(services, form, row, values, answer_files, after_insert)


class AnswerFiles(msgspec.Struct, frozen=True):
    """The files of a submission: ids of uploaded ones by their fields, and those that came with the
    answers.
    """

    uploaded: dict[str, str]
    inline: list[InlineFile]


async def check(
    services: Services, form: LiveForm, definition: FormDefinition, data: dict[str, Any]
) -> dict[str, Any]:
    """Returns the values to store. Raises InvalidAnswers. Whether files exist is checked when they
    are bound to the submission.
    """
    checked = await answer_threads.run(
        services, form.tenant_id, definition, answers.check_answers, definition, data
    )
    problems = list(checked.problems)
    problems += await options.find_problems(services, form.tenant_id, definition, checked.values)
    if problems:
        raise InvalidAnswers.of(problems)
    return checked.values


async def _store(
    services: Services,
    form: LiveForm,
    row: NewRow,
    values: dict[str, Any],
    answer_files: AnswerFiles,
    after_insert: AfterInsert | None,
) -> AcceptedSubmission:
    has_files = bool(answer_files.uploaded or answer_files.inline)
    # One statement needs no BEGIN and COMMIT.
    is_single = not (row.max_submissions or form.workflow_id or has_files or after_insert)
    try:
        async with services.db.tx(form.tenant_id, autocommit=is_single) as tx:
            stored = await _insert(tx, form, row, answer_files)
            execution_id = None
            if form.workflow_id is not None:
                execution_id = await _start_workflow(tx, services, form, row, values, stored)
            created_at = stored["created_at"]
            accepted = AcceptedSubmission(row.id, form.id, "received", execution_id, created_at)
            if after_insert is not None:
                await after_insert(tx, accepted)
    except ApiError:
        await inline_files.discard(services, answer_files.inline)
        raise
    return accepted


async def _insert(tx: Tx, form: LiveForm, row: NewRow, answer_files: AnswerFiles) -> Row:
    """Raises FormClosed, InvalidAnswers for files that are not there, and QuotaExceeded."""
    if row.max_submissions is not None:
        await queries.lock_count(tx, form.tenant_id, form.id)
    stored = await queries.insert(tx, form.tenant_id, row)
    if stored is None:
        await _refuse(tx, form)
        raise FormClosed(f"The form {form.name} accepts no more submissions")
    await uploads.bind(tx, form, row.id, answer_files.uploaded)
    with storage.hide_figures():
        await inline_files.record(tx, form, row.id, answer_files.inline)
    if row.is_dispatched:
        # The worker that processes it wakes another one for the event.
        tx.wake(PROCESS.name, row.work_id)
    return stored


async def _start_workflow(
    tx: Tx, services: Services, form: LiveForm, row: NewRow, values: dict[str, Any], stored: Row
) -> str | None:
    submission = {
        "id": row.id,
        "version": row.version,
        "data": values,
        "created_at": stored["created_at"],
        "event_id": stored["event_id"],
    }
    execution_id = await try_workflow(tx, services, form, submission)
    if execution_id is not None:
        await queries.set_execution(tx, form.tenant_id, row.id, execution_id)
    return execution_id


async def _refuse(tx: Tx, form: LiveForm) -> None:
    """Raises when the form was withdrawn or deleted since it was looked up."""
    try:
        current = await live.find(tx, form.tenant_id, form.id)
    except FormNotFound:
        raise FormNotFound("There is no form at this address") from None
    current.require_open()


def _split_metadata(metadata: dict[str, Any], origin: Origin) -> tuple[str, dict[str, Any]]:
    """Returns the source and the caller's other keys. Raises Invalid."""
    if is_deeper(metadata, _MAX_METADATA_DEPTH):
        raise Invalid.field("metadata", f"is nested deeper than {_MAX_METADATA_DEPTH} levels")
    if len(msgspec.json.encode(metadata)) > _MAX_METADATA_BYTES:
        raise Invalid.field("metadata", f"must be at most {_MAX_METADATA_BYTES // 1024} KiB")
    source = metadata.get("source")
    if source is not None and (not isinstance(source, str) or len(source) > _MAX_SOURCE_CHARS):
        raise Invalid.field(
            "metadata.source", f"must be a string of at most {_MAX_SOURCE_CHARS} characters"
        )
    others = {
        key: value for key, value in metadata.items() if key not in _RESERVED and key != "source"
    }
    return storable(source or "").strip() or origin.source, others


def _measure(started_at: datetime | None) -> int | None:
    """Returns how long it took; None for a time that cannot be right."""
    if started_at is None:
        return None
    seconds = round((clock.now() - started_at).total_seconds())
    return seconds if 0 <= seconds <= _MAX_COMPLETION_SECONDS else None


def _compute_fingerprint(form_id: str, address: str, values: dict[str, Any]) -> int:
    content = msgspec.json.encode([form_id, address, values], order="sorted")
    return int.from_bytes(hashlib.sha256(content).digest()[:8], signed=True)


def event_id_of(submission_id: str) -> str:
    """Returns the id of the event that has the answers, so that it is deleted with them."""
    return f"evt_{submission_id[4:]}"


def _encode_event(
    form: LiveForm,
    version: int,
    submission_id: str,
    values: dict[str, Any],
    source: str,
    origin: Origin,
) -> str:
    """Flags are added when the submission is stored."""
    is_short = len(msgspec.json.encode(values)) <= LISTED_BYTES
    created = SubmissionCreated(
        submission_id,
        form.id,
        form.name,
        "received",
        version,
        values if is_short else None,
        source,
        [],
        form.created_by,
        origin.submitted_by,
    )
    return events.encode_events(
        [created], tenant_id=form.tenant_id, event_id=event_id_of(submission_id)
    )


class WakePace:
    """A flood of submissions is left to the workers, which look for due work once a second: each
    wake-up would cost a request to Redis before the visitor gets an answer.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left = _BURST
        self._seen_at = clock()

    def may_wake(self) -> bool:
        now = self._clock()
        self._left = min(_BURST, self._left + (now - self._seen_at) * _PER_SECOND)
        self._seen_at = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True
