"""States of forms, who may change them, and what other tenants see of them."""

import asyncio
from typing import Any

import pytest

from app.services import Services
from tests.assertions import refused
from tests.forms.api import (
    PATH,
    PUBLIC,
    TEXT,
    act,
    get_form,
    list_forms,
    request_form,
    send,
    submit,
    update_form,
)
from tests.platform.events.database import load_events
from tests.world import Client, World

ANSWERS = {"name": "Ada"}
# The actions that lead to a state, and the state after each action; None for a refusal.
STEPS: dict[str, list[str]] = {
    "draft": [],
    "published": ["publish"],
    "archived": ["archive"],
    "withdrawn": ["publish", "unpublish"],
    "archived after publication": ["publish", "archive"],
}
NEXT_STATES: dict[str, dict[str, str | None]] = {
    "draft": {"publish": "published", "unpublish": None, "archive": "archived"},
    "published": {"publish": None, "unpublish": "draft", "archive": "archived"},
    "archived": {"publish": "published", "unpublish": None, "archive": None},
    "withdrawn": {"publish": "published", "unpublish": None, "archive": "archived"},
    "archived after publication": {"publish": "published", "unpublish": None, "archive": None},
}


async def _create_in_state(client: Client, state: str) -> dict[str, Any]:
    form = await request_form(client, is_published=False)
    for action in STEPS[state]:
        assert (await act(client, form, action)).status_code == 200
    return form


async def test_each_action_leads_from_each_state_to_the_next_or_is_refused(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for state, actions in NEXT_STATES.items():
        for action, next_state in actions.items():
            with subtests.test(state=state, action=action):
                form = await _create_in_state(developer, state)
                before = await get_form(developer, form)
                answer = await act(developer, form, action)
                if next_state is None:
                    refused(answer, 409, "invalid_state")
                    assert await get_form(developer, form) == before
                else:
                    assert answer.json()["data"]["status"] == next_state
                    assert (await get_form(developer, form))["status"] == next_state


async def test_publication_answers_with_the_address_and_the_time(
    developer: Client, services: Services
) -> None:
    form = await request_form(developer, is_published=False)
    answer = await act(developer, form, "publish")
    assert answer.status_code == 200
    published = answer.json()["data"]
    assert published == {
        "id": form["id"],
        "status": "published",
        "slug": form["slug"],
        "published_at": (await get_form(developer, form))["published_at"],
    }
    assert published["published_at"] > form["created_at"]
    (event,) = await load_events(services, developer.tenant_id, "form.published")
    expected = {"form_id": form["id"], "name": "Contact", "slug": form["slug"], "version": 1}
    assert event["data"] == expected


async def test_a_second_publication_has_a_time_of_its_own(developer: Client) -> None:
    form = await request_form(developer)
    first = await get_form(developer, form)
    withdrawn = (await act(developer, form, "unpublish")).json()["data"]
    assert withdrawn["published_at"] == first["published_at"]
    again = (await act(developer, form, "publish")).json()["data"]
    assert again["published_at"] > first["published_at"]


async def test_only_a_published_form_is_shown_and_takes_answers(
    developer: Client, anonymous: Client, subtests: pytest.Subtests
) -> None:
    for state in STEPS:
        with subtests.test(state=state):
            form = await _create_in_state(developer, state)
            public, is_published = f"{PUBLIC}/{form['slug']}", state == "published"
            for path in (public, f"{public}/embed"):
                answer = await anonymous.get(path)
                if is_published:
                    assert answer.status_code == 200
                else:
                    refused(answer, 404, "form_not_found")
            for answer in (
                await send(anonymous, form, ANSWERS),
                await developer.post(f"{PATH}/{form['id']}/submit", {"data": ANSWERS}),
            ):
                if is_published:
                    assert answer.status_code == 201
                else:
                    refused(answer, 409, "form_not_published")


async def test_submissions_outlive_the_states_of_their_form(
    developer: Client, anonymous: Client
) -> None:
    form = await request_form(developer, TEXT)
    submission_id = await submit(anonymous, form, ANSWERS)
    for action in ("unpublish", "archive", "publish"):
        await act(developer, form, action)
        path = f"{PATH}/{form['id']}/submissions/{submission_id}"
        assert (await developer.get(path)).json()["data"]["data"] == ANSWERS
        assert (await get_form(developer, form))["stats"]["submissions"] == 1


async def test_of_two_publications_at_once_one_is_refused(
    developer: Client, services: Services
) -> None:
    form = await request_form(developer, is_published=False)
    answers = await asyncio.gather(*(act(developer, form, "publish") for _ in range(4)))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]
    assert len(await load_events(services, developer.tenant_id, "form.published")) == 1


async def test_no_answer_is_accepted_after_a_deletion(
    developer: Client, anonymous: Client, services: Services
) -> None:
    """Answers that come meanwhile are stored before the deletion, or refused."""
    form = await request_form(developer, TEXT)
    deletion, *answers = await asyncio.gather(
        developer.delete(f"{PATH}/{form['id']}"),
        *(send(anonymous, form, {"name": f"Ada {number}"}) for number in range(8)),
    )
    assert deletion.status_code == 204
    assert {answer.status_code for answer in answers} <= {201, 404, 409}
    events = await load_events(services, developer.tenant_id)
    types = [row["type"] for row in events if row["type"].startswith("form.")]
    accepted = [answer for answer in answers if answer.status_code == 201]
    assert types.count("form.submission.created") == len(accepted)


# Roles


async def test_roles_can_do_what_their_permissions_say(
    developer: Client, world: World, subtests: pytest.Subtests
) -> None:
    form = await request_form(developer)
    path = f"{PATH}/{form['id']}"
    allowed = {
        "viewer": {"read"},
        "agent_user": {"read", "submit"},
        "agent_developer": {"read", "submit", "change", "create", "delete"},
        "tenant_admin": {"read", "submit", "change", "create", "delete"},
    }
    for role, actions in allowed.items():
        caller = await world.user(role, developer.tenant_id)
        copy = (await act(developer, form, "duplicate")).json()["data"]
        answers = {
            "read": await caller.get(path),
            "submit": await caller.post(f"{path}/submit", {"data": ANSWERS}),
            "change": await caller.put(path, {"description": role}),
            "create": await caller.post(PATH, {"name": "New", "fields": [TEXT]}),
            "delete": await caller.delete(f"{PATH}/{copy['id']}"),
        }
        for action, answer in answers.items():
            with subtests.test(role=role, action=action):
                if action in actions:
                    assert answer.is_success, answer.text
                else:
                    refused(answer, 403, "forbidden")


# Tenants


async def test_another_tenants_form_is_not_found_by_any_route(
    developer: Client, world: World, anonymous: Client
) -> None:
    form = await request_form(developer, TEXT)
    submission_id = await submit(anonymous, form, ANSWERS)
    before = await get_form(developer, form)
    stranger, path = await world.user("tenant_admin"), f"{PATH}/{form['id']}"
    one = f"{path}/submissions/{submission_id}"
    reads = ("", "/versions", "/versions/1", "/analytics", "/submissions", "/submissions.csv")
    answers = [await stranger.get(f"{PATH}/slug/{form['slug']}")]
    answers += [await stranger.get(f"{path}{suffix}") for suffix in reads]
    answers.append(await stranger.get(f"{path}/fields/name/options"))
    answers += [await act(stranger, form, name) for name in ("publish", "unpublish", "archive")]
    answers.append(await act(stranger, form, "duplicate"))
    answers.append(await stranger.put(path, {"name": "Mine"}))
    answers.append(await stranger.post(f"{path}/submit", {"data": ANSWERS}))
    answers += [await stranger.get(one), await stranger.delete(one), await stranger.delete(path)]
    answers.append(await stranger("PATCH", one, json={"status": "archived"}))
    for answer in answers:
        refused(answer, 404, "form_not_found")
    assert (await list_forms(stranger))["data"] == []
    assert await get_form(developer, form) == before


async def test_super_admin_works_in_the_tenant_that_the_header_names(
    developer: Client, super_admin: Client
) -> None:
    headers = {"X-Tenant-ID": developer.tenant_id}
    body = {"name": "For you", "fields": [TEXT]}
    created = (await super_admin.post(PATH, body, headers=headers)).json()["data"]
    assert (await get_form(developer, created))["name"] == "For you"
    own = (await super_admin.post(PATH, body)).json()["data"]
    listed = (await super_admin.get(PATH, headers=headers)).json()["data"]
    assert [form["id"] for form in listed] == [created["id"]]
    refused(await super_admin.get(f"{PATH}/{own['id']}", headers=headers), 404, "form_not_found")
    refused(await developer.get(f"{PATH}/{own['id']}"), 404, "form_not_found")


async def test_what_super_admin_does_with_a_form_stays_in_its_tenant(
    developer: Client, super_admin: Client, services: Services
) -> None:
    form = await request_form(developer)
    await update_form(super_admin, form, name="Renamed", fields=[TEXT])
    copy = (await act(super_admin, form, "duplicate")).json()["data"]
    body = {"data": ANSWERS}
    assert (await super_admin.post(f"{PATH}/{form['id']}/submit", body)).status_code == 201
    assert {item["id"] for item in (await list_forms(developer))["data"]} == {
        form["id"],
        copy["id"],
    }
    stored = await get_form(developer, form)
    assert (stored["name"], stored["version"], stored["stats"]["submissions"]) == ("Renamed", 2, 1)
    own_events = await load_events(services, super_admin.tenant_id)
    assert [row["type"] for row in own_events if row["type"].startswith("form.")] == []


# Visitors of other sites


async def test_any_site_may_use_a_public_form(developer: Client, anonymous: Client) -> None:
    form = await request_form(developer, TEXT)
    path, origin = f"{PUBLIC}/{form['slug']}", "https://site.example"
    for suffix in ("", "/submit", "/upload", "/embed", "/fields/name/options"):
        asked = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        preflight = await anonymous("OPTIONS", f"{path}{suffix}", headers=asked)
        assert preflight.status_code == 204, suffix
        assert preflight.headers["access-control-allow-origin"] == origin
    headers = {"Origin": origin}
    answers = [
        await anonymous.get(path, headers=headers),
        await send(anonymous, form, ANSWERS, headers=headers),
        await send(anonymous, form, {}, headers=headers),
        await anonymous.get(f"{PUBLIC}/none", headers=headers),
    ]
    assert [answer.status_code for answer in answers] == [200, 201, 400, 404]
    assert {answer.headers.get("access-control-allow-origin") for answer in answers} == {origin}
    assert "access-control-allow-credentials" not in answers[0].headers
    own = await developer.get(f"{PATH}/{form['id']}", headers=headers)
    assert "access-control-allow-origin" not in own.headers


async def test_visitors_see_nothing_that_is_the_tenants_own(
    developer: Client, anonymous: Client
) -> None:
    settings = {"notifications": {"email": "team@example.com"}, "max_submissions": 9}
    form = await request_form(developer, TEXT, settings=settings)
    shown = (await anonymous.get(f"{PUBLIC}/{form['slug']}")).json()["data"]
    keys = {"name", "slug", "description", "version", "fields", "branding", "settings"}
    assert set(shown) == keys
    public_settings = {"submit_button_text", "success_message", "redirect_url", "closes_at"}
    public_settings |= {"language"}
    assert set(shown["settings"]) == public_settings
    assert "data_source" not in shown["fields"][0]
