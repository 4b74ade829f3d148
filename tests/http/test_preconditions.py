"""ETag, If-Match and If-None-Match on every record."""

import asyncio

import pytest
from litestar import Litestar

from app.http import preconditions
from app.http.route_options import list_handlers
from app.services import Services
from db.session import ALL_TENANTS
from tests.agents.definition.factories import create_agent
from tests.assertions import refused, wait_until
from tests.automation.workflows.factories import create_workflow, transform
from tests.database import run_sql
from tests.http.record_cases import CASES, Owner, create_attachment
from tests.http.statements import count_statements
from tests.identity.service_keys.keys import create_program
from tests.world import Client, World

_AGENTS = "/api/v1/agents"
_IS_WAITED_FOR = """
SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid)))
"""


@pytest.fixture
async def owner(world: World, super_admin: Client) -> Owner:
    return Owner(world, await world.user("tenant_admin"), super_admin)


def test_every_put_and_patch_has_a_case(app: Litestar) -> None:
    routes = {
        f"{method} {path}"
        for method, path, handler in list_handlers(app)
        if method in {"PUT", "PATCH"} and preconditions.takes_if_match(handler)
    }
    assert {f"{case.method} {case.path}" for case in CASES} == routes


@pytest.mark.usefixtures("restored_grants")
async def test_a_change_with_a_stale_tag_is_refused(
    owner: Owner, subtests: pytest.Subtests
) -> None:
    for case in CASES:
        with subtests.test(method=case.method, path=case.path):
            values = await case.create(owner)
            path, client = case.path.format(**values), case.client(owner)
            read_path = (case.read_path or case.path).format(**values)
            first = (await client.get(read_path)).headers["etag"]
            headers = {"if-match": first}

            changed = await client(case.method, path, json=case.changes[0], headers=headers)
            assert changed.status_code == 200, changed.text
            current = await client.get(read_path)
            assert changed.headers["etag"] == current.headers["etag"] != first

            stale = await client(case.method, path, json=case.changes[1], headers=headers)
            assert stale.status_code == 412, stale.text
            error = stale.json()["error"]
            assert error["code"] == "precondition_failed"
            assert error["details"]["current"] == current.headers["etag"]
            assert set(error["details"]["changed"]) <= {*case.changes[0], *case.shown_as}
            assert error["details"]["changed"]
            assert (await client.get(read_path)).content == current.content

            headers = {"if-match": current.headers["etag"]}
            again = await client(case.method, path, json=case.changes[1], headers=headers)
            assert again.status_code == 200, again.text
            assert (await client.get(read_path)).headers["etag"] == again.headers["etag"]


async def test_of_many_changes_with_the_same_tag_one_succeeds(developer: Client) -> None:
    agent = await create_agent(developer)
    path = f"{_AGENTS}/{agent['id']}"
    headers = {"if-match": (await developer.get(path)).headers["etag"]}
    answers = await asyncio.gather(
        *(developer.put(path, {"name": f"Name {n}"}, headers=headers) for n in range(8))
    )
    assert sorted(answer.status_code for answer in answers) == [200, *[412] * 7]
    [winner] = [answer for answer in answers if answer.status_code == 200]
    assert (await developer.get(path)).json()["name"] == winner.json()["name"]


async def test_a_change_that_began_before_is_waited_for(
    developer: Client, services: Services
) -> None:
    agent = await create_agent(developer)
    path = f"{_AGENTS}/{agent['id']}"
    headers = {"if-match": (await developer.get(path)).headers["etag"]}
    async with services.db.tx(ALL_TENANTS) as tx:
        raw = await tx.raw()
        await raw.execute("UPDATE agents SET name = 'First' WHERE id = $1", agent["id"])
        request = asyncio.create_task(developer.put(path, {"name": "Second"}, headers=headers))

        async def is_waiting() -> bool:
            return await raw.fetchval(_IS_WAITED_FOR)  # type: ignore[no-any-return]

        await wait_until(is_waiting)
    assert refused(await request, 412, "precondition_failed")["details"]["changed"] == ["name"]
    assert (await developer.get(path)).json()["name"] == "First"


async def test_headers_are_read_as_rfc_9110_says(
    developer: Client, subtests: pytest.Subtests
) -> None:
    path = f"{_AGENTS}/{(await create_agent(developer))['id']}"
    tag = (await developer.put(path, {"name": "Agent"})).headers["etag"]
    for header, status in [
        ("*", 200),
        (tag, 200),
        (f'"a", {tag}', 200),
        (f"{tag},,", 200),
        (f'"a,b" , {tag}', 200),
        (f"W/{tag}", 412),
        ('"a"', 412),
        ('""', 412),
        (tag.strip('"'), 422),
        (f"{tag} {tag}", 422),
        (f"{tag}, a", 422),
        ("", 422),
        (", " * 2000, 422),
        ('"' * 4001, 422),
    ]:
        with subtests.test(if_match=header[:100]):
            answer = await developer.put(path, {"name": "Agent"}, headers={"if-match": header})
            assert answer.status_code == status, answer.text
    for header, status in [(tag, 304), (f"W/{tag}", 304), ("*", 304), ('"a"', 200), ("a", 422)]:
        with subtests.test(if_none_match=header):
            answer = await developer.get(path, headers={"if-none-match": header})
            assert answer.status_code == status, answer.text
            if status == 304:
                assert (answer.content, answer.headers["etag"]) == (b"", tag)


async def test_several_headers_are_one_list(developer: Client) -> None:
    path = f"{_AGENTS}/{(await create_agent(developer))['id']}"
    tag = (await developer.get(path)).headers["etag"]
    headers = [("if-match", '"a"'), ("if-match", tag)]
    assert (await developer.put(path, {"name": "New"}, headers=headers)).status_code == 200


async def test_what_no_put_changes_does_not_change_the_tag(owner: Owner) -> None:
    ids = await create_attachment(owner)
    agent, tool = f"{_AGENTS}/{ids['agent_id']}", f"/v1/tools/{ids['tool_id']}"
    tags = [(await owner.client.get(path)).headers["etag"] for path in (agent, tool)]
    before = (await owner.client.get(agent)).json()
    await owner.client.delete(f"/v1/agents/{ids['agent_id']}/tools/{ids['tool_id']}")
    await run_sql(owner.services, "UPDATE tools SET usage_count = 7 WHERE id = $1", ids["tool_id"])
    assert (await owner.client.get(agent)).json() != before
    assert [(await owner.client.get(path)).headers["etag"] for path in (agent, tool)] == tags


async def test_the_creation_of_a_record_answers_with_its_tag(developer: Client) -> None:
    headers = {"idempotency-key": "tagged"}
    body = {"name": "Agent", "primary_model": "openai/gpt-4o", "system_prompt": "Be."}
    first = await developer.post(_AGENTS, body, headers=headers)
    again = await developer.post(_AGENTS, body, headers=headers)
    assert again.headers["idempotent-replayed"] == "true"
    current = await developer.get(f"{_AGENTS}/{first.json()['id']}")
    assert first.headers["etag"] == again.headers["etag"] == current.headers["etag"]


async def test_a_tag_says_nothing_of_records_of_other_tenants(
    world: World, developer: Client
) -> None:
    path = f"{_AGENTS}/{(await create_agent(developer))['id']}"
    tag = (await developer.get(path)).headers["etag"]
    stranger = await world.user()
    for header in (tag, '"a"', "*"):
        answer = await stranger.put(path, {"name": "Mine"}, headers={"if-match": header})
        assert refused(answer, 404, "agent_not_found")
        assert tag not in answer.text


async def test_a_caller_without_the_permission_learns_no_tag(
    world: World, developer: Client
) -> None:
    path = f"{_AGENTS}/{(await create_agent(developer))['id']}"
    tag = (await developer.get(path)).headers["etag"]
    viewer = await world.user("viewer", developer.tenant_id)
    shown = await viewer.get(path)
    assert shown.headers["etag"] != tag
    answer = await viewer.put(path, {"name": "Mine"}, headers={"if-match": '"a"'})
    assert refused(answer, 403, "forbidden")
    # A program that acts for the developers sees what they see.
    admin = await world.user("tenant_admin", developer.tenant_id)
    program = await create_program(admin)
    assert (await program.get(path)).headers["etag"] == tag


async def test_a_request_without_if_match_runs_no_more_statements(
    developer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"{_AGENTS}/{(await create_agent(developer))['id']}"
    tag = (await developer.put(path, {"name": "Agent"})).headers["etag"]
    counts = []
    for headers in ({}, {"if-match": "*"}, {"if-match": tag}):
        with count_statements(monkeypatch) as statements:
            answer = await developer.put(path, {"name": "Agent"}, headers=headers)
        assert answer.status_code == 200
        counts.append(len(statements))
    # The lock and the read.
    assert counts[1:] == [counts[0], counts[0] + 2]


async def test_a_draft_that_is_gone_is_not_stored_again(developer: Client) -> None:
    path = f"{_AGENTS}/{(await create_agent(developer))['id']}/draft"
    for header in ("*", '"a"'):
        answer = await developer.put(path, {"name": "A"}, headers={"if-match": header})
        assert refused(answer, 412, "precondition_failed")["details"] == {"current": None}
    saved = await developer.put(path, {"name": "A"})
    tag = saved.headers["etag"]
    assert (await developer.get(path)).headers["etag"] == tag
    again = await developer.put(path, {"name": "A", "status": "draft"}, headers={"if-match": tag})
    assert again.status_code == 200
    assert again.headers["etag"] != tag
    assert (await developer.post(f"{path}/publish", {})).status_code == 200
    headers = {"if-match": again.headers["etag"]}
    answer = await developer.put(path, {"name": "B"}, headers=headers)
    assert refused(answer, 412, "precondition_failed")
    unknown = await developer.put(f"{_AGENTS}/agt_0/draft", {"name": "B"}, headers=headers)
    assert refused(unknown, 404, "agent_not_found")


async def test_of_first_drafts_at_the_same_time_one_is_stored(
    world: World, developer: Client, subtests: pytest.Subtests
) -> None:
    path = f"{_AGENTS}/{(await create_agent(developer))['id']}/draft"
    first = {"if-none-match": "*"}
    answers = await asyncio.gather(
        *(developer.put(path, {"name": f"Name {n}"}, headers=first) for n in range(8))
    )
    assert sorted(answer.status_code for answer in answers) == [200, *[412] * 7]
    [winner] = [answer for answer in answers if answer.status_code == 200]
    stored = await developer.get(path)
    assert stored.json()["name"] == winner.json()["name"]
    tag = stored.headers["etag"]
    for header, status in [("*", 412), (tag, 412), (f"W/{tag}", 412), ("a", 422), ('"a"', 200)]:
        with subtests.test(if_none_match=header):
            headers = {"if-none-match": header}
            answer = await developer.put(path, {"name": stored.json()["name"]}, headers=headers)
            assert answer.status_code == status, answer.text
            if status == 412:
                assert answer.json()["error"]["details"] == {"current": tag}
                assert answer.headers["etag"] == tag
    both = {"if-match": tag, "if-none-match": "*"}
    assert refused(await developer.put(path, {}, headers=both), 412, "precondition_failed")
    await developer.delete(path)
    assert (await developer.put(path, {"name": "A"}, headers=first)).status_code == 200
    stranger = await world.user()
    assert refused(await stranger.put(path, {}, headers=first), 404, "agent_not_found")
    viewer = await world.user("viewer", developer.tenant_id)
    assert refused(await viewer.put(path, {}, headers=first), 403, "forbidden")


async def test_a_batch_changes_what_it_has_seen(developer: Client) -> None:
    created = await create_agent(developer)
    tag = (await developer.get(f"{_AGENTS}/{created['id']}")).headers["etag"]
    change = {"action": "update", "id": created["id"], "data": {"name": "One"}, "if_match": tag}
    wrong = {**change, "if_match": "a"}
    answer = await developer.post("/v1/agents/batch", {"operations": [change, change, wrong]})
    results = answer.json()["results"]
    assert [result["status"] for result in results] == [200, 412, 422]
    assert results[1]["error"]["code"] == "precondition_failed"
    assert results[1]["error"]["details"]["changed"] == ["name"]
    workflow = await create_workflow(developer, [transform("a", 1)])
    path = f"/api/v1/workflows/{workflow['id']}"
    tag = (await developer.get(path)).headers["etag"]
    change = {"action": "update", "id": workflow["id"], "data": {"name": "B"}, "if_match": tag}
    answer = await developer.post("/v1/workflows/batch", {"operations": [change, change]})
    assert [result["status"] for result in answer.json()["results"]] == [200, 412]
