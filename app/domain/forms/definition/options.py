"""Options of fields that come from data tables."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from app.domain.data.tables import api as tables
from app.domain.data.tables.errors import DataTableNotFound
from app.kit.errors import Problem
from app.services import Services

from .definitions import FormDefinition
from .errors import FormFieldNotFound
from .fields.definition import DataSource
from .fields.options import Option
from .fields.wordings import say
from .schemas import FormOption

MAX_OPTIONS = 1000
_MAX_CHARS = 200


async def list_options(
    services: Services, tenant_id: str, form: FormDefinition, field_id: str
) -> list[FormOption]:
    """Returns the options of a field, from the data table if it has one. Raises
    FormFieldNotFound.
    """
    field = form.by_id.get(field_id)
    if field is None or not field.type.has_options:
        raise FormFieldNotFound(f"This form has no field {field_id[:64]} with options")
    definition = field.definition
    if definition.data_source is None:
        return [FormOption(option.value, option.label) for option in definition.options]
    source = definition.data_source
    return [
        FormOption(option.value, option.label)
        for option in (await _read_sources(services, tenant_id, [source]))[source]
    ]


async def _read_sources(
    services: Services, tenant_id: str, sources: Iterable[DataSource]
) -> dict[DataSource, list[Option]]:
    """Returns the options of the newest rows, in the order of their labels. Rows without a value
    are left out; a table or a column that was deleted has no options. Each table is read once.
    """
    options: dict[DataSource, list[Option]] = {}
    for table_id, of_table in _group_by_table(sources).items():
        columns = [name for item in of_table for name in (item.value_column, item.label_column)]
        try:
            async with services.db.tx(tenant_id, autocommit=True) as tx:
                rows = await tables.list_texts(
                    tx, tenant_id, table_id, columns, limit=MAX_OPTIONS, max_chars=_MAX_CHARS + 1
                )
        except DataTableNotFound:
            rows = []
        for number, source in enumerate(of_table):
            options[source] = _build_options((row[2 * number], row[2 * number + 1]) for row in rows)
            # Other requests go on between two sources of a large table.
            await asyncio.sleep(0)
    return options


def _group_by_table(sources: Iterable[DataSource]) -> dict[str, list[DataSource]]:
    groups: dict[str, list[DataSource]] = {}
    for source in dict.fromkeys(sources):
        groups.setdefault(source.table_id, []).append(source)
    return groups


def _build_options(rows: Iterable[tuple[str, str]]) -> list[Option]:
    options: dict[str, Option] = {}
    for value, label in rows:
        if value and len(value) <= _MAX_CHARS:
            options.setdefault(value, Option(value, (label or value)[:_MAX_CHARS]))
    return sorted(options.values(), key=lambda option: option.label.casefold())


async def fill(services: Services, tenant_id: str, form: FormDefinition) -> FormDefinition:
    """Returns the form with the options of its data tables, so that they can be named to a person
    and recognized in a message.
    """
    fields = [field.definition for field in form.fields]
    sources = [field.data_source for field in fields if field.data_source is not None]
    if not sources:
        return form
    options = await _read_sources(services, tenant_id, sources)
    return FormDefinition(
        [
            field
            if field.data_source is None
            else msgspec.structs.replace(field, options=options[field.data_source])
            for field in fields
        ]
    )


async def find_problems(
    services: Services, tenant_id: str, form: FormDefinition, values: dict[str, Any]
) -> Sequence[Problem]:
    """Returns the answers that are not among the options of their data tables."""
    chosen: dict[DataSource, set[str]] = {}
    for source, texts in _list_choices(form, values).values():
        chosen.setdefault(source, set()).update(texts)
    known = await _find_known(services, tenant_id, chosen)
    return [
        (field_id, say("unknown_option"))
        for field_id, (source, texts) in _list_choices(form, values).items()
        if not known[source].issuperset(texts)
    ]


def _list_choices(
    form: FormDefinition, values: dict[str, Any]
) -> dict[str, tuple[DataSource, list[str]]]:
    """Returns what was chosen from data tables, by the ids of fields."""
    choices = {}
    for field_id, value in values.items():
        source = form.by_id[field_id].definition.data_source
        if source is not None:
            choices[field_id] = (source, value if isinstance(value, list) else [value])
    return choices


async def _find_known(
    services: Services, tenant_id: str, chosen: dict[DataSource, set[str]]
) -> dict[DataSource, set[str]]:
    """Returns which of the chosen values are options of their sources."""
    known: dict[DataSource, set[str]] = {}
    for table_id, of_table in _group_by_table(chosen).items():
        columns = [source.value_column for source in of_table]
        texts = list(set().union(*(chosen[source] for source in of_table)))
        try:
            async with services.db.tx(tenant_id, autocommit=True) as tx:
                found = await tables.find_texts(
                    tx, tenant_id, table_id, columns, texts, limit=MAX_OPTIONS
                )
        except DataTableNotFound:
            found = [set() for _ in of_table]
        known.update(zip(of_table, found, strict=True))
    return known
