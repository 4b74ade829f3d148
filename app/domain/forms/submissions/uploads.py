"""Files of forms: uploaded for one field, then bound to a submission, or deleted."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

import msgspec

from app.domain.forms.definition.api import FileRules, FormDefinition, LiveForm, live, say
from app.domain.platform.files import api as files
from app.domain.platform.files.api import Arrival, Conditions, Content, StoredUpload
from app.domain.platform.files.errors import FileNotFound
from app.domain.platform.storage import api as storage
from app.kit import clock, logs
from app.kit.errors import Invalid, Problem, UnsupportedFileType
from app.kit.views import Data
from app.security.principal import Principal
from app.services import Services
from db.fast import tenant_of
from db.session import ALL_TENANTS, Tx

from . import upload_queries as queries
from .errors import InvalidAnswers
from .submission_schemas import UploadedFile
from .upload_limits import SenderLimit

log = logs.get("forms")

FIELD_NAME: Final = "field_id"
_MEGABYTE = 1024 * 1024
# How long a file waits for its submission.
_LIFETIME = timedelta(hours=24)
_BATCH = 100

StoreAnswer = Callable[[Tx, Data[UploadedFile]], Awaitable[None]]


class Sender(msgspec.Struct, frozen=True):
    """Who uploads a file. `network` is what is limited: an address, or the network of an IPv6
    customer; `body_bytes` is the length of the body, if the client names one.
    """

    network: str
    body_bytes: int | None


class FormUpload(files.StreamedFile, Protocol):
    """A file that arrives; the texts beside it are complete once it was read."""

    @property
    def texts(self) -> dict[str, str]: ...


async def upload(
    services: Services,
    form: LiveForm,
    sender: Sender,
    open_upload: Callable[[], Awaitable[FormUpload]],
    store_answer: StoreAnswer,
) -> Data[UploadedFile]:
    """Raises FileTooLarge, UnsupportedFileType, TooManyUploads, QuotaExceeded, and Invalid for a
    field that takes no files.
    """
    form.require_open()
    definition = await live.load_definition(services, form)
    if not _list_rules(definition):
        raise _no_file_field()
    arrival = _describe(form, sender, _find_max_bytes(services, definition))
    arriving: list[FormUpload] = []

    async def open_first() -> FormUpload:
        arriving.append(await open_upload())
        name = arriving[0].texts.get(FIELD_NAME)
        if name is not None:
            _find_rules(definition, name)
        return arriving[0]

    async def save(tx: Tx, stored: StoredUpload) -> Data[UploadedFile]:
        field_id = arriving[0].texts.get(FIELD_NAME)
        if field_id is None:
            raise Invalid.field(FIELD_NAME, "is required")
        _check(_find_rules(definition, field_id), stored)
        answer = Data(await _record(tx, services, form, field_id, stored, sender))
        await store_answer(tx, answer)
        return answer

    with storage.hide_figures():
        async with services.get(SenderLimit).hold(sender.network):
            await _check_waiting(services, form, sender, arrival.min_file_bytes)
            return await files.receive(services, arrival, open_first, save)


def _describe(form: LiveForm, sender: Sender, max_bytes: int) -> Arrival:
    tenant_id = form.tenant_id
    return Arrival(tenant_id, "form", sender.body_bytes, max_bytes, f"form:{tenant_id}", form.id)


def _list_rules(definition: FormDefinition) -> dict[str, FileRules]:
    """Returns which files fields take, by their ids."""
    rules = ((field.id, field.file_rules) for field in definition.inputs)
    return {field_id: item for field_id, item in rules if item is not None}


def _find_max_bytes(services: Services, definition: FormDefinition) -> int:
    """The limit of the field is checked once the field is known, which may follow the file."""
    limits = [rules.max_bytes for rules in _list_rules(definition).values()]
    return min(max(limits, default=0), services.settings.max_file_mb * _MEGABYTE)


def _find_rules(definition: FormDefinition, field_id: str) -> FileRules:
    field = definition.by_id.get(field_id)
    rules = field.file_rules if field is not None else None
    if rules is None:
        raise _no_file_field()
    return rules


def _no_file_field() -> Invalid:
    return Invalid.field(FIELD_NAME, "is not a field of this form that takes a file")


def _check(rules: FileRules, stored: StoredUpload) -> None:
    if stored.size_bytes > rules.max_bytes:
        raise files.build_too_large(rules.max_bytes)
    if not rules.allows(stored.filename, stored.mime_type):
        allowed = ", ".join(rules.endings)
        raise UnsupportedFileType(
            f"This field does not take files of the type {stored.mime_type}"
            + (f"; it takes {allowed}" if allowed else ""),
            details={"mime_type": stored.mime_type, "allowed_types": rules.endings},
        )


async def _check_waiting(
    services: Services, form: LiveForm, sender: Sender, file_bytes: int
) -> None:
    """By what is known of the file before it arrives."""
    async with services.db.tx(form.tenant_id, autocommit=True) as tx:
        waiting = await queries.count_waiting(tx, form.tenant_id, form.id, sender.network)
    waiting.check(file_bytes, services.settings.form_upload_mb_per_day)


async def _record(
    tx: Tx,
    services: Services,
    form: LiveForm,
    field_id: str,
    stored: StoredUpload,
    sender: Sender,
) -> UploadedFile:
    # Locks the tenant's counter of files, so that no two uploads take the same share.
    view = await files.record(tx, form.tenant_id, stored, created_by=None)
    waiting = await queries.insert(
        tx,
        form.tenant_id,
        form.id,
        sender.network,
        view.id,
        field_id,
        view.filename,
        view.size_bytes,
        view.mime_type,
        clock.now() + _LIFETIME,
    )
    waiting.check(view.size_bytes, services.settings.form_upload_mb_per_day)
    return UploadedFile(view.id, view.filename, view.size_bytes, view.mime_type)


# Submissions, drafts and conversations


def select_files(definition: FormDefinition, values: dict[str, Any]) -> dict[str, str]:
    """Returns the ids of files among the answers, by the ids of their fields."""
    return {
        name: values[name]
        for name in _list_rules(definition)
        if name in values and not definition.by_id[name].type.is_inline(values[name])
    }


async def bind(tx: Tx, form: LiveForm, submission_id: str, file_ids: dict[str, str]) -> None:
    """Gives uploaded files to a submission. Raises InvalidAnswers for a file of another form or
    field, or of another submission.
    """
    if file_ids:
        bound = await queries.bind(tx, form.tenant_id, form.id, file_ids, submission_id)
        if len(bound) < len(file_ids):
            raise InvalidAnswers.of(_find_missing(file_ids, bound))


async def keep(
    services: Services,
    form: LiveForm,
    definition: FormDefinition,
    values: dict[str, Any],
    until: datetime,
) -> list[Problem]:
    """Keeps the uploaded files among answers until a time. Returns a problem for each file that
    `bind` would refuse.
    """
    file_ids = select_files(definition, values)
    if not file_ids:
        return []
    async with services.db.tx(form.tenant_id, autocommit=True) as tx:
        kept = await queries.keep(tx, form.tenant_id, form.id, file_ids, until)
    return _find_missing(file_ids, kept)


def _find_missing(file_ids: dict[str, str], found: set[str]) -> list[Problem]:
    """`found` has the ids of fields."""
    return [(name, say("missing_file")) for name in file_ids if name not in found]


async def serve(
    services: Services, principal: Principal, form_id: str, file_id: str, conditions: Conditions
) -> Content:
    """Returns the content of a file that was submitted to this form. Raises FileNotFound."""
    async with services.db.tx(principal.scope, autocommit=True) as tx:
        if not await queries.is_submitted(tx, tenant_of(tx), form_id, file_id):
            raise FileNotFound(f"No submission of this form has a file {file_id[:64]}")
    return await files.serve(services, principal, file_id, conditions)


async def delete_expired(services: Services) -> bool:
    """Deletes files that no submission has. Returns True when there may be more of them."""
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        rows = await queries.list_expired(tx, _BATCH)
    failures = 0
    for row in rows:
        try:
            await _delete(services, row["tenant_id"], row["file_id"])
        except (RuntimeError, OSError):
            # One file that cannot be deleted must not keep the others.
            log.exception("an uploaded file was not deleted", file_id=row["file_id"])
            failures += 1
    return len(rows) == _BATCH and failures < _BATCH


async def _delete(services: Services, tenant_id: str, file_id: str) -> None:
    async with services.db.tx(tenant_id) as tx:
        if await queries.delete_expired(tx, tenant_id, file_id):
            try:
                await files.delete(tx, services, tenant_id, file_id)
            except FileNotFound:
                # A user has deleted it.
                return
