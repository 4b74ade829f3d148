"""Forms and their versions."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from app.context import RequestContext
from app.domain.platform.events import api as events
from app.domain.platform.history import api as history
from app.kit import clock, paging, slugs, validation
from app.kit.changes import apply_changes
from app.kit.ids import new_id
from app.kit.paging import Page, Paged
from app.kit.texts import as_json
from app.kit.views import build_view
from app.security.principal import Principal
from app.services import Services
from db.fast import Row
from db.models import Form
from db.session import Tx

from . import checks, queries, recipients, visibility
from .definitions import FormDefinition
from .errors import FormNotFound, FormVersionNotFound, InvalidFormState, TooManyVersions
from .events import FormCreated, FormDeleted, FormPublished, FormUpdated
from .fields.definition import Field
from .schemas import (
    CreateForm,
    DataTableConfig,
    DuplicatedForm,
    FormSettings,
    FormStats,
    FormSummary,
    FormVersionSummary,
    FormVersionView,
    FormView,
    PublishedForm,
    UpdateForm,
)

_VERSION_PATTERN = re.compile(r"[1-9][0-9]{0,8}")
_SLUG_SUFFIX_CHARS = 8
_MAX_NAME_CHARS = 100
_COPY = " (copy)"
_JSON_COLUMNS = ("settings", "branding", "data_table_config")


async def list_page(
    context: RequestContext,
    page: Page,
    *,
    search: str | None,
    status: str | None,
    sort: str | None,
) -> Paged[FormSummary]:
    summaries, total = await queries.list_page(
        context.tx, page, search=search, status=status, sort=sort
    )
    visibility.hide_counts(context.principal, summaries)
    return paging.paged(summaries, total, page)


async def get(tx: Tx, principal: Principal, form_id: str) -> FormView:
    row = await queries.find(tx, form_id)
    if row is None:
        raise not_found(form_id)
    return _build_view_of_row(principal, row)


async def get_by_slug(tx: Tx, principal: Principal, slug: str) -> FormView:
    row = await queries.find_by_slug(tx, slug)
    if row is None:
        raise FormNotFound(f"There is no form with the slug {slug[:100]}")
    return _build_view_of_row(principal, row)


async def require(tx: Tx, form_id: str) -> None:
    """Raises FormNotFound unless the form exists."""
    if not await queries.exists(tx, form_id):
        raise not_found(form_id)


def not_found(form_id: str) -> FormNotFound:
    return FormNotFound(f"There is no form {form_id[:64]}")


async def _find(tx: Tx, form_id: str, *, for_delete: bool = False) -> Form:
    form = await queries.find_row(tx, form_id, for_delete=for_delete)
    if form is None:
        raise not_found(form_id)
    return form


def rate(part: int, whole: int) -> float:
    """Returns a share in percent, from 0 to 100."""
    return round(min(100.0, 100 * part / whole), 2) if whole else 0.0


def _build_stats(submissions: int, views: int) -> FormStats:
    return FormStats(submissions, views, rate(submissions, views))


def _build_view_of_row(principal: Principal, row: Row) -> FormView:
    stats = _build_stats(row["submissions"], row["views"])
    return visibility.hide_internals(principal, queries.build_view(row, stats=stats))


# Creating and changing


async def create(tx: Tx, services: Services, principal: Principal, data: CreateForm) -> FormView:
    tenant_id = principal.home
    await checks.check_fields(services, tenant_id, data.fields)
    checks.check_settings(data.settings)
    await queries.check_quota(tx, tenant_id)
    await checks.check_workflow(tx, principal, tenant_id, data.workflow_id)
    await checks.check_tables(tx, principal, tenant_id, data.fields, data.data_table_config)
    form = Form(
        id=new_id("frm"),
        tenant_id=tenant_id,
        name=data.name,
        slug=slugs.generate(data.name, _SLUG_SUFFIX_CHARS),
        description=data.description,
        status="draft",
        version=1,
        field_count=len(data.fields),
        settings=msgspec.to_builtins(data.settings),
        branding=msgspec.to_builtins(data.branding),
        workflow_id=data.workflow_id,
        data_table_config=msgspec.to_builtins(data.data_table_config),
        created_by=principal.user_id,
    )
    await _request_confirmation(tx, services, principal, form, data.settings)
    return await _add(tx, principal, form, data.fields)


async def _request_confirmation(
    tx: Tx, services: Services, principal: Principal, form: Form, settings: FormSettings
) -> None:
    address = settings.notifications.email
    if address is not None:
        ids = (form.tenant_id, address, principal.user_id)
        await recipients.request_confirmation(tx, services, *ids)


async def _add(tx: Tx, principal: Principal, form: Form, fields: Sequence[Field]) -> FormView:
    session = await tx.session()
    session.add(form)
    await session.flush()
    await _store_version(tx, principal, form, fields)
    created = FormCreated(form.id, form.name, form.slug)
    await events.emit(tx, created, tenant_id=form.tenant_id)
    return await get(tx, principal, form.id)


async def update(
    tx: Tx, services: Services, principal: Principal, form_id: str, data: UpdateForm
) -> FormView:
    """A change of the fields makes a version once the newest one was published; the fields of a
    published form are submitted from then on.
    """
    values = validation.set_fields(data)
    fields = values.pop("fields", UNSET)
    if fields is not UNSET:
        # Before the first statement, which opens the transaction.
        await checks.check_fields(services, principal.home, fields)
    form = await _find(tx, form_id)
    before, is_published = await load_fields(tx, form)
    if data.settings is not UNSET:
        checks.check_settings(data.settings)
        await _request_confirmation(tx, services, principal, form, data.settings)
    if values.get("workflow_id") not in {None, form.workflow_id}:
        await checks.check_workflow(tx, principal, form.tenant_id, values["workflow_id"])
    new_fields = before if fields is UNSET else fields
    await _check_tables(tx, principal, form, new_fields, data)
    for name in set(_JSON_COLUMNS) & set(values):
        values[name] = msgspec.to_builtins(values[name])
    changed = apply_changes(form, values)
    if _encode(new_fields) != _encode(before):
        changed.append("fields")
        form.version = _count_version(form, is_published=is_published)
        form.field_count = len(new_fields)
    if changed:
        await _save(tx, form, changed)
        if "fields" in changed:
            history.note(
                tx,
                "form",
                form.id,
                form.name,
                tenant_id=form.tenant_id,
                changes={"fields": (before, new_fields)},
            )
            await _store_version(tx, principal, form, new_fields)
    return await get(tx, principal, form.id)


def _count_version(form: Form, *, is_published: bool) -> int:
    """Returns the number of the version that a change makes. Raises TooManyVersions."""
    if is_published and form.version >= queries.MAX_VERSIONS:
        message = f"A form has at most {queries.MAX_VERSIONS} versions"
        raise TooManyVersions(f"{message}; duplicate this one and change the copy")
    return form.version + is_published


def _encode(fields: Sequence[Field]) -> bytes:
    """Returns text to compare: in Python, 1 and True are equal."""
    return msgspec.json.encode(fields, order="sorted")


async def _check_tables(
    tx: Tx, principal: Principal, form: Form, fields: Sequence[Field], data: UpdateForm
) -> None:
    """A configuration that stays as it is needs no permission, and its table may be gone."""
    stored = msgspec.convert(form.data_table_config, DataTableConfig | None)
    config = stored if data.data_table_config is UNSET else data.data_table_config
    if data.fields is not UNSET and config is not None:
        checks.check_mapped_fields(fields, config)
    changed = config if config != stored else None
    if data.fields is not UNSET or changed is not None:
        await checks.check_tables(tx, principal, form.tenant_id, fields, changed)


async def _save(tx: Tx, form: Form, changed: list[str]) -> None:
    form.updated_at = clock.now()
    await (await tx.session()).flush()
    updated = FormUpdated(form.id, form.name, form.slug, form.version, changed)
    await events.emit(tx, updated, tenant_id=form.tenant_id)


async def delete(tx: Tx, form_id: str) -> None:
    """Hides the form; its submissions and files are deleted in batches. No submission is accepted
    after that.
    """
    form = await _find(tx, form_id, for_delete=True)
    form.deleted_at, form.status = clock.now(), "archived"
    await (await tx.session()).flush()
    await queries.release_uploads(tx, form.tenant_id, form.id)
    deleted = FormDeleted(form.id, form.name, form.slug)
    await events.emit(tx, deleted, tenant_id=form.tenant_id)


# States


async def publish(tx: Tx, form_id: str) -> PublishedForm:
    form = await _find(tx, form_id)
    if form.status == "published":
        raise InvalidFormState("This form is already published")
    form.status, form.published_at = "published", clock.now()
    await (await tx.session()).flush()
    await queries.publish_version(tx, form.tenant_id, form.id, form.version)
    published = FormPublished(form.id, form.name, form.slug, form.version)
    await events.emit(tx, published, tenant_id=form.tenant_id)
    return build_view(PublishedForm, form)


async def unpublish(tx: Tx, principal: Principal, form_id: str) -> FormView:
    form = await _find(tx, form_id)
    if form.status != "published":
        raise InvalidFormState(f"This form is not published; its status is {form.status}")
    form.status = "draft"
    await _save(tx, form, ["status"])
    return await get(tx, principal, form.id)


async def archive(tx: Tx, principal: Principal, form_id: str) -> FormView:
    form = await _find(tx, form_id)
    if form.status == "archived":
        raise InvalidFormState("This form is already archived")
    form.status = "archived"
    await _save(tx, form, ["status"])
    return await get(tx, principal, form.id)


async def duplicate(tx: Tx, principal: Principal, form_id: str) -> DuplicatedForm:
    """The copy starts as a draft, without submissions."""
    source = await _find(tx, form_id)
    tenant_id = source.tenant_id
    fields, _ = await load_fields(tx, source)
    config = msgspec.convert(source.data_table_config, DataTableConfig | None)
    await queries.check_quota(tx, tenant_id)
    await checks.check_workflow(tx, principal, tenant_id, source.workflow_id)
    await checks.check_tables(tx, principal, tenant_id, fields, config)
    name = source.name[: _MAX_NAME_CHARS - len(_COPY)] + _COPY
    form = Form(
        **{name: getattr(source, name) for name in ("description", "settings", "branding")},
        id=new_id("frm"),
        tenant_id=tenant_id,
        name=name,
        slug=slugs.generate(name, _SLUG_SUFFIX_CHARS),
        status="draft",
        version=1,
        field_count=source.field_count,
        workflow_id=source.workflow_id,
        data_table_config=source.data_table_config,
        created_by=principal.user_id,
    )
    await _add(tx, principal, form, fields)
    return build_view(DuplicatedForm, form)


# Versions


async def _store_version(tx: Tx, principal: Principal, form: Form, fields: Sequence[Field]) -> None:
    await queries.store_version(
        tx,
        form.tenant_id,
        new_id("frv"),
        form.id,
        form.version,
        as_json(fields),
        principal.user_id,
        form.status == "published",
    )


async def load_fields(tx: Tx, form: Form) -> tuple[list[Field], bool]:
    """Returns the fields of the newest version, and whether it was ever published."""
    row = await queries.load_fields(tx, form.tenant_id, form.id, form.version)
    if row is None:
        raise FormVersionNotFound(f"This form has no version {form.version}")
    fields: list[Any] = msgspec.json.decode(row["fields"], type=list[Field])
    return fields, row["published_at"] is not None


async def load_definition(tx: Tx, form_id: str) -> tuple[str, FormDefinition]:
    """Returns the tenant of a form and the definition of its newest version, published or not."""
    row = await queries.find(tx, form_id)
    if row is None:
        raise not_found(form_id)
    return row["tenant_id"], FormDefinition(queries.build_view(row, stats=None).fields)


async def list_versions(tx: Tx, form_id: str, page: Page) -> Paged[FormVersionSummary]:
    versions, total = await queries.list_versions(tx, form_id, page)
    if not versions:
        await require(tx, form_id)
    return paging.paged(versions, total, page)


async def get_version(tx: Tx, form_id: str, version: str) -> FormVersionView:
    if _VERSION_PATTERN.fullmatch(version):
        view = await queries.find_version(tx, form_id, int(version))
        if view is not None:
            return view
    await require(tx, form_id)
    raise FormVersionNotFound(f"This form has no version {version[:20]}")
