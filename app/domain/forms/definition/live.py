"""Forms as visitors meet them: looked up by slug or id, with the definitions of their versions."""

from datetime import datetime
from typing import Any, Final

import msgspec

from app.domain.agents.llm.api import LOCAL_MODEL
from app.kit import clock
from app.kit.caches import SizedCache
from app.security.plans import Plan, plan_of
from app.services import Services
from db.fast import Row
from db.session import Tx

from . import queries
from .definitions import FormDefinition
from .errors import FormClosed, FormNotFound, FormNotPublished, FormVersionNotFound
from .fields.definition import Field
from .schemas import Branding, DataTableConfig, FormSettings

_MAX_DEFINITIONS = 500
# Of their fields as JSON; a definition takes a few times as much.
_MAX_BYTES = 16 * 1024 * 1024


# The model of a form whose messages no model reads.
NO_MODEL: Final = "none"


class LiveForm(msgspec.Struct, frozen=True, kw_only=True):
    """A form that is not deleted. `version` is the newest one."""

    id: str
    tenant_id: str
    name: str
    slug: str
    description: str
    status: str
    version: int
    settings: FormSettings
    branding: Branding
    workflow_id: str | None
    data_table_config: DataTableConfig | None
    created_by: str | None
    plan: Plan

    @property
    def has_hosted_model(self) -> bool:
        """True when a model of a provider may read the messages of visitors."""
        return self.settings.conversation.model not in {None, NO_MODEL, LOCAL_MODEL}

    def require_published(self) -> None:
        """Raises FormNotPublished."""
        if self.status != "published":
            # Without its name, which visitors do not know then.
            raise FormNotPublished(f"This form is not published; its status is {self.status}")

    def require_open(self) -> None:
        """Raises FormNotPublished, or FormClosed. The number of submissions is checked when one is
        stored.
        """
        self.require_published()
        closes_at = self.settings.closes_at
        if closes_at is not None and clock.now() >= closes_at:
            raise FormClosed(f"The form {self.name} was closed at {_show(closes_at)}")


def _show(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M %Z")


async def find_by_slug(services: Services, slug: str) -> LiveForm:
    """Returns the form of any tenant: the slug determines the tenant. Raises FormNotFound."""
    async with services.db.tx(None, autocommit=True) as tx:
        row = await queries.find_live_by_slug(tx, slug)
    if row is None:
        raise FormNotFound("There is no form at this address")
    return _build(row)


async def find_published(services: Services, slug: str) -> LiveForm:
    """Raises FormNotFound also for a form that is not published."""
    form = await find_by_slug(services, slug)
    if form.status != "published":
        raise FormNotFound("There is no form at this address")
    return form


async def find(tx: Tx, tenant_id: str | None, form_id: str) -> LiveForm:
    row = await queries.find_live(tx, tenant_id, form_id)
    if row is None:
        raise FormNotFound(f"There is no form {form_id[:64]}")
    return _build(row)


def _build(row: Row) -> LiveForm:
    values: dict[str, Any] = {name: row[name] for name in queries.COLUMNS}
    values["settings"] = msgspec.convert(values["settings"], FormSettings)
    values["branding"] = msgspec.convert(values["branding"], Branding)
    values["data_table_config"] = msgspec.convert(
        values["data_table_config"], DataTableConfig | None
    )
    plan = plan_of(row["plan"], msgspec.json.decode(row["limits"]))
    return LiveForm(**values, plan=plan)


class FormDefinitions:
    """The definitions that this process used last. A published version never changes."""

    def __init__(self) -> None:
        self._cache: SizedCache[tuple[str, int], FormDefinition] = SizedCache(
            _MAX_DEFINITIONS, _MAX_BYTES
        )

    async def load(self, services: Services, form: LiveForm, version: int) -> FormDefinition:
        """Raises FormVersionNotFound for a version that was never published."""
        key = (form.id, version)
        definition = self._cache.get(key)
        if definition is not None:
            return definition
        encoded = await _load_fields(services, form, version)
        definition = _build_definition(encoded)
        self._cache.add(key, definition, len(encoded))
        return definition


async def _load_fields(services: Services, form: LiveForm, version: int) -> str:
    """Returns the fields of a version as JSON. Raises FormVersionNotFound."""
    async with services.db.tx(form.tenant_id, autocommit=True) as tx:
        row = await queries.load_fields(tx, form.tenant_id, form.id, version)
    if row is None or row["published_at"] is None:
        raise FormVersionNotFound(f"The form {form.name} has no published version {version}")
    fields: str = row["fields"]
    return fields


def _build_definition(fields: str) -> FormDefinition:
    return FormDefinition(msgspec.json.decode(fields, type=list[Field]))


async def read_definition(services: Services, form: LiveForm, version: int) -> FormDefinition:
    """Reads a definition that is used once: it does not get into the cache."""
    return _build_definition(await _load_fields(services, form, version))


async def load_definition(
    services: Services, form: LiveForm, version: int | None = None
) -> FormDefinition:
    return await services.get(FormDefinitions).load(services, form, version or form.version)
