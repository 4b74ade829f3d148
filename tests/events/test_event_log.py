"""/api/v1/event-log: what happened, and what one cause led to."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from app.domain.mail.service import SEND_MAIL
from app.kit import clock, trace, work
from app.kit.ids import new_id
from app.kit.trace import Trace
from app.services import Services
from db.session import ALL_TENANTS
from tests.world import Client, World

PATH = "/api/v1/event-log"
ENTRY_KEYS = {"id", "type", "correlation_id", "parent_id", "data", "created_at"}
SPAN_KEYS = {"kind", "id", "parent_id", "name", "status", "started_at", "duration_ms"}
NOON = datetime(2030, 5, 1, 12, 0, tzinfo=UTC)

_INSERT = """
INSERT INTO event_log
    (tenant_id, id, type, correlation_id, parent_id, request_id, data, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7::jsonb, $8)
"""


class Happened(msgspec.Struct, kw_only=True):
    """One entry to be written straight into the log."""

    type: str = "test.happened"
    correlation_id: str = "cor_test"
    parent_id: str | None = None
    request_id: str | None = None
    data: str = "{}"
    at: datetime = NOON


async def _write(services: Services, tenant_id: str, *entries: Happened) -> list[str]:
    ids = [new_id("evt") for _ in entries]
    async with services.db.tx(ALL_TENANTS) as tx:
        raw = await tx.raw()
        for event_id, entry in zip(ids, entries, strict=True):
            await raw.execute(
                _INSERT,
                tenant_id,
                event_id,
                entry.type,
                entry.correlation_id,
                entry.parent_id,
                entry.request_id,
                entry.data,
                entry.at,
            )
    return ids


async def _ids(caller: Client, **params: Any) -> list[str]:
    answer = await caller.get(PATH, params=params)
    assert answer.status_code == 200, answer.text
    return [entry["id"] for entry in answer.json()["data"]]


async def _invite(caller: Client, **headers: str) -> dict[str, Any]:
    body = {"email": f"{new_id('mail')}@example.com", "role": "viewer"}
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = await caller.post("/users/invite", body, headers=given)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


# The list


async def test_the_log_is_flat_with_its_totals_beside_it(
    developer: Client, services: Services
) -> None:
    await _write(services, developer.tenant_id, Happened())
    answer = await developer.get(PATH)
    assert set(answer.json()) == {"data", "total", "page", "per_page"}
    assert set(answer.json()["data"][0]) == ENTRY_KEYS
    assert [answer.json()[name] for name in ("total", "page", "per_page")] == [1, 1, 20]


async def test_an_empty_log_has_a_total_of_none(developer: Client) -> None:
    answer = await developer.get(PATH)
    assert answer.json() == {"data": [], "total": 0, "page": 1, "per_page": 20}


async def test_an_entry_tells_what_was_written(developer: Client, services: Services) -> None:
    cause = Happened(type="a.b", correlation_id="cor_1", parent_id="evt_0", data='{"n": [1, null]}')
    ids = await _write(services, developer.tenant_id, cause)
    assert (await developer.get(PATH)).json()["data"] == [
        {
            "id": ids[0],
            "type": "a.b",
            "correlation_id": "cor_1",
            "parent_id": "evt_0",
            "data": {"n": [1, None]},
            "created_at": "2030-05-01T12:00:00Z",
        }
    ]


async def test_the_newest_come_first(developer: Client, services: Services) -> None:
    ids = await _write(services, developer.tenant_id, *[Happened()] * 3)
    assert await _ids(developer) == ids[::-1]


async def test_the_pages_hold_every_entry_once(developer: Client, services: Services) -> None:
    ids = await _write(services, developer.tenant_id, *[Happened()] * 5)
    pages = [await _ids(developer, page=page, per_page=2) for page in (1, 2, 3, 4)]
    assert pages == [ids[:2:-1], ids[2:0:-1], ids[:1], []]


async def test_the_total_is_of_all_pages(developer: Client, services: Services) -> None:
    await _write(services, developer.tenant_id, *[Happened()] * 5)
    answer = await developer.get(PATH, params={"page": 2, "per_page": 2})
    assert [answer.json()[name] for name in ("total", "page", "per_page")] == [5, 2, 2]


@pytest.mark.parametrize("name", ["page", "per_page"])
@pytest.mark.parametrize("value", ["0", "-1", "abc", "", "99999999999999999999"])
async def test_a_page_out_of_bounds_is_named(developer: Client, name: str, value: str) -> None:
    answer = await developer.get(PATH, params={name: value})
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {name}


@pytest.mark.parametrize(("per_page", "status"), [(1, 200), (100, 200), (101, 422)])
async def test_a_page_holds_at_most_a_hundred(
    developer: Client, per_page: int, status: int
) -> None:
    assert (await developer.get(PATH, params={"per_page": per_page})).status_code == status


# Filters


async def test_the_log_can_be_of_one_type(developer: Client, services: Services) -> None:
    ids = await _write(
        services, developer.tenant_id, Happened(type="a.one"), Happened(type="a.two")
    )
    assert await _ids(developer, event_type="a.two") == [ids[1]]


@pytest.mark.parametrize("event_type", ["a", "a.%", "A.ONE", "a.one "])
async def test_a_type_is_taken_whole(
    developer: Client, services: Services, event_type: str
) -> None:
    await _write(services, developer.tenant_id, Happened(type="a.one"))
    assert await _ids(developer, event_type=event_type) == []


async def test_the_log_can_be_of_one_correlation_id(developer: Client, services: Services) -> None:
    entries = [Happened(correlation_id="cor_1"), Happened(correlation_id="cor_2")]
    ids = await _write(services, developer.tenant_id, *entries)
    assert await _ids(developer, correlation_id="cor_1") == [ids[0]]


@pytest.mark.parametrize("name", ["event_type", "correlation_id"])
async def test_a_filter_that_is_too_long_is_named(developer: Client, name: str) -> None:
    answer = await developer.get(PATH, params={name: "x" * 201})
    assert answer.status_code == 422
    assert set(answer.json()["error"]["details"]) == {name}


def _hours() -> list[Happened]:
    """At eleven, noon and one o'clock."""
    return [Happened(at=NOON + timedelta(hours=hour)) for hour in (-1, 0, 1)]


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"from": "2030-05-01T12:00:00Z"}, [2, 1]),
        ({"from": "2030-05-01T12:00:00.000001Z"}, [2]),
        ({"to": "2030-05-01T12:00:00Z"}, [1, 0]),
        ({"from": "2030-05-01T12:00:00Z", "to": "2030-05-01T12:00:00Z"}, [1]),
        ({"from": "2030-05-01T14:00:00+02:00"}, [2, 1]),
        ({"from": "2030-05-01T07:00:00-05:00", "to": "2030-05-01T12:30:00Z"}, [1]),
        ({"from": "2030-05-01T13:00:01Z"}, []),
        ({"from": "2030-05-01T13:00:00Z", "to": "2030-05-01T11:00:00Z"}, []),
    ],
)
async def test_the_log_can_be_of_a_time(
    developer: Client, services: Services, params: dict[str, str], expected: list[int]
) -> None:
    ids = await _write(services, developer.tenant_id, *_hours())
    assert await _ids(developer, **params) == [ids[index] for index in expected]


@pytest.fixture
def far_east(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The server's own clock is set to a zone far from UTC."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


async def test_a_time_without_a_zone_is_utc_wherever_the_server_stands(
    developer: Client, services: Services, far_east: None
) -> None:
    ids = await _write(services, developer.tenant_id, *_hours())
    assert await _ids(developer, **{"from": "2030-05-01T12:00:00"}) == [ids[2], ids[1]]


async def test_filters_hold_together(developer: Client, services: Services) -> None:
    entries = [
        Happened(type="a.one", correlation_id="cor_1"),
        Happened(type="a.one", correlation_id="cor_2"),
        Happened(type="a.two", correlation_id="cor_2"),
    ]
    ids = await _write(services, developer.tenant_id, *entries)
    assert await _ids(developer, event_type="a.one", correlation_id="cor_2") == [ids[1]]


async def test_the_total_is_of_what_the_filters_leave(
    developer: Client, services: Services
) -> None:
    await _write(services, developer.tenant_id, Happened(type="a.one"), Happened(type="a.two"))
    answer = await developer.get(PATH, params={"event_type": "a.one"})
    assert answer.json()["total"] == 1


@pytest.mark.parametrize("name", ["from", "to"])
@pytest.mark.parametrize(
    "value", ["yesterday", "2030-13-01T00:00:00Z", "2030-02-30T00:00:00Z", "12:00", "2030-05-01T25"]
)
async def test_what_is_no_time_is_refused(developer: Client, name: str, value: str) -> None:
    answer = await developer.get(PATH, params={name: value})
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "validation_error"


@pytest.mark.parametrize("name", ["from", "to"])
async def test_a_wrong_time_is_named_as_the_caller_wrote_it(developer: Client, name: str) -> None:
    answer = await developer.get(PATH, params={name: "yesterday"})
    assert set(answer.json()["error"]["details"]) == {name}


@pytest.mark.parametrize("name", ["from", "to"])
@pytest.mark.parametrize("value", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
async def test_a_time_at_the_edge_of_all_time_is_no_crash(
    developer: Client, name: str, value: str
) -> None:
    assert (await developer.get(PATH, params={name: value})).status_code in {200, 422}


# One entry


async def test_one_entry_is_as_it_is_in_the_list(developer: Client, services: Services) -> None:
    (event_id,) = await _write(services, developer.tenant_id, Happened(data='{"a": 1}'))
    listed = (await developer.get(PATH)).json()["data"][0]
    answer = await developer.get(f"{PATH}/{event_id}")
    assert answer.status_code == 200
    assert answer.json() == listed


async def test_an_entry_that_does_not_exist_is_404(developer: Client) -> None:
    answer = await developer.get(f"{PATH}/evt_nothing")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "event_not_found"


# Other tenants


async def test_another_tenants_entry_is_not_found(
    developer: Client, admin: Client, services: Services
) -> None:
    (event_id,) = await _write(services, admin.tenant_id, Happened())
    answer = await developer.get(f"{PATH}/{event_id}")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "event_not_found"


async def test_another_tenants_entries_are_not_listed(
    developer: Client, admin: Client, services: Services
) -> None:
    (mine,) = await _write(services, developer.tenant_id, Happened())
    await _write(services, admin.tenant_id, Happened())
    assert await _ids(developer) == [mine]


async def test_another_tenants_trace_is_not_found(developer: Client, admin: Client) -> None:
    chain = new_id("cor")
    await _invite(admin, x_correlation_id=chain)
    answer = await developer.get(f"{PATH}/trace/{chain}")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "trace_not_found"


async def test_a_correlation_id_that_two_tenants_use_shows_each_its_own_part(
    world: World, admin: Client
) -> None:
    chain, other = new_id("cor"), await world.user("tenant_admin")
    made = await _invite(admin, x_correlation_id=chain)
    await _invite(other, x_correlation_id=chain)
    trace = (await admin.get(f"{PATH}/trace/{chain}")).json()
    assert [entry["data"]["invitation_id"] for entry in trace["data"]] == [made["id"]]
    assert [span["kind"] for span in trace["spans"]].count("job") == 1


async def test_super_admin_reaches_an_entry_of_any_tenant(
    super_admin: Client, admin: Client, services: Services
) -> None:
    (event_id,) = await _write(services, admin.tenant_id, Happened())
    assert (await super_admin.get(f"{PATH}/{event_id}")).status_code == 200


@pytest.mark.parametrize("path", ["", "/evt_nothing", "/trace/cor_nothing"])
@pytest.mark.parametrize("role", ["agent_user", "viewer"])
async def test_who_may_not_read_events_gets_403(world: World, role: str, path: str) -> None:
    answer = await (await world.user(role)).get(PATH + path)
    assert answer.status_code == 403
    assert answer.json()["error"]["details"] == {"required": "events:read", "your_role": role}


# Traces


async def test_a_trace_that_nothing_is_known_of_is_404(developer: Client) -> None:
    answer = await developer.get(f"{PATH}/trace/cor_nothing")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "trace_not_found"


async def test_a_trace_is_entries_spans_and_a_duration(admin: Client) -> None:
    chain = new_id("cor")
    await _invite(admin, x_correlation_id=chain)
    trace = (await admin.get(f"{PATH}/trace/{chain}")).json()
    assert set(trace) == {"correlation_id", "data", "spans", "duration_ms"}
    assert trace["correlation_id"] == chain
    assert {frozenset(entry) for entry in trace["data"]} == {frozenset(ENTRY_KEYS)}
    assert {frozenset(span) for span in trace["spans"]} == {frozenset(SPAN_KEYS)}


async def test_a_trace_tells_its_events_in_the_order_in_which_they_happened(
    admin: Client,
) -> None:
    chain = new_id("cor")
    made = [(await _invite(admin, x_correlation_id=chain))["id"] for _ in range(3)]
    trace = (await admin.get(f"{PATH}/trace/{chain}")).json()
    assert [entry["data"]["invitation_id"] for entry in trace["data"]] == made


async def test_a_trace_holds_nothing_of_another_chain(admin: Client) -> None:
    chain = new_id("cor")
    made = await _invite(admin, x_correlation_id=chain)
    await _invite(admin)
    trace = (await admin.get(f"{PATH}/trace/{chain}")).json()
    assert [entry["data"]["invitation_id"] for entry in trace["data"]] == [made["id"]]


async def _spans(caller: Client, chain: str, kind: str) -> list[dict[str, Any]]:
    trace = (await caller.get(f"{PATH}/trace/{chain}")).json()
    return [span for span in trace["spans"] if span["kind"] == kind]


async def test_a_job_is_a_span_under_the_event_that_caused_it(
    admin: Client, services: Services
) -> None:
    chain = new_id("cor")
    await _invite(admin, x_correlation_id=chain)
    event_id = (await admin.get(PATH)).json()["data"][0]["id"]
    trace.begin(Trace(chain))
    async with services.db.tx(admin.tenant_id) as tx:
        # Due in an hour, so that no worker takes it.
        later = clock.now() + timedelta(hours=1)
        work_id = await work.accept(
            tx,
            services.doorbell,
            SEND_MAIL,
            tenant_id=admin.tenant_id,
            run_at=later,
            cause_event_id=event_id,
        )
    (span,) = [span for span in await _spans(admin, chain, "job") if span["id"] == work_id]
    span.pop("started_at")
    assert span == {
        "kind": "job",
        "id": work_id,
        "parent_id": event_id,
        "name": "mail.send",
        "status": "pending",
        "duration_ms": 0.0,
    }


async def test_a_finished_job_tells_how_long_it_ran(admin: Client, services: Services) -> None:
    chain = new_id("cor")
    await _invite(admin, x_correlation_id=chain)
    started = clock.now()
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(
            "UPDATE work SET state = 'done', started_at = $2, finished_at = $3 "
            "WHERE correlation_id = $1",
            chain,
            started,
            started + timedelta(milliseconds=1500),
        )
    (span,) = await _spans(admin, chain, "job")
    assert (span["status"], span["duration_ms"]) == ("done", 1500.0)


async def test_a_request_is_a_span_known_by_its_id(admin: Client) -> None:
    chain, request = new_id("cor"), new_id("req")
    await _invite(admin, x_correlation_id=chain, x_request_id=request)
    (span,) = await _spans(admin, chain, "request")
    assert (span["id"], span["name"], span["status"]) == (
        request,
        "system.user.invited",
        "completed",
    )


async def test_spans_are_in_the_order_in_which_they_started(admin: Client) -> None:
    chain = new_id("cor")
    for _ in range(3):
        await _invite(admin, x_correlation_id=chain)
    trace = (await admin.get(f"{PATH}/trace/{chain}")).json()
    moments = [datetime.fromisoformat(span["started_at"]) for span in trace["spans"]]
    assert len(moments) == 6
    assert moments == sorted(moments)


async def test_the_duration_of_a_trace_is_from_its_first_moment_to_its_last(
    developer: Client, services: Services
) -> None:
    chain = new_id("cor")
    entries = [
        Happened(correlation_id=chain, at=NOON),
        Happened(correlation_id=chain, at=NOON + timedelta(seconds=2, milliseconds=500)),
    ]
    await _write(services, developer.tenant_id, *entries)
    trace = (await developer.get(f"{PATH}/trace/{chain}")).json()
    assert trace["duration_ms"] == 2500.0


@pytest.mark.parametrize("chain", ["order:42", "a+b=c", "a.b-c_d"])
async def test_every_correlation_id_that_a_caller_may_give_can_be_traced(
    admin: Client, chain: str
) -> None:
    made = await _invite(admin, x_correlation_id=chain)
    path = chain.replace("+", "%2B")
    answer = await admin.get(f"{PATH}/trace/{path}")
    assert answer.status_code == 200
    assert [entry["data"]["invitation_id"] for entry in answer.json()["data"]] == [made["id"]]
