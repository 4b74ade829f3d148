"""Many files: a page reads few rows, whatever else the tenant stores."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from app.services import Services
from db.lists import BOUND
from tests.assertions import refused
from tests.database import run_sql
from tests.lengths import rounds
from tests.platform.events.query_plans import Plan, explain, record_statements
from tests.platform.files.api import PATH
from tests.world import Client, World

_COUNT = rounds(7_000, 12_000)
_FORMS = 30
_ADD = """
INSERT INTO files (tenant_id, id, key, purpose, filename, size_bytes, mime_type, sha256, created_at)
SELECT $1::text, 'fil_' || $1 || $2::text || n, $1 || $2 || n, $2, 'name' || n % 5000, n % 3000,
       'text/' || n % 20, '', now() - interval '30 days' + n * interval '1 second'
FROM generate_series(1, $3::int) n
"""


class Dataset(msgspec.Struct):
    """A tenant with many uploads, one with few uploads among many documents, and one with many of
    both, which the statistics do not know yet.
    """

    uploader: Client
    trainer: Client
    newcomer: Client


@pytest.fixture(scope="module")
async def dataset(world: World) -> AsyncIterator[Dataset]:
    services = world.services
    dataset = Dataset(*[await world.user("agent_developer") for _ in range(3)])
    counts = (
        (dataset.uploader, {"upload": _COUNT, "form": _FORMS}),
        (dataset.trainer, {"upload": 5, "document": 4 * _COUNT}),
        (dataset.newcomer, {"upload": _COUNT, "form": _FORMS, "document": _COUNT}),
    )
    for client, purposes in counts:
        if client is dataset.newcomer:
            await run_sql(services, "ANALYZE files")
        for purpose, count in purposes.items():
            await run_sql(services, _ADD, client.tenant_id, purpose, count)
    yield dataset
    for client, _ in counts:
        await run_sql(services, "DELETE FROM files WHERE tenant_id = $1", client.tenant_id)
    await run_sql(services, "ANALYZE files")


async def _explain_list(
    services: Services, monkeypatch: pytest.MonkeyPatch, caller: Client, params: dict[str, str]
) -> tuple[Plan, Plan]:
    """Returns the plans of the page and of the count."""
    with record_statements(monkeypatch, "files") as statements:
        answer = await caller.get(PATH, params=params)
        assert answer.status_code == 200, answer.text
    return (await explain(services, statements[0])).split_count()


async def test_a_page_reads_no_files_of_other_areas(
    services: Services, monkeypatch: pytest.MonkeyPatch, dataset: Dataset
) -> None:
    plans = await _explain_list(services, monkeypatch, dataset.trainer, {})
    assert [plan.rows_read("files") for plan in plans] == [5, 5]


async def test_a_page_with_filters_reads_few_rows_besides_its_own(
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
    dataset: Dataset,
    subtests: pytest.Subtests,
) -> None:
    """The number of rows that the page and the count read."""
    many = BOUND + 1
    cases: list[tuple[dict[str, str], int, int]] = [
        ({}, 20, many),
        ({"purpose": "form"}, 20, _FORMS),
        ({"purpose": "upload"}, 20, many),
        ({"mime_type": "text/3"}, 20, _COUNT // 20 + 2),
        ({"mime_type": "text/none"}, 0, 0),
        ({"purpose": "form", "mime_type": "text/3"}, _COUNT // 20 + 2, _COUNT // 20 + 2),
    ]
    for caller in (dataset.uploader, dataset.newcomer):
        for params, page_rows, counted_rows in cases:
            with subtests.test(str(params), is_new=caller is dataset.newcomer):
                plan, count_plan = await _explain_list(services, monkeypatch, caller, params)
                assert plan.rows_read("files") <= page_rows
                assert count_plan.rows_read("files") <= counted_rows


async def test_a_page_reads_few_rows_in_every_order(
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
    dataset: Dataset,
    super_admin: Client,
    subtests: pytest.Subtests,
) -> None:
    orders = [
        f"{sign}{name}"
        for name in ("created_at", "filename", "size_bytes", "mime_type")
        for sign in ("", "-")
    ]
    cases = [(dataset.uploader, order) for order in orders]
    cases += [(super_admin, order) for order in ("created_at", "-created_at")]
    for caller, order in cases:
        with subtests.test(order, caller=caller.email):
            params = {"sort": order}
            plan, count_plan = await _explain_list(services, monkeypatch, caller, params)
            assert plan.scans_without_index("files") == []
            assert plan.rows_read("files") == 20
            assert count_plan.rows_read("files") <= BOUND + 1


async def test_a_list_of_all_tenants_is_sorted_by_time_alone(super_admin: Client) -> None:
    for sort in ("filename", "-size_bytes", "mime_type"):
        answer = await super_admin.get(PATH, params={"sort": sort})
        refused(answer, 422, "validation_error")
