"""Exports submissions as CSV: page by page, each with a transaction of its own."""

from collections import Counter
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime
from typing import Any, Final

from app.domain.forms import live
from app.domain.forms import submission_queries as queries
from app.domain.forms.definitions import FormDefinition
from app.domain.forms.errors import FormVersionNotFound
from app.domain.forms.fields.protocol import InputField
from app.domain.forms.live import LiveForm
from app.domain.forms.queries import list_published_versions
from app.domain.forms.submission_queries import SubmissionFilter
from app.kit import csv_cells, filenames
from app.services import Services
from db.fast import Row, tenant_of
from db.session import Scope

_PAGE: Final = 200
_OWN_COLUMNS: Final = ("submission_id", "created_at", "status", "source")


class Export:
    """The columns of one export: all fields of all published versions, those of the newest first.
    Answers are written as people read them, by the version that they were made for.
    """

    def __init__(self, form: LiveForm, versions: dict[int, FormDefinition]) -> None:
        self.form = form
        self._versions = versions
        labels: dict[str, str] = {}
        for number in sorted(versions, reverse=True):
            for field in versions[number].inputs:
                labels.setdefault(field.id, field.definition.label)
        self._field_ids = list(labels)
        counts = Counter((*_OWN_COLUMNS, *labels.values()))
        self._header = [
            label if counts[label] == 1 else f"{label} ({field_id})"
            for field_id, label in labels.items()
        ]

    @property
    def filename(self) -> str:
        name = self.form.name.replace("/", "-").replace("\\", "-")
        return filenames.clean(f"{name}.csv") or "submissions.csv"

    def encode_header(self) -> bytes:
        return csv_cells.encode_rows(
            [[*_OWN_COLUMNS, *map(csv_cells.escape_formula, self._header)]]
        )

    def encode_page(self, rows: Iterable[Row]) -> bytes:
        return csv_cells.encode_rows(self._format(row) for row in rows)

    def _format(self, row: Row) -> list[str]:
        source = csv_cells.escape_formula(row["source"])
        cells = [row["id"], _show(row["created_at"]), row["status"], source]
        definition, data = self._versions.get(row["version"]), row["data"]
        for field_id in self._field_ids:
            field = definition.by_id.get(field_id) if definition is not None else None
            value = data.get(field_id)
            cells.append("" if field is None or value is None else _format_cell(field, value))
        return cells


async def prepare(services: Services, scope: Scope, filters: SubmissionFilter) -> Export:
    """Raises FormNotFound, before the answer starts."""
    async with services.db.tx(scope, autocommit=True) as tx:
        form = await live.find(tx, tenant_of(tx), filters.form_id)
        numbers = await list_published_versions(tx, form.tenant_id, form.id)
    versions = {}
    for number in numbers or [form.version]:
        try:
            versions[number] = await live.load_definition(services, form, number)
        except FormVersionNotFound:
            # It was never published, so that there are no submissions.
            continue
    return Export(form, versions)


async def stream(
    services: Services, export: Export, filters: SubmissionFilter
) -> AsyncIterator[bytes]:
    """Yields the parts of the file, the oldest submissions first."""
    yield export.encode_header()
    after: tuple[datetime, str] | None = None
    while True:
        async with services.db.tx(export.form.tenant_id, autocommit=True) as tx:
            rows = await queries.list_after(tx, filters, after, _PAGE)
        if rows:
            yield export.encode_page(rows)
            after = (rows[-1]["created_at"], rows[-1]["id"])
        if len(rows) < _PAGE:
            return


def _format_cell(field: InputField[Any], value: Any) -> str:
    text = field.type.format(field, value)
    # A negative number is no formula.
    is_number = isinstance(value, int | float)
    return text if is_number else csv_cells.escape_formula(text)


def _show(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
