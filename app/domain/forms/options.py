"""Options of fields that come from data tables."""

from collections.abc import Sequence
from typing import Any

import msgspec

from app.domain.forms.definitions import FormDefinition
from app.domain.forms.errors import FormFieldNotFound
from app.domain.forms.fields.definition import DataSource, Option
from app.domain.forms.schemas import FormOption
from app.domain.tables import service as tables
from app.domain.tables.errors import DataTableNotFound
from app.kit import logs
from app.kit.errors import ApiError, Problem
from app.services import Services

log = logs.get("forms")

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
    return await read_source(services, tenant_id, definition.data_source)


async def read_source(services: Services, tenant_id: str, source: DataSource) -> list[FormOption]:
    """Returns the options of the newest rows, in the order of their labels. Rows without a value
    are left out; a table or a column that was deleted has no options.
    """
    try:
        async with services.db.tx(tenant_id, autocommit=True) as tx:
            rows = await tables.query_rows(
                tx, tenant_id, source.table_id, {}, sort=None, limit=MAX_OPTIONS
            )
    except DataTableNotFound:
        return []
    except ApiError as error:
        log.warning("options were not read", table_id=source.table_id, reason=error.message)
        raise
    options: dict[str, FormOption] = {}
    for row in rows:
        value = _show(row.values.get(source.value_column))
        label = _show(row.values.get(source.label_column)) or value
        if value and len(value) <= _MAX_CHARS:
            options.setdefault(value, FormOption(value, label[:_MAX_CHARS]))
    return sorted(options.values(), key=lambda option: option.label.casefold())


async def fill(services: Services, tenant_id: str, form: FormDefinition) -> FormDefinition:
    """Returns the form with the options of its data tables, so that they can be named to a person
    and recognized in a message.
    """
    fields = [field.definition for field in form.fields]
    if all(field.data_source is None for field in fields):
        return form
    filled = []
    for field in fields:
        if field.data_source is not None:
            found = await read_source(services, tenant_id, field.data_source)
            known = [Option(option.value, option.label) for option in found]
            filled.append(msgspec.structs.replace(field, options=known))
        else:
            filled.append(field)
    return FormDefinition(filled)


def _show(value: Any) -> str:
    match value:
        case None | list() | dict():
            return ""
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer():
            return str(int(value))
    return str(value).strip()


async def find_problems(
    services: Services, tenant_id: str, form: FormDefinition, values: dict[str, Any]
) -> Sequence[Problem]:
    """Returns the answers that are not among the options of their data tables."""
    problems: list[Problem] = []
    for field_id, value in values.items():
        source = form.by_id[field_id].definition.data_source
        if source is None:
            continue
        known = {option.value for option in await read_source(services, tenant_id, source)}
        chosen = value if isinstance(value, list) else [value]
        if not known.issuperset(chosen):
            problems.append((field_id, "must be one of the options"))
    return problems
