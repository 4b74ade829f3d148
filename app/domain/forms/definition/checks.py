"""Checks what a form refers to, and whether its author may use it."""

from collections.abc import Iterator, Sequence

from app.domain.automation.workflows import api as workflows
from app.domain.data.tables import api as tables
from app.jobs.threads import TenantThreads
from app.kit import email_addresses
from app.kit.errors import Invalid, Problem
from app.security.principal import Principal
from app.services import Services
from db.session import Tx

from . import definitions
from .fields.definition import Field
from .fields.registry import FIELD_TYPES
from .schemas import DataTableConfig, FormSettings

_MAPPING = "data_table_config.field_mapping"


async def check_fields(services: Services, tenant_id: str, fields: Sequence[Field]) -> None:
    """Raises Invalid. Patterns take some milliseconds each to compile."""
    if definitions.has_patterns(fields):
        await services.get(TenantThreads).run(tenant_id, definitions.check_fields, fields)
    else:
        definitions.check_fields(fields)


async def check_workflow(
    tx: Tx, principal: Principal, tenant_id: str, workflow_id: str | None
) -> None:
    """Anyone who sets a trigger can start the workflow at any time."""
    if workflow_id is None:
        return
    principal.require("workflows:execute")
    if not await workflows.exists(tx, tenant_id, workflow_id):
        raise Invalid.field("workflow_id", "this workflow does not exist")


async def check_tables(
    tx: Tx,
    principal: Principal,
    tenant_id: str,
    fields: Sequence[Field],
    config: DataTableConfig | None,
) -> None:
    """Raises Invalid for tables and columns that do not exist, and Forbidden unless the author may
    show the options to everybody and add rows.
    """
    sources = [field.data_source for field in fields if field.data_source is not None]
    table_ids = {source.table_id for source in sources}
    if sources:
        principal.require("data_tables:read")
    if config is not None:
        principal.require("data_tables:write")
        table_ids.add(config.table_id)
    if table_ids:
        columns = await tables.list_column_names(tx, tenant_id, sorted(table_ids))
        Invalid.check(_find_source_problems(fields, columns))
        if config is not None:
            check_mapped_fields(fields, config)
            Invalid.check(_find_mapping_problems(config, columns))


def _find_source_problems(
    fields: Sequence[Field], columns: dict[str, list[str]]
) -> Iterator[Problem]:
    for number, field in enumerate(fields):
        source, path = field.data_source, f"fields.{number}.data_source"
        if source is None:
            continue
        if source.table_id not in columns:
            yield f"{path}.table_id", "this data table does not exist"
            continue
        for name in ("value_column", "label_column"):
            if getattr(source, name) not in columns[source.table_id]:
                yield f"{path}.{name}", "this column does not exist"


def check_mapped_fields(fields: Sequence[Field], config: DataTableConfig) -> None:
    """Raises Invalid for fields that the form does not have."""
    answered = {field.id for field in fields if FIELD_TYPES[field.type].has_value}
    Invalid.check(
        (f"{_MAPPING}.{field_id}", "is not a field of this form that is answered")
        for field_id in config.field_mapping
        if field_id not in answered
    )


def _find_mapping_problems(
    config: DataTableConfig, columns: dict[str, list[str]]
) -> Iterator[Problem]:
    if config.table_id not in columns:
        yield "data_table_config.table_id", "this data table does not exist"
        return
    seen: set[str] = set()
    for field_id, column in config.field_mapping.items():
        item = f"{_MAPPING}.{field_id}"
        if column not in columns[config.table_id]:
            yield item, f"the data table has no column {column[:100]}"
        if column in seen:
            yield item, f"another field is mapped to the column {column[:100]}"
        seen.add(column)
    if config.auto_save and not config.field_mapping:
        yield _MAPPING, "is required with auto_save"


def check_settings(settings: FormSettings) -> None:
    """Raises Invalid for an address that is none."""
    email = settings.notifications.email
    if email is not None:
        try:
            email_addresses.normalize(email)
        except ValueError:
            raise Invalid.field(
                "settings.notifications.email", "must be an e-mail address, like name@example.com"
            ) from None
