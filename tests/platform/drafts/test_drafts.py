"""Drafts of records of any kind."""

import pytest

from app.domain.platform.drafts import api as drafts
from app.domain.platform.drafts.api import LiveRecord
from app.domain.platform.drafts.errors import DraftNotFound, DraftOutdated
from app.kit.ids import new_id
from app.security.principal import Principal
from app.services import Services
from tests.database import fetch_rows
from tests.world import World

_PRINCIPAL = Principal("usr_drafts", "", "agent_developer", "", frozenset())
_COUNT = "SELECT count(*) AS rows FROM record_drafts WHERE tenant_id = $1"


@pytest.fixture
async def live(world: World) -> LiveRecord:
    return LiveRecord(await world.tenant(), "agent", new_id("agt"), 3, {"a": 1, "b": "x"})


def _with(live: LiveRecord, **fields: object) -> LiveRecord:
    return LiveRecord(live.tenant_id, live.kind, live.id, live.version, {**live.fields, **fields})


async def test_a_draft_is_compared_with_the_record_as_it_is(
    live: LiveRecord, services: Services
) -> None:
    async with services.db.tx(live.tenant_id) as tx:
        draft = await drafts.save(tx, _PRINCIPAL, live, {"b": "y"})
        state = drafts.describe(live, draft)
        assert [(item.path, item.before, item.after) for item in state.changes] == [("b", "x", "y")]
        assert (state.based_on, state.is_outdated, state.saved_by) == (3, False, "usr_drafts")
        drafts.require_current(live, draft)
        later = _with(live, a=2)
        assert drafts.describe(later, draft).is_outdated
        with pytest.raises(DraftOutdated):
            drafts.require_current(later, draft)
        # A field that records did not have when the draft began.
        drafts.require_current(_with(live, c=None), draft)


async def test_a_draft_keeps_the_base_with_which_it_began(
    live: LiveRecord, services: Services
) -> None:
    async with services.db.tx(live.tenant_id) as tx:
        await drafts.save(tx, _PRINCIPAL, live, {"b": "y"})
        draft = await drafts.save(tx, _PRINCIPAL, _with(live, a=2), {"a": 3})
    assert (draft.body, draft.base) == ({"a": 3}, live.fields)


async def test_another_tenant_has_no_part_in_a_draft(
    live: LiveRecord, world: World, services: Services
) -> None:
    async with services.db.tx(live.tenant_id) as tx:
        await drafts.save(tx, _PRINCIPAL, live, {"b": "y"})
    foreign = LiveRecord(await world.tenant(), live.kind, live.id, 1, {})
    async with services.db.tx(foreign.tenant_id) as tx:
        with pytest.raises(DraftNotFound):
            await drafts.find(tx, foreign)
        with pytest.raises(DraftNotFound):
            await drafts.delete(tx, foreign)
        await drafts.save(tx, _PRINCIPAL, foreign, {"b": "z"})
    async with services.db.tx(live.tenant_id) as tx:
        assert (await drafts.find(tx, live)).body == {"b": "y"}


async def test_the_drafts_of_a_tenant_are_erased_with_it(
    live: LiveRecord, services: Services
) -> None:
    async with services.db.tx(live.tenant_id) as tx:
        await drafts.save(tx, _PRINCIPAL, live, {"b": "y"})
    await fetch_rows(services, "DELETE FROM tenants WHERE id = $1", live.tenant_id)
    (row,) = await fetch_rows(services, _COUNT, live.tenant_id)
    assert row["rows"] == 0
