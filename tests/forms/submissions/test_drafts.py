"""Drafts: answers that a visitor saves and goes on with later."""

import hashlib
from typing import Any

import httpx
import pytest

from app.domain.forms.submissions import uploads
from app.services import Services
from db.retention import delete_expired
from db.session import ALL_TENANTS
from tests.assertions import refused
from tests.database import run_sql
from tests.forms.api import (
    EMAIL,
    FILE,
    PATH,
    PUBLIC,
    TEXT,
    TOPIC,
    create_form,
    get_submission,
    problems,
    send,
    submit,
    upload,
)
from tests.forms.upkeep import RETENTION
from tests.world import Client, World

AREA_FIELD: dict[str, Any] = {
    "id": "story",
    "type": "textarea",
    "label": "Your story",
    "validation": {"max_length": 100_000},
}


async def _send_draft(
    client: Client, form: dict[str, Any], data: dict[str, Any], **more: Any
) -> httpx.Response:
    headers = more.pop("headers", None)
    return await client.post(
        f"{PUBLIC}/{form['slug']}/drafts", {"data": data, **more}, headers=headers
    )


async def _save(
    client: Client, form: dict[str, Any], data: dict[str, Any], **more: Any
) -> dict[str, Any]:
    answer = await _send_draft(client, form, data, **more)
    assert answer.status_code == 201, answer.text
    saved: dict[str, Any] = answer.json()["data"]
    return saved


async def _load(client: Client, form: dict[str, Any], token: str) -> httpx.Response:
    path = f"{PUBLIC}/{form['slug']}/drafts"
    return await client.get(path, headers={"X-Draft-Token": token})


async def test_a_draft_is_continued_by_its_token(
    developer: Client, anonymous: Client, world: World
) -> None:
    form = await create_form(developer, TEXT, EMAIL, TOPIC)
    saved = await _save(anonymous, form, {"topic": "help"})
    assert saved["url"].endswith(f"/f/{form['slug']}#draft={saved['token']}")
    draft = (await _load(world.anonymous(), form, saved["token"])).json()["data"]
    assert (draft["version"], draft["data"]) == (1, {"topic": "help"})
    assert draft["expires_at"] == saved["expires_at"]
    assert "token" not in draft


async def test_a_draft_may_be_empty(developer: Client, anonymous: Client) -> None:
    form = await create_form(developer, TEXT)
    assert (await _save(anonymous, form, {}))["data"] == {}


async def test_a_draft_is_replaced_by_its_token(developer: Client, anonymous: Client) -> None:
    form = await create_form(developer, TEXT, EMAIL, TOPIC)
    token = (await _save(anonymous, form, {"name": "Ada", "topic": "help"}))["token"]
    again = await _save(anonymous, form, {"name": "Bob"}, token=token)
    assert again["token"] == token
    draft = (await _load(anonymous, form, token)).json()["data"]
    assert draft["data"] == {"name": "Bob"}
    assert draft["updated_at"] > draft["created_at"]


async def test_a_draft_that_is_saved_again_lasts_for_30_days_more(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form = await create_form(developer, TEXT)
    token = (await _save(anonymous, form, {"name": "Ada"}))["token"]
    await _expire(services, form, "-1 day")
    await _save(anonymous, form, {"name": "Bob"}, token=token)
    sql = """SELECT expires_at > now() + interval '29 days' AS is_kept
             FROM form_drafts WHERE form_id = $1"""
    assert await run_sql(services, sql, form["id"]) == [{"is_kept": True}]


async def test_a_draft_keeps_the_version_that_it_was_made_for(
    developer: Client, anonymous: Client
) -> None:
    form = await create_form(developer, TEXT, EMAIL)
    await developer.put(f"{PATH}/{form['id']}", {"fields": [EMAIL]})
    token = (await _save(anonymous, form, {"name": "Ada"}, version=1))["token"]
    draft = (await _load(anonymous, form, token)).json()["data"]
    assert (draft["version"], draft["data"]) == (1, {"name": "Ada"})
    assert problems(await _send_draft(anonymous, form, {"name": "Ada"})).keys() == {"name"}
    missing = await _send_draft(anonymous, form, {}, version=9)
    refused(missing, 404, "form_version_not_found")


async def test_wrong_answers_are_refused(
    developer: Client, anonymous: Client, subtests: pytest.Subtests
) -> None:
    form = await create_form(developer, TEXT, EMAIL, TOPIC, FILE)
    for data, wrong in (
        ({"email": "ada"}, {"email"}),
        ({"topic": "other", "name": 5}, {"name", "topic"}),
        ({"other": 1}, {"other"}),
        ({"file": "fil_forged"}, {"file"}),
    ):
        with subtests.test(str(data)):
            assert problems(await _send_draft(anonymous, form, data)).keys() == wrong
            answer = await _send_draft(anonymous, form, data, token="x" * 43)
            assert problems(answer).keys() == wrong


async def test_an_answer_to_a_hidden_field_is_not_saved(
    developer: Client, anonymous: Client
) -> None:
    condition = {"field": "topic", "operator": "equals", "value": "sales"}
    form = await create_form(developer, TOPIC, {**TEXT, "conditional": condition})
    saved = await _save(anonymous, form, {"topic": "help", "name": "Ada"})
    assert saved["data"] == {"topic": "help"}


# Tokens


async def test_a_token_opens_only_the_draft_of_its_form(
    developer: Client, anonymous: Client
) -> None:
    form, other = await create_form(developer, TEXT), await create_form(developer, TEXT)
    token = (await _save(anonymous, form, {"name": "Ada"}))["token"]
    refused(await _load(anonymous, other, token), 404, "draft_not_found")
    refused(await _load(anonymous, form, token[:-1]), 404, "draft_not_found")
    saved = await _send_draft(anonymous, other, {"name": "Eve"}, token=token)
    refused(saved, 404, "draft_not_found")
    await submit(anonymous, other, {"name": "Eve"}, draft_token=token)
    assert (await _load(anonymous, form, token)).json()["data"]["data"] == {"name": "Ada"}


async def test_a_draft_cannot_be_read_without_a_token(developer: Client, anonymous: Client) -> None:
    form = await create_form(developer, TEXT)
    path = f"{PUBLIC}/{form['slug']}/drafts"
    for headers in ({}, {"X-Draft-Token": ""}, {"X-Draft-Token": "x" * 101}):
        assert (await anonymous.get(path, headers=headers)).status_code == 422


async def test_only_the_hash_of_a_token_is_stored(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form = await create_form(developer, TEXT)
    token = (await _save(anonymous, form, {"name": "Ada"}))["token"]
    assert len(token) == 43
    sql = "SELECT d::text AS row, token_hash FROM form_drafts d WHERE form_id = $1"
    (stored,) = await run_sql(services, sql, form["id"])
    assert stored["token_hash"] == hashlib.sha256(token.encode()).hexdigest()
    assert token not in stored["row"]


async def test_a_repeated_request_saves_one_draft(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form = await create_form(developer, TEXT)
    headers = {"idempotency-key": "once"}
    tokens = {
        (await _save(anonymous, form, {"name": "Ada"}, headers=headers))["token"] for _ in range(2)
    }
    assert len(tokens) == 1
    sql = "SELECT count(*) FROM form_drafts WHERE form_id = $1"
    assert await run_sql(services, sql, form["id"]) == [{"count": 1}]


# Submissions


async def test_a_submission_removes_its_draft(developer: Client, anonymous: Client) -> None:
    form = await create_form(developer, TEXT, EMAIL)
    token = (await _save(anonymous, form, {"name": "Ada"}))["token"]
    assert problems(await send(anonymous, form, {"email": "x"}, draft_token=token))
    assert (await _load(anonymous, form, token)).status_code == 200
    await submit(anonymous, form, {"name": "Ada"}, draft_token=token)
    refused(await _load(anonymous, form, token), 404, "draft_not_found")
    # A token that is no longer there keeps nobody from submitting.
    await submit(anonymous, form, {"name": "Ada"}, draft_token=token)


async def test_a_file_is_kept_by_a_draft(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form = await create_form(developer, TEXT, FILE)
    kept, lost = [
        (await upload(anonymous, form, b"hello")).json()["data"]["file_id"] for _ in range(2)
    ]
    token = (await _save(anonymous, form, {"file": kept}))["token"]
    # A day passes.
    sql = "UPDATE form_uploads SET expires_at = expires_at - interval '25 hours' WHERE form_id = $1"
    await run_sql(services, sql, form["id"])
    while await uploads.delete_expired(services):
        pass
    data = (await _load(anonymous, form, token)).json()["data"]["data"]
    assert problems(await send(anonymous, form, {"name": "Ada", "file": lost})).keys() == {"file"}
    submission_id = await submit(anonymous, form, {**data, "name": "Ada"}, draft_token=token)
    stored = await get_submission(developer, form, submission_id)
    assert [item["file_id"] for item in stored["files"]] == [kept]


# Limits and the end


async def test_a_draft_has_a_limited_size(developer: Client, anonymous: Client) -> None:
    stories = [{**AREA_FIELD, "id": f"s{number}"} for number in range(3)]
    form = await create_form(developer, *stories)
    await _save(anonymous, form, {"s0": "x" * 100_000, "s1": "x" * 100_000})
    answer = await _send_draft(anonymous, form, {f"s{number}": "x" * 90_000 for number in range(3)})
    assert answer.status_code == 422
    assert "256 KiB" in answer.text


async def test_a_form_that_takes_no_answers_takes_no_drafts(
    developer: Client, anonymous: Client
) -> None:
    draft = await create_form(developer, TEXT, is_published=False)
    refused(await _send_draft(anonymous, draft, {}), 404, "form_not_found")
    closed = await create_form(developer, TEXT, settings={"closes_at": "2020-01-01T00:00:00Z"})
    refused(await _send_draft(anonymous, closed, {}), 409, "form_closed")


async def test_one_address_saves_a_limited_number_of_drafts(
    developer: Client, anonymous: Client, world: World
) -> None:
    form = await create_form(developer, TEXT)
    limit = world.services.settings.form_submissions_per_minute
    statuses = [(await _send_draft(anonymous, form, {})).status_code for _ in range(limit)]
    assert statuses == [201] * limit
    refused(await _send_draft(anonymous, form, {}), 429, "rate_limit_exceeded")
    # Submitting has a limit of its own.
    await submit(anonymous, form, {"name": "Ada"})


async def _expire(services: Services, form: dict[str, Any], age: str) -> None:
    sql = f"UPDATE form_drafts SET expires_at = now() - interval '{age}' WHERE form_id = $1"
    await run_sql(services, sql, form["id"])


async def _list_drop_off(client: Client, form: dict[str, Any]) -> list[tuple[str, float]]:
    answer = await client.get(f"{PATH}/{form['id']}/analytics")
    found = answer.json()["data"]["drop_off_fields"]
    return [(item["field_id"], item["drop_off_rate"]) for item in found]


async def test_an_expired_draft_is_gone_and_still_counted(
    developer: Client, anonymous: Client, services: Services
) -> None:
    form = await create_form(developer, TEXT, EMAIL, TOPIC)
    await submit(anonymous, form, {"name": "Ada"})
    token = (await _save(anonymous, form, {"name": "Ada"}))["token"]
    await _save(anonymous, form, {"name": "Ada"})
    await _save(anonymous, form, {"email": "ada@example.com"})
    expected = [("email", 50), ("name", 25)]
    assert await _list_drop_off(developer, form) == expected
    await _expire(services, form, "1 second")
    refused(await _load(anonymous, form, token), 404, "draft_not_found")
    refused(await _send_draft(anonymous, form, {}, token=token), 404, "draft_not_found")
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        assert (await delete_expired(await tx.raw(), RETENTION))[1] == []
    sql = "SELECT DISTINCT data::text AS data, token_hash FROM form_drafts WHERE form_id = $1"
    assert await run_sql(services, sql, form["id"]) == [{"data": "{}", "token_hash": None}]
    assert await _list_drop_off(developer, form) == expected


async def test_a_draft_with_all_answers_stopped_at_no_field(
    developer: Client, anonymous: Client
) -> None:
    form = await create_form(developer, TEXT)
    token = (await _save(anonymous, form, {}))["token"]
    assert await _list_drop_off(developer, form) == [("name", 100)]
    await _save(anonymous, form, {"name": "Ada"}, token=token)
    assert await _list_drop_off(developer, form) == []
