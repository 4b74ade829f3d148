"""`parley up` with real processes, as an operator runs it."""

import asyncio
import json
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import httpx
import msgspec
import psutil
import pytest

from app.kit.ids import new_id
from app.security import passwords
from app.settings import Settings
from db import schema
from db.url import parse_url
from tests.lengths import IS_LONG, rounds
from tests.local.instance import (
    QUESTION,
    Up,
    UpWithoutModel,
    create_agent_on_local_model,
    wait_for_answer,
)
from tests.local.process_state import has_ended
from tests.ports import free_port
from tests.scripted_agents import events_in, texts_of
from tests.stores import wait_for

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def data_dir() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="parley-up-") as folder:
        yield Path(folder) / "data"


@pytest.fixture(scope="module")
def instance(data_dir: Path) -> Iterator[Up]:
    # With one thread, the model spends no time on waiting for others.
    started = Up(data_dir.with_name("output"), data_dir, free_port(), OMP_THREAD_LIMIT="1")
    try:
        started.wait_ready()
        yield started
    finally:
        started.stop()


def test_it_prints_an_address_and_a_password_that_work(instance: Up) -> None:
    assert instance.url in instance.text
    signed_in = instance.login(instance.password)
    assert signed_in.status_code == 200
    token = signed_in.json()["access_token"]
    me = instance.http.get("/auth/me", headers={"authorization": f"Bearer {token}"})
    assert me.json()["role"] == "super_admin"


def test_the_printed_curl_command_works_as_it_is(instance: Up) -> None:
    command = instance.wait_printed(r"(?s)try it +(curl.*?\}')")[1]
    answer = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert "access_token" in answer.stdout


def test_the_default_tenant_has_the_enterprise_plan(instance: Up) -> None:
    answer = instance.cli("tenants")
    assert "enterprise" in answer.stdout, answer.stderr


def test_every_part_gets_ready_and_the_doctor_agrees(instance: Up) -> None:
    def is_ready() -> bool:
        report = instance.http.get("/health/ready").json()
        return all(part["state"] == "ok" for part in report["parts"].values())

    wait_for_answer(is_ready, "every part ok")
    report = instance.http.get("/health/ready").json()
    assert report["status"] == "ok"
    assert report["sandbox"] in {"bubblewrap", "landlock", "none"}
    doctor = instance.cli("doctor")
    assert doctor.returncode == 0 or "BAD  sandbox" in doctor.stdout, doctor.stdout


@pytest.fixture(scope="module")
def agent(instance: Up) -> Iterator[tuple[httpx.Client, str]]:
    """A client, and the id of its agent on the real local model."""
    client = instance.client()
    yield client, create_agent_on_local_model(client)
    client.close()


@pytest.mark.long
def test_an_agent_on_the_local_model_answers_from_its_prompt(
    agent: tuple[httpx.Client, str],
) -> None:
    client, agent_id = agent
    reply = client.post(f"/api/v1/agents/{agent_id}/chat", json=QUESTION).json()
    assert "9" in reply["message"]["content"]
    assert reply["usage"]["prompt_tokens"] > 10
    assert reply["usage"]["completion_tokens"] > 1
    assert client.get(f"/api/v1/agents/{agent_id}/status").json()["is_online"]


def _wait_for_documents(client: httpx.Client, agent_id: str) -> None:
    def is_read() -> bool:
        training = client.get(f"/api/v1/agents/{agent_id}/status").json()["training"]
        return bool(training["status"] == "ready")

    wait_for_answer(is_read, "the documents")


@pytest.mark.long
def test_the_local_model_does_not_repeat_how_a_document_is_quoted(
    agent: tuple[httpx.Client, str],
) -> None:
    client, _ = agent
    agent_id = create_agent_on_local_model(client)
    path, text = f"/api/v1/agents/{agent_id}", "The shop opens at nine. On Sundays at eleven."
    client.post(f"{path}/train", files=[("files", ("hours.md", f"# Hours\n\n{text}"))])
    _wait_for_documents(client, agent_id)
    question = {"message": "When does the shop open on Sundays?"}
    reply = client.post(f"{path}/chat", json=question).json()
    # The boundary of the quotation is random, so the words of the answer differ.
    assert reply["message"]["content"].strip()
    assert "===" not in reply["message"]["content"]
    assert [source["document_name"] for source in reply["sources"]] == ["hours.md"]


def test_the_local_model_streams_word_by_word(agent: tuple[httpx.Client, str]) -> None:
    client, agent_id = agent
    answer = client.post(f"/api/v1/agents/{agent_id}/chat/stream", json=QUESTION)
    events = events_in(answer.text)
    assert events[0][0] == "message_start"
    assert "9" in texts_of(events)
    assert len([name for name, _ in events if name == "content_delta"]) > 3
    assert events[-1][0] == "message_stop"
    assert events[-1][1]["usage"]["completion_tokens"] > 1


@pytest.mark.long
def test_the_local_model_answers_later_through_a_worker(agent: tuple[httpx.Client, str]) -> None:
    client, agent_id = agent
    job = client.post(f"/api/v1/agents/{agent_id}/chat/async", json=QUESTION).json()
    path = f"/api/v1/agents/{agent_id}/chat/jobs/{job['job_id']}"
    job = client.get(path, params={"wait": 30}).json()
    assert job["status"] == "completed"
    assert "9" in job["reply"]["message"]["content"]


def test_the_local_model_keeps_to_a_json_schema(agent: tuple[httpx.Client, str]) -> None:
    client, agent_id = agent
    schema = {
        "type": "object",
        "properties": {"hour": {"type": "integer"}},
        "required": ["hour"],
        "additionalProperties": False,
    }
    response_format = {"type": "json_schema", "json_schema": {"name": "hours", "schema": schema}}
    body = {
        "model": agent_id,
        "messages": [{"role": "user", "content": "When does the shop open? Answer in JSON."}],
        "response_format": response_format,
    }
    answer = client.post("/v1/chat/completions", json=body).json()
    content = json.loads(answer["choices"][0]["message"]["content"])
    assert isinstance(content["hour"], int)


@pytest.mark.long
def test_a_form_is_filled_in_by_sentences_that_the_local_model_reads(
    agent: tuple[httpx.Client, str],
) -> None:
    client, _ = agent
    topics = [{"value": "sales", "label": "Sales"}, {"value": "help", "label": "Help"}]
    fields = [
        {"id": "name", "type": "text", "label": "What is your name?", "required": True},
        {"id": "email", "type": "email", "label": "Your e-mail", "required": True},
        {"id": "topic", "type": "select", "label": "Topic", "options": topics},
        {"id": "guests", "type": "number", "label": "How many guests?"},
    ]
    sentences = {
        "Ada Lovelace": "Well hello, I was told to sign up here and people call me Ada Lovelace",
        "ada@example.com": "You can always write to me at ada@example.com, I read it every day",
        "sales": "I think that it is about sales, more or less",
        3: "There will be three of us, if that is fine with you",
    }
    # The name alone needs the model: without it, it would be the whole sentence.
    count = rounds(1, len(fields))
    body = {"name": "Party", "fields": fields[:count]}
    form = client.post("/api/v1/forms", json=body).json()["data"]
    assert client.post(f"/api/v1/forms/{form['id']}/publish").status_code == 200
    path = f"/api/v1/public/forms/{form['slug']}/conversations"
    path += f"/{client.post(path).json()['data']['id']}/messages"
    for content in list(sentences.values())[:count]:
        turn = client.post(path, json={"content": content}).json()["data"]
    submission = f"/api/v1/forms/{form['id']}/submissions/{turn['submission_id']}"
    data = client.get(submission).json()["data"]["data"]
    expected = dict(zip(("name", "email", "topic", "guests"), sentences, strict=True))
    assert data == dict(list(expected.items())[:count])


class Demo(msgspec.Struct):
    agent_id: str
    key: str


@pytest.fixture(scope="module")
def demo(instance: Up) -> Demo:
    url = instance.wait_printed(r"demo +(\S+)")[1]
    assert url == f"{instance.url}/demo"
    wait_for_answer(lambda: instance.http.get(url).status_code == 200, "the demo")
    page = instance.http.get(url).text
    agent_id, key = (re.search(pattern, page) for pattern in (r"agt_\w+", r"emb_[\w-]+"))
    assert agent_id is not None
    assert key is not None
    return Demo(agent_id[0], key[0])


def test_the_documents_of_the_demo_are_read(instance: Up, demo: Demo) -> None:
    with instance.client() as client:
        _wait_for_documents(client, demo.agent_id)
        training = client.get(f"/api/v1/agents/{demo.agent_id}/status").json()["training"]
    assert training["documents_done"] == training["documents_total"] > 1


@pytest.mark.long
def test_the_agent_of_the_demo_answers_a_visitor_from_its_documents(
    instance: Up, demo: Demo
) -> None:
    answer = instance.http.post(
        f"/api/v1/public/agents/{demo.agent_id}/chat",
        json={"session_id": new_id("ses"), "message": "How much is shipping?"},
        headers={"authorization": f"Bearer {demo.key}", "origin": instance.url},
    ).json()
    assert "shipping.md" in [source["document_name"] for source in answer["sources"]]
    assert answer["assistant_reply"]["content"]


def test_mail_is_stored_in_the_mailbox(instance: Up) -> None:
    token = instance.login(instance.password).json()["access_token"]
    invited = instance.http.post(
        "/users/invite",
        json={"email": "grace@example.com", "role": "viewer"},
        headers={"authorization": f"Bearer {token}"},
    )
    assert invited.status_code == 201

    wait_for_answer(lambda: "grace@example.com" in instance.cli("mail").stdout, "the mail")
    assert invited.json()["invitation_token"] in instance.cli("mail", "1").stdout


def test_the_root_key_rotates_while_serving_and_the_old_one_can_go(
    instance: Up, data_dir: Path
) -> None:
    token = instance.login(instance.password).json()["access_token"]
    headers = {"authorization": f"Bearer {token}", "idempotency-key": "before"}
    body = {"email": "ada@example.com", "role": "viewer"}
    first = instance.http.post("/users/invite", json=body, headers=headers)
    rotated = instance.cli("keys", "rotate")
    assert rotated.returncode == 0, rotated.stderr
    again = instance.http.post("/users/invite", json=body, headers=headers)
    assert again.status_code == 201
    assert again.json() == first.json()
    entries = (data_dir / "keys" / "master.keys").read_text(encoding="ascii").split()
    assert len(entries) == 2
    for entry, is_active in ((entries[0], True), (entries[1], False)):
        migrated = instance.cli("migrate", PARLEY_MASTER_KEYS=entry)
        assert (migrated.returncode == 0) == is_active, migrated.stderr


def test_a_second_up_on_the_same_data_is_refused(
    instance: Up, data_dir: Path, tmp_path: Path
) -> None:
    second = UpWithoutModel(tmp_path / "output", data_dir, free_port())
    assert second.wait_ended() == 1
    assert second.text.count("\n") == 1
    assert "already running" in second.text
    assert instance.http.get("/health/live").status_code == 200


@pytest.mark.long
@pytest.mark.parametrize(("part", "word"), [("worker", "worker"), ("web", "serve")])
def test_a_part_that_ends_is_restarted_at_once(instance: Up, part: str, word: str) -> None:
    instance.find_child(word).kill()
    instance.wait_printed(rf"{part}: ended with code -9; restarting now")
    instance.wait_printed(rf"{part}: restarted")
    wait_for_answer(lambda: _is_ready(instance), "web")


def test_a_killed_redis_is_restarted(instance: Up) -> None:
    next(
        process
        for process in psutil.Process(instance.process.pid).children()
        if process.name().startswith("valkey-server")
    ).kill()
    instance.wait_printed(r"redis: ended with code -9, see \S+/logs/redis.log;")
    instance.wait_printed(r"redis: restarted")
    wait_for_answer(lambda: _is_ready(instance), "web")


def _is_ready(instance: Up) -> bool:
    try:
        return instance.http.get("/health/ready").status_code == 200
    except httpx.TransportError:
        return False


def _set_revision(data_dir: Path, revision: str) -> None:
    async def run() -> None:
        connection = await asyncpg.connect(**parse_url(Settings(data_dir=data_dir).sqlalchemy_url))
        await connection.execute("UPDATE alembic_version SET version_num = $1", revision)
        await connection.close()

    asyncio.run(run())


def test_stopping_ends_every_process_and_the_data_survives(
    instance: Up, data_dir: Path, tmp_path: Path
) -> None:
    password = instance.password
    # The next start finds the data of a newer release, as after a release was rolled back.
    _set_revision(data_dir, "9999")
    children = psutil.Process(instance.process.pid).children(recursive=True)
    assert instance.stop() == 0
    assert "everything is stopped" in instance.text
    assert not [child for child in children if child.is_running()]

    again = UpWithoutModel(tmp_path / "again", data_dir, free_port())
    try:
        wait_for(lambda: f"warning: {schema.describe('9999')}" in again.text, what="the warning")
        asyncio.run(_sign_in(data_dir, password))
        wait_for(lambda: _has_processes(again.children()), what="the web process and the worker")
        if IS_LONG:
            wait_for(lambda: "Stop with Ctrl-C" in again.text, 60, "the welcome")
            assert "shown this once" not in again.text
    finally:
        _check_that_children_end_with_a_killed_up(again)
    (data_dir / "keys" / "master.keys").unlink()
    without_key = UpWithoutModel(tmp_path / "without_key", data_dir, free_port())
    assert without_key.wait_ended() == 1
    assert "root key" in without_key.text


async def _sign_in(data_dir: Path, password: str) -> None:
    """Without a web process, which takes seconds to start."""
    connection = await asyncpg.connect(**parse_url(Settings(data_dir=data_dir).sqlalchemy_url))
    sql = "SELECT password_hash FROM users WHERE email = 'admin@example.com'"
    stored = await connection.fetchval(sql)
    await connection.close()
    assert await passwords.verify_password(stored, password)


def _has_processes(children: list[psutil.Process]) -> bool:
    words = [word for child in children for word in child.cmdline()]
    return {"serve", "worker"} <= set(words)


def _check_that_children_end_with_a_killed_up(instance: UpWithoutModel) -> None:
    children = instance.children()
    instance.kill()
    wait_for(lambda: all(map(has_ended, children)), 40, "the end of all children")
