"""Exports submissions as CSV: page by page, each with a transaction of its own.

Only what a page needs is in memory: its submissions, and the definition of one of their versions
after the other. The cache of definitions is for forms that visitors use, and has none of them.
"""

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from app.domain.forms.definition.api import FormDefinition, InputField, LiveForm, live, queries
from app.jobs.threads import TenantThreads
from app.kit import csv_cells, csv_export, filenames
from app.kit.csv_export import ExportLimit
from app.services import Services
from db.fast import Row, tenant_of
from db.session import Scope

from . import submission_queries as rows_queries
from . import submissions
from .file_links import build_files_url, link_pictures
from .submission_queries import SubmissionFilter

_PAGE: Final = 200
# Of the answers of a page as JSON.
_PAGE_BYTES: Final = 1024 * 1024
# Of a page, also those that are empty.
_PAGE_CELLS: Final = 100_000
# As many as spreadsheets have.
MAX_COLUMNS: Final = 16_384
_MAX_LABEL_CHARS: Final = 500
_OWN_COLUMNS: Final = ("submission_id", "created_at", "status", "source")


class Export(msgspec.Struct, frozen=True):
    form: LiveForm
    filters: SubmissionFilter
    # The last submission that the caller has already.
    after: tuple[datetime, str] | None = None

    @property
    def filename(self) -> str:
        name = self.form.name.replace("/", "-").replace("\\", "-")
        return filenames.clean(f"{name}.csv") or "submissions.csv"


class Columns(msgspec.Struct, frozen=True):
    """The ids and labels of the fields of all published versions, those of the newest first.
    Answers are written as people read them, by the version that they were made for.
    """

    columns: list[tuple[str, str]]
    files_url: str

    def encode_header(self) -> bytes:
        counts = Counter((*_OWN_COLUMNS, *(label for _, label in self.columns)))
        labels = (
            label if counts[label] == 1 else f"{label} ({field_id})"
            for field_id, label in self.columns
        )
        return csv_cells.encode_rows([[*_OWN_COLUMNS, *map(csv_cells.escape_formula, labels)]])

    def encode_rows(self, rows: Sequence[Row], definition: FormDefinition) -> list[bytes]:
        """Encodes submissions of one version."""
        return [csv_cells.encode_rows([self._format(row, definition)]) for row in rows]

    def _format(self, row: Row, definition: FormDefinition) -> list[str]:
        source = csv_cells.escape_formula(row["source"])
        cells = [row["id"], _show(row["created_at"]), row["status"], source]
        data = link_pictures(definition, msgspec.json.decode(row["data"]), self.files_url)
        for field_id, _ in self.columns:
            field, value = definition.by_id.get(field_id), data.get(field_id)
            cells.append("" if field is None or value is None else _format_cell(field, value))
        return cells


async def prepare(
    services: Services, scope: Scope, filters: SubmissionFilter, resume_after: str | None = None
) -> Export:
    """Raises FormNotFound, or SubmissionNotFound for `resume_after`."""
    async with services.db.tx(scope, autocommit=True) as tx:
        form = await live.find(tx, tenant_of(tx), filters.form_id)
        after = None
        if resume_after is not None:
            created_at = await rows_queries.find_created_at(tx, form.id, resume_after)
            if created_at is None:
                raise submissions.not_found(resume_after)
            after = (created_at, resume_after)
    return Export(form, filters, after)


async def start(services: Services, export: Export) -> AsyncIterator[bytes]:
    """Returns the parts of the file. Raises RateLimited."""
    limit, tenant_id = services.get(ExportLimit), export.form.tenant_id
    return await csv_export.start(limit, tenant_id, stream(services, export))


async def stream(services: Services, export: Export) -> AsyncGenerator[bytes]:
    """Yields the parts of the file, the oldest submissions first."""
    form, after = export.form, export.after
    async with services.db.tx(form.tenant_id, autocommit=True) as tx:
        listed = await queries.list_columns(
            tx, form.tenant_id, form.id, max_chars=_MAX_LABEL_CHARS, limit=MAX_COLUMNS
        )
    columns = Columns(listed, build_files_url(services, form.id))
    yield await services.get(TenantThreads).run(form.tenant_id, columns.encode_header)
    limit = most = max(1, min(_PAGE, _PAGE_CELLS // (len(listed) + 1)))
    while True:
        async with services.db.tx(form.tenant_id, autocommit=True) as tx:
            rows = await rows_queries.list_after(
                tx, export.filters, after, limit=limit, max_bytes=_PAGE_BYTES
            )
        if not rows:
            return
        yield await _encode_page(services, form, columns, rows)
        after = (rows[-1]["created_at"], rows[-1]["id"])
        # The database reads no more long answers than it returns.
        limit = min(most, 2 * limit) if len(rows) == limit else len(rows)
        del rows


async def _encode_page(
    services: Services, form: LiveForm, columns: Columns, rows: Sequence[Row]
) -> bytes:
    threads = services.get(TenantThreads)
    by_version: dict[int, list[Row]] = {}
    for row in rows:
        by_version.setdefault(row["version"], []).append(row)
    encoded: dict[str, bytes] = {}
    for version, of_version in by_version.items():
        definition = await live.read_definition(services, form, version)
        lines = await threads.run(form.tenant_id, columns.encode_rows, of_version, definition)
        encoded.update(zip((row["id"] for row in of_version), lines, strict=True))
    return b"".join(encoded[row["id"]] for row in rows)


def _format_cell(field: InputField[Any], value: Any) -> str:
    text = field.type.format(field, value)
    # A negative number is no formula.
    is_number = isinstance(value, int | float)
    return text if is_number else csv_cells.escape_formula(text)


def _show(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
