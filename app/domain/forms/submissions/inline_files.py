"""Answers that are files themselves, such as a drawn signature: they become files of the
submission, so that lists, events and webhooks have their ids alone.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from app.domain.forms.definition.api import FormDefinition, LiveForm
from app.domain.platform.files import api as files
from app.domain.platform.files.api import StoredUpload
from app.kit.files import as_stream
from app.services import Services
from db.session import Tx

from . import upload_queries as queries


class InlineFile(msgspec.Struct, frozen=True):
    """A stored file that has no row yet."""

    field_id: str
    stored: StoredUpload


async def store(
    services: Services, form: LiveForm, definition: FormDefinition, values: Mapping[str, Any]
) -> list[InlineFile]:
    """Stores the contents, while no transaction is open."""
    stored: list[InlineFile] = []
    try:
        for field in definition.inputs:
            value, rules = values.get(field.id), field.file_rules
            if value is None or rules is None or not field.type.is_inline(value):
                continue
            content = await asyncio.to_thread(field.type.decode, value)
            upload = await files.store(
                services,
                form.tenant_id,
                as_stream(content),
                filename=f"{field.id}.png",
                purpose="form",
                max_bytes=rules.max_bytes,
                owner_id=form.id,
            )
            stored.append(InlineFile(field.id, upload))
    except BaseException:
        await discard(services, stored)
        raise
    return stored


def replace(values: Mapping[str, Any], stored: Sequence[InlineFile]) -> dict[str, Any]:
    """Returns the answers with the ids of their files."""
    return {**values, **{item.field_id: item.stored.id for item in stored}}


async def record(tx: Tx, form: LiveForm, submission_id: str, stored: Sequence[InlineFile]) -> None:
    """Gives the files to a submission. Raises QuotaExceeded."""
    for item in stored:
        view = await files.record(tx, form.tenant_id, item.stored, created_by=None)
        await queries.insert_bound(
            tx,
            form.tenant_id,
            form.id,
            view.id,
            item.field_id,
            view.filename,
            view.size_bytes,
            view.mime_type,
            submission_id,
        )


async def discard(services: Services, stored: Sequence[InlineFile]) -> None:
    """Deletes the contents of a submission that was refused."""
    await files.discard(services, [item.stored.key for item in stored])
