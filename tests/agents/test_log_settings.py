"""Log settings: what of a conversation is logged, and for how long anything is kept."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from app.areas import AREAS
from app.services import Services
from db import retention
from db.session import ALL_TENANTS
from tests.model_server import Reply
from tests.talk import Talker, events_in
from tests.world import Client, World
from workers.main import JOBS
from workers.runner import Runner

PATH = "/api/v1/agents"
BODY = {"name": "Shop", "primary_model": "gpt-4o", "system_prompt": "You help."}
DEFAULTS = {
    "log_messages": True,
    "log_tool_calls": True,
    "log_token_usage": True,
    "retention_days": 365,
}
ENTRY_KEYS = {"id", "conversation_id", "type", "role", "content", "data", "created_at"}


async def _settings_path(caller: Client) -> str:
    answer = await caller.post(PATH, BODY)
    assert answer.status_code == 201, answer.text
    return f"{PATH}/{answer.json()['id']}/log-settings"


async def _set(talk: Talker, **settings: Any) -> None:
    answer = await talk.client.put(f"{talk.path}/log-settings", settings)
    assert answer.status_code == 200, answer.text


async def _logs(talk: Talker, **params: Any) -> list[dict[str, Any]]:
    answer = await talk.client.get(f"{talk.path}/logs", params={"per_page": 100, **params})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["data"]
    assert answer.json()["pagination"]["total"] == len(found)
    return found


async def _kinds(talk: Talker) -> list[str]:
    """The kinds of entries in the log, the oldest first."""
    return [item["type"] for item in reversed(await _logs(talk))]


async def _messages(talk: Talker, conversation_id: str) -> list[dict[str, Any]]:
    answer = await talk.client.get(f"/api/v1/conversations/{conversation_id}/messages")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


async def _events(caller: Client, kind: str) -> list[dict[str, Any]]:
    """Payloads, the oldest first."""
    answer = await caller.get("/api/v1/event-log", params={"per_page": 100})
    entries = reversed(answer.json()["data"])
    return [entry["data"] for entry in entries if entry["type"] == kind]


async def _sql(services: Services, sql: str, *args: object) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(sql, *args)


async def _forget(services: Services) -> None:
    async with services.db.tx(ALL_TENANTS) as tx:
        await retention.delete_expired(await tx.raw(), AREAS.retention)


@pytest.fixture
async def calling(talk: Talker) -> Talker:
    """An agent that hands its first question over to another one."""
    child = await talk.agent("Kid")
    child.script(Reply(texts=["Done."], usage=(300, 30)))
    body = {"agent_id": child.agent_id}
    await talk.client.post(f"{talk.path}/sub-agents/attach", body)
    calls = [("delegate_to_kid", {"task": "Do it"})]
    talk.script(Reply(texts=[], calls=calls, usage=(10, 1)), Reply(texts=["Fine."], usage=(20, 2)))
    return talk


# The settings themselves


async def test_a_new_agent_logs_everything_for_a_year(developer: Client) -> None:
    answer = await developer.get(await _settings_path(developer))
    assert (answer.status_code, answer.json()) == (200, DEFAULTS)


@pytest.mark.parametrize(
    "change",
    [
        {"log_messages": False},
        {"log_tool_calls": False},
        {"log_token_usage": False},
        {"retention_days": 30},
        {"log_messages": False, "retention_days": 7},
        dict.fromkeys(DEFAULTS.keys() - {"retention_days"}, False) | {"retention_days": 1},
        {},
    ],
)
async def test_what_is_left_out_stays_as_it_was(developer: Client, change: dict[str, Any]) -> None:
    path = await _settings_path(developer)
    answer = await developer.put(path, change)
    assert (answer.status_code, answer.json()) == (200, {**DEFAULTS, **change})
    assert (await developer.get(path)).json() == {**DEFAULTS, **change}


async def test_a_setting_can_be_turned_on_again(developer: Client) -> None:
    path = await _settings_path(developer)
    for value in (False, True):
        answer = await developer.put(path, {"log_messages": value})
        assert answer.json() == {**DEFAULTS, "log_messages": value}


@pytest.mark.parametrize("days", [1, 3650])
async def test_the_bounds_themselves_are_allowed(developer: Client, days: int) -> None:
    answer = await developer.put(await _settings_path(developer), {"retention_days": days})
    assert (answer.status_code, answer.json()["retention_days"]) == (200, days)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("retention_days", 0),
        ("retention_days", -1),
        ("retention_days", 3651),
        ("retention_days", 10**30),
        ("retention_days", 1.5),
        ("retention_days", "30"),
        ("retention_days", True),
        ("retention_days", None),
        ("log_messages", None),
        ("log_messages", "false"),
        ("log_messages", 0),
        ("log_tool_calls", 1),
        ("log_token_usage", "yes"),
    ],
)
async def test_a_wrong_setting_is_named(developer: Client, field: str, value: object) -> None:
    path = await _settings_path(developer)
    answer = await developer.put(path, {**DEFAULTS, "retention_days": 9, field: value})
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "validation_error"
    assert set(answer.json()["error"]["details"]) == {field}
    assert (await developer.get(path)).json() == DEFAULTS


async def test_only_settings_can_be_set_here(developer: Client) -> None:
    path = await _settings_path(developer)
    agent_path = path.removesuffix("/log-settings")
    before = (await developer.get(agent_path)).json()
    odd = {"name": "Other", "tenant_id": "ten_x", "status": "archived", "system_prompt": "Obey."}
    answer = await developer.put(path, odd)
    assert (answer.status_code, answer.json()) == (200, DEFAULTS)
    assert (await developer.get(agent_path)).json() == before


async def test_a_changed_setting_is_told(developer: Client) -> None:
    path = await _settings_path(developer)
    await developer.put(path, {"log_messages": False, "retention_days": 30, "log_tool_calls": True})
    (told,) = await _events(developer, "agent.updated")
    assert told["changed"] == ["log_messages", "retention_days"]
    assert told["version"] == 1


@pytest.mark.parametrize("method", ["GET", "PUT"])
async def test_settings_of_another_tenants_agent_are_not_found(
    developer: Client, world: World, method: str
) -> None:
    owner = await world.user()
    path = await _settings_path(owner)
    content = {"json": {"retention_days": 1}} if method == "PUT" else {}
    answer = await developer(method, path, **content)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "agent_not_found"
    assert (await owner.get(path)).json() == DEFAULTS


@pytest.mark.parametrize("role", ["viewer", "agent_user"])
async def test_who_only_reads_sees_settings_and_changes_none(
    world: World, developer: Client, role: str
) -> None:
    path = await _settings_path(developer)
    caller = await world.user(role, developer.tenant_id)
    assert (await caller.get(path)).json() == DEFAULTS
    answer = await caller.put(path, {"retention_days": 1})
    assert answer.status_code == 403
    assert answer.json()["error"]["details"] == {"required": "agents:write", "your_role": role}


# What is logged


async def test_everything_of_a_turn_is_logged_unless_told_otherwise(calling: Talker) -> None:
    reply = await calling.say("Hello")
    entries = list(reversed(await _logs(calling)))
    assert all(set(entry) == ENTRY_KEYS for entry in entries)
    assert {entry["conversation_id"] for entry in entries} == {reply["conversation_id"]}
    told = [(entry["type"], entry["role"], entry["content"]) for entry in entries]
    assert told == [
        ("message", "user", "Hello"),
        ("tool_call", "tool", None),
        ("message", "assistant", "Fine."),
        ("token_usage", None, None),
        ("token_usage", None, None),
    ]
    (call,) = reply["tool_calls"]
    assert {name: entries[1]["data"][name] for name in call} == call
    used = [
        (entry["data"]["prompt_tokens"], entry["data"]["completion_tokens"])
        for entry in entries[3:]
    ]
    assert sorted(used) == [(30, 3), (300, 30)]


@pytest.mark.parametrize(
    ("settings", "logged"),
    [
        ({"log_messages": False}, ["tool_call", "token_usage", "token_usage"]),
        ({"log_tool_calls": False}, ["message", "message", "token_usage", "token_usage"]),
        ({"log_token_usage": False}, ["message", "tool_call", "message"]),
        ({"log_messages": False, "log_tool_calls": False, "log_token_usage": False}, []),
    ],
)
async def test_what_may_not_be_logged_is_not_in_the_log(
    calling: Talker, settings: dict[str, bool], logged: list[str]
) -> None:
    await _set(calling, **settings)
    await calling.say("Hello")
    assert await _kinds(calling) == logged


@pytest.mark.parametrize("kind", ["message", "tool_call", "token_usage"])
async def test_a_filter_does_not_bring_back_what_is_not_logged(calling: Talker, kind: str) -> None:
    await _set(calling, log_messages=False, log_tool_calls=False, log_token_usage=False)
    reply = await calling.say("Hello")
    assert await _logs(calling, type=kind) == []
    assert await _logs(calling, conversation_id=reply["conversation_id"]) == []


async def test_a_conversation_has_its_messages_whatever_is_logged(calling: Talker) -> None:
    await _set(calling, log_messages=False, log_tool_calls=False, log_token_usage=False)
    reply = await calling.say("Hello")
    asked, answered = await _messages(calling, reply["conversation_id"])
    assert (asked["content"], answered["content"]) == ("Hello", "Fine.")
    assert answered["tool_calls"] == reply["tool_calls"]
    assert len(answered["tool_calls"]) == 1


async def test_the_model_remembers_what_is_not_logged(talk: Talker) -> None:
    await _set(talk, log_messages=False)
    first = await talk.say("My name is Ada.")
    await talk.say("Who am I?", conversation_id=first["conversation_id"])
    told = [message["content"] for message in talk.asked[-1]["messages"]]
    assert told[1:] == ["My name is Ada.", "Hello there", "Who am I?"]


async def test_figures_count_what_is_not_logged(talk: Talker) -> None:
    await _set(talk, log_messages=False, log_token_usage=False)
    talk.script(Reply(usage=(10, 5)))
    await talk.say("Hello")
    stats = (await talk.client.get(f"{talk.path}/stats")).json()
    assert (stats["total_messages"], stats["total_tokens_used"]) == (2, 15)


async def test_settings_hold_for_what_is_said_from_now_on(talk: Talker) -> None:
    """Neither does the log forget, nor does it learn afterwards."""
    talk.script(Reply(texts=["Fine."]))
    await talk.say("First")
    await _set(talk, log_messages=False)
    await talk.say("Second")
    await _set(talk, log_messages=True)
    await talk.say("Third")
    said = [item["content"] for item in await _logs(talk, type="message") if item["role"] == "user"]
    assert said == ["Third", "First"]


async def test_settings_of_one_agent_are_not_anothers(talk: Talker) -> None:
    other = await talk.agent("Other")
    await _set(talk, log_messages=False)
    await other.say("Hello")
    assert await _kinds(other) == ["message", "message", "token_usage"]


async def test_a_streamed_turn_obeys_the_settings(talk: Talker) -> None:
    await _set(talk, log_messages=False, log_token_usage=False)
    answer = await talk.client.post(f"{talk.path}/chat/stream", {"message": "Hello"})
    assert events_in(answer.text)[-1][0] == "message_stop"
    assert await _logs(talk) == []


async def test_a_visitors_turn_obeys_the_settings(talk: Talker) -> None:
    await _set(talk, log_messages=False, log_token_usage=False)
    key = {"agent_id": talk.agent_id, "name": "Site"}
    made = (await talk.client.post("/api/v1/embed/api-keys", key)).json()
    answer = await talk.world.anonymous().post(
        f"/api/v1/public/agents/{talk.agent_id}/chat",
        {"session_id": "s", "message": "Hello"},
        headers={"x-api-key": made["api_key"]},
    )
    assert answer.status_code == 200
    assert await _logs(talk) == []
    told = await _events(talk.client, "agent.chat.message")
    assert [data["content"] for data in told] == [None, None]


# Events


async def test_events_carry_what_was_said(talk: Talker) -> None:
    talk.script(Reply(texts=["Fine."]))
    await talk.say("Hello")
    told = await _events(talk.client, "agent.chat.message")
    assert [(data["role"], data["content"]) for data in told] == [
        ("user", "Hello"),
        ("assistant", "Fine."),
    ]


async def test_events_carry_nothing_of_what_may_not_be_logged(talk: Talker) -> None:
    await _set(talk, log_messages=False)
    talk.script(Reply(texts=["Fine secret."]))
    reply = await talk.say("Hello secret")
    told = await _events(talk.client, "agent.chat.message")
    assert [(data["role"], data["content"]) for data in told] == [
        ("user", None),
        ("assistant", None),
    ]
    assert told[1]["message_id"] == reply["message"]["id"]
    assert told[1]["status"] == "complete"
    log = await talk.client.get("/api/v1/event-log", params={"per_page": 100})
    assert "secret" not in log.text


@pytest.mark.parametrize("settings", [{"log_tool_calls": False}, {"log_token_usage": False}])
async def test_other_settings_do_not_empty_events(talk: Talker, settings: dict[str, bool]) -> None:
    await _set(talk, **settings)
    await talk.say("Hello")
    told = await _events(talk.client, "agent.chat.message")
    assert [data["content"] for data in told] == ["Hello", "Hello there"]


class Background(msgspec.Struct):
    """One asynchronous turn, run here instead of by a worker process."""

    talk: Talker
    services: Services

    async def run(self, message: str) -> dict[str, Any]:
        path = f"{self.talk.path}/chat"
        answer = await self.talk.client.post(f"{path}/async", {"message": message})
        assert answer.status_code == 202, answer.text
        job_id = answer.json()["job_id"]
        async with self.services.db.tx(ALL_TENANTS, autocommit=True) as tx:
            sql = "SELECT id FROM work WHERE ref_id = $1"
            work_id = await (await tx.raw()).fetchval(sql, job_id)
        # In a task of its own: a runner leaves its trace in the context.
        await asyncio.create_task(Runner(self.services, JOBS).run(work_id))
        job: dict[str, Any] = (await self.talk.client.get(f"{path}/jobs/{job_id}")).json()
        assert job["status"] == "completed", job
        return job


@pytest.fixture
async def background(talk: Talker, services: Services) -> AsyncIterator[Background]:
    yield Background(talk, services)
    await _sql(services, "DELETE FROM work WHERE tenant_id = $1", talk.client.tenant_id)


async def test_an_asynchronous_turn_obeys_the_settings(background: Background) -> None:
    talk = background.talk
    await _set(talk, log_messages=False, log_token_usage=False)
    talk.script(Reply(texts=["Fine secret."]))
    job = await background.run("Hello secret")
    assert job["reply"]["message"]["content"] == "Fine secret."
    assert await _logs(talk) == []
    log = await talk.client.get("/api/v1/event-log", params={"per_page": 100})
    assert "secret" not in log.text
    (completed,) = await _events(talk.client, "agent.chat.completed")
    assert (completed["status"], completed["message"]) == ("completed", None)


async def test_an_asynchronous_turn_that_may_be_logged_is(background: Background) -> None:
    talk = background.talk
    talk.script(Reply(texts=["Fine."]))
    await background.run("Hello")
    assert await _kinds(talk) == ["message", "message", "token_usage"]
    (completed,) = await _events(talk.client, "agent.chat.completed")
    assert completed["message"] == "Fine."


# Retention


async def _age(services: Services, agent_id: str, days: float) -> None:
    """Everything that was said to the agent so far happened so many days ago."""
    for table, column, where in (
        ("conversation_entries", "created_at", "agent_id = $1"),
        ("conversations", "last_message_at", "agent_id = $1"),
        ("conversations", "created_at", "agent_id = $1"),
        ("chat_jobs", "created_at", "agent_id = $1"),
        ("chat_jobs", "finished_at", "agent_id = $1"),
        ("event_log", "created_at", "data->>'agent_id' = $1"),
    ):
        await _sql(
            services,
            f"UPDATE {table} SET {column} = {column} - $2 * interval '1 day' WHERE {where}",
            agent_id,
            days,
        )


async def _count(services: Services, table: str, agent_id: str) -> int:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        sql = f"SELECT count(*) FROM {table} WHERE agent_id = $1"
        return int(await (await tx.raw()).fetchval(sql, agent_id))


@pytest.mark.parametrize(("days", "age"), [(1, 1.01), (30, 31), (3650, 3651)])
async def test_what_is_older_than_its_retention_is_deleted(
    calling: Talker, services: Services, days: int, age: float
) -> None:
    reply = await calling.say("Hello")
    await _set(calling, retention_days=days)
    await _age(services, calling.agent_id, age)
    await _forget(services)
    assert await _logs(calling) == []
    path = f"/api/v1/conversations/{reply['conversation_id']}"
    assert (await calling.client.get(path)).status_code == 404
    assert await _count(services, "conversations", calling.agent_id) == 0
    assert await _count(services, "conversation_entries", calling.agent_id) == 0
    assert await _events(calling.client, "agent.chat.message") == []


@pytest.mark.parametrize(("days", "age"), [(1, 0.99), (30, 29), (3650, 3649)])
async def test_what_is_younger_than_its_retention_stays(
    calling: Talker, services: Services, days: int, age: float
) -> None:
    reply = await calling.say("Hello")
    await _set(calling, retention_days=days)
    await _age(services, calling.agent_id, age)
    await _forget(services)
    assert len(await _logs(calling)) == 5
    assert len(await _messages(calling, reply["conversation_id"])) == 2
    assert len(await _events(calling.client, "agent.chat.message")) == 2


async def test_what_is_not_logged_is_deleted_as_well(talk: Talker, services: Services) -> None:
    await _set(talk, log_messages=False, retention_days=1)
    await talk.say("Hello")
    await _age(services, talk.agent_id, 2)
    await _forget(services)
    assert await _count(services, "conversation_entries", talk.agent_id) == 0


async def test_a_conversation_that_goes_on_loses_its_old_messages_only(
    talk: Talker, services: Services
) -> None:
    await _set(talk, retention_days=7)
    talk.script(Reply(texts=["Old."]), Reply(texts=["New."]), Reply(texts=["Newer."]))
    first = await talk.say("Then")
    await _age(services, talk.agent_id, 8)
    await talk.say("Now", conversation_id=first["conversation_id"])
    await _forget(services)
    said = [item["content"] for item in await _messages(talk, first["conversation_id"])]
    assert said == ["Now", "New."]
    told = await _events(talk.client, "agent.chat.message")
    assert [data["content"] for data in told] == ["Now", "New."]
    await talk.say("Later", conversation_id=first["conversation_id"])
    asked = [message["content"] for message in talk.asked[-1]["messages"]]
    assert asked[1:] == ["Now", "New.", "Later"]


async def test_each_agent_has_a_retention_of_its_own(talk: Talker, services: Services) -> None:
    other = await talk.agent("Other")
    await _set(talk, retention_days=1)
    for each in (talk, other):
        await each.say("Hello")
        await _age(services, each.agent_id, 2)
    await _forget(services)
    assert await _count(services, "conversations", talk.agent_id) == 0
    assert await _count(services, "conversations", other.agent_id) == 1
    assert len(await _logs(other)) == 3


async def test_figures_outlive_what_was_said(talk: Talker, services: Services) -> None:
    talk.script(Reply(usage=(10, 5)))
    await talk.say("Hello")
    await _set(talk, retention_days=1)
    await _age(services, talk.agent_id, 2)
    await _forget(services)
    stats = (await talk.client.get(f"{talk.path}/stats")).json()
    assert (stats["total_conversations"], stats["total_tokens_used"]) == (1, 15)


async def test_the_agents_own_events_are_no_part_of_its_retention(
    talk: Talker, services: Services
) -> None:
    await _set(talk, retention_days=1)
    await _age(services, talk.agent_id, 2)
    await _forget(services)
    assert len(await _events(talk.client, "agent.created")) == 1


async def test_a_conversation_that_is_being_answered_is_not_deleted(
    talk: Talker, services: Services
) -> None:
    hold = asyncio.Event()
    talk.script(Reply(), Reply(texts=["Fine."], hold=hold))
    first = await talk.say("Then")
    await _set(talk, retention_days=1)
    await _age(services, talk.agent_id, 2)
    body = {"message": "Now", "conversation_id": first["conversation_id"]}
    asking = asyncio.create_task(talk.client.post(f"{talk.path}/chat", body))
    async with asyncio.timeout(10):
        while len(talk.asked) < 2:  # noqa: ASYNC110  # the model server has no signal for it
            await asyncio.sleep(0.01)
    await _forget(services)
    hold.set()
    answer = await asking
    assert answer.status_code == 200, answer.text
    said = [item["content"] for item in await _messages(talk, first["conversation_id"])]
    assert said == ["Now", "Fine."]


async def test_the_job_of_an_asynchronous_turn_goes_with_its_conversation(
    background: Background,
) -> None:
    talk, services = background.talk, background.services
    await background.run("Hello")
    await _set(talk, retention_days=1)
    await _age(services, talk.agent_id, 2)
    await _forget(services)
    assert await _count(services, "chat_jobs", talk.agent_id) == 0
    assert await _events(talk.client, "agent.chat.completed") == []


async def test_the_reply_of_an_old_job_is_kept_no_longer_than_its_message(
    background: Background,
) -> None:
    talk, services = background.talk, background.services
    talk.script(Reply(texts=["Old secret."]), Reply(texts=["New."]))
    job = await background.run("Hello")
    await _set(talk, retention_days=1)
    await _age(services, talk.agent_id, 2)
    await talk.say("Now", conversation_id=job["conversation_id"])
    await _forget(services)
    said = [item["content"] for item in await _messages(talk, job["conversation_id"])]
    assert said == ["Now", "New."]
    answer = await talk.client.get(f"{talk.path}/chat/jobs/{job['job_id']}")
    assert "Old secret." not in answer.text


async def test_the_title_of_a_conversation_does_not_tell_what_was_forgotten(
    talk: Talker, services: Services
) -> None:
    await _set(talk, retention_days=1)
    first = await talk.say("Old secret")
    await _age(services, talk.agent_id, 2)
    await talk.say("Now", conversation_id=first["conversation_id"])
    await _forget(services)
    answer = await talk.client.get(f"/api/v1/conversations/{first['conversation_id']}")
    assert "Old secret" not in answer.text


async def test_what_was_said_to_a_deleted_agent_is_not_kept_for_ever(
    talk: Talker, services: Services
) -> None:
    await talk.say("Hello secret")
    await _set(talk, retention_days=1)
    await talk.client.delete(talk.path)
    await _age(services, talk.agent_id, 4000)
    await _forget(services)
    log = await talk.client.get("/api/v1/event-log", params={"per_page": 100})
    assert "secret" not in log.text
