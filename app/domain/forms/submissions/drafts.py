"""Drafts: answers that a visitor saves, and continues with a secret link for 30 days."""

import hashlib
import secrets
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import msgspec

from app.domain.forms.definition.api import LiveForm, live, options
from app.kit import clock
from app.kit.errors import Invalid
from app.kit.ids import new_id
from app.kit.texts import as_json
from app.services import Services
from db.session import Tx

from . import answer_threads, progress, uploads
from . import draft_queries as queries
from .errors import DraftNotFound, InvalidAnswers
from .submission_schemas import DraftView, SavedDraftView, SaveDraft

_LIFETIME = timedelta(days=30)
_MAX_BYTES = 256 * 1024
_TOKEN_BYTES = 32
_NOT_FOUND = "This draft does not exist, or its 30 days are over"

StoreDraft = Callable[[Tx, SavedDraftView], Awaitable[None]]


async def save(
    services: Services, form: LiveForm, body: SaveDraft, store: StoreDraft
) -> SavedDraftView:
    """Raises InvalidAnswers for wrong answers; missing ones are what a draft is for."""
    form.require_open()
    version, expires_at = body.version or form.version, clock.now() + _LIFETIME
    definition = await live.load_definition(services, form, version)
    state = await answer_threads.run(
        services, form.tenant_id, definition, progress.compute, definition, body.data
    )
    problems = list(state.problems.items())
    problems += await options.find_problems(services, form.tenant_id, definition, state.values)
    problems += await uploads.keep(services, form, definition, state.values, expires_at)
    if problems:
        raise InvalidAnswers.of(problems)
    if len(msgspec.json.encode(state.values)) > _MAX_BYTES:
        raise Invalid.field("data", f"must be at most {_MAX_BYTES // 1024} KiB in a draft")
    stopped_at = state.next_field.id if state.next_field is not None else None
    token = body.token or secrets.token_urlsafe(_TOKEN_BYTES)
    async with services.db.tx(form.tenant_id) as tx:
        view = await _store(tx, form, version, token, body, state.values, stopped_at)
        saved = SavedDraftView(
            token,
            # Browsers send no fragment to a server, so that no log has it.
            f"{services.settings.public_url}/f/{form.slug}#draft={token}",
            version,
            state.values,
            view.expires_at,
        )
        await store(tx, saved)
    return saved


async def _store(
    tx: Tx,
    form: LiveForm,
    version: int,
    token: str,
    body: SaveDraft,
    values: dict[str, Any],
    stopped_at: str | None,
) -> DraftView:
    tenant_id, expires_at = form.tenant_id, clock.now() + _LIFETIME
    token_hash = _hash(token)
    if body.token is None:
        columns = (new_id("fdr"), form.id, version, token_hash, as_json(values), stopped_at)
        view = await queries.insert(tx, tenant_id, *columns, expires_at)
    else:
        view = await queries.update(
            tx, tenant_id, form.id, token_hash, version, values, stopped_at, expires_at
        )
    if view is None:
        raise DraftNotFound(_NOT_FOUND)
    return view


async def get(services: Services, form: LiveForm, token: str) -> DraftView:
    async with services.db.tx(form.tenant_id, autocommit=True) as tx:
        view = await queries.find(tx, form.tenant_id, form.id, _hash(token))
    if view is None:
        raise DraftNotFound(_NOT_FOUND)
    return view


async def delete(tx: Tx, form: LiveForm, token: str) -> None:
    """Ends the draft that became a submission; one that does not exist is no error."""
    await queries.delete(tx, form.tenant_id, form.id, _hash(token))


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
