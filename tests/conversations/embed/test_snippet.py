"""GET /api/v1/public/agents/:id/embed: the tag that a web site puts into its pages."""

from html.parser import HTMLParser
from typing import Any

import pytest

from app.services import Services
from tests.changed_settings import changed_settings
from tests.conversations.embed.factories import KEYS_PATH, create_embed_key
from tests.conversations.embed.sites import ORIGIN, error_of, key_options
from tests.scripted_agents import Talker
from tests.world import Client, World


def _snippet_path(agent_id: str) -> str:
    return f"/api/v1/public/agents/{agent_id}/embed"


async def _get_snippet(caller: Client, agent_id: str, **options: Any) -> dict[str, Any]:
    answer = await caller.get(_snippet_path(agent_id), **options)
    assert answer.status_code == 200, answer.text
    snippet: dict[str, Any] = answer.json()
    return snippet


class _Reader(HTMLParser):
    """Collects the tags and texts that a browser would see."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.ends: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.ends.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def _parse_script_tag(code: str) -> dict[str, str | None]:
    """Returns the attributes of the code's only tag, which must be a script."""
    reader = _Reader()
    reader.feed(code)
    reader.close()
    assert [tag for tag, _ in reader.tags] == ["script"]
    assert (reader.ends, reader.texts) == (["script"], [])
    return reader.tags[0][1]


# With a sign-in


async def test_a_snippet_is_one_script_tag_for_the_agent(talk: Talker, services: Services) -> None:
    snippet = await _get_snippet(talk.client, talk.agent_id)
    assert set(snippet) == {"embed_code", "agent_id", "agent_name", "hint"}
    assert (snippet["agent_id"], snippet["agent_name"]) == (talk.agent_id, "Talker")
    tag = _parse_script_tag(snippet["embed_code"])
    assert tag["src"] == f"{services.settings.public_url}/embed/widget.js"
    assert tag["data-agent-id"] == talk.agent_id
    assert "async" in tag
    assert tag["async"] is None


async def test_a_sign_in_gives_a_snippet_without_a_key(talk: Talker) -> None:
    key = await create_embed_key(talk.client, talk.agent_id)
    snippet = await _get_snippet(talk.client, talk.agent_id)
    assert key["api_key"] not in snippet["embed_code"]
    assert _parse_script_tag(snippet["embed_code"])["data-api-key"] == "YOUR_EMBED_KEY"
    assert "POST /api/v1/embed/api-keys" in snippet["hint"]


async def test_a_new_key_comes_with_a_snippet_that_has_it(talk: Talker, services: Services) -> None:
    key = await create_embed_key(talk.client, talk.agent_id)
    tag = _parse_script_tag(key["embed_code"])
    assert (tag["data-agent-id"], tag["data-api-key"]) == (talk.agent_id, key["api_key"])
    assert tag["src"] == f"{services.settings.public_url}/embed/widget.js"


async def test_roles_with_agents_read_get_the_snippet(
    world: World, talk: Talker, subtests: pytest.Subtests
) -> None:
    for role in ["tenant_admin", "agent_developer", "agent_user", "viewer", "super_admin"]:
        with subtests.test(role=role):
            caller = await world.user(role, talk.client.tenant_id)
            assert (await _get_snippet(caller, talk.agent_id))["agent_id"] == talk.agent_id


async def test_the_owner_gets_the_snippet_before_the_agent_is_published(
    talk: Talker, subtests: pytest.Subtests
) -> None:
    for status in ["draft", "archived"]:
        with subtests.test(status=status):
            await talk.client.put(talk.path, {"status": status})
            assert (await _get_snippet(talk.client, talk.agent_id))["agent_name"] == "Talker"


async def test_an_agent_of_another_tenant_is_not_found(talk: Talker, admin: Client) -> None:
    answer = await admin.get(_snippet_path(talk.agent_id))
    assert error_of(answer) == (404, "agent_not_found")
    assert "Talker" not in answer.text


async def test_a_super_admin_reaches_every_tenants_agent(talk: Talker, super_admin: Client) -> None:
    assert (await _get_snippet(super_admin, talk.agent_id))["agent_name"] == "Talker"
    headers = {"x-tenant-id": super_admin.tenant_id}
    answer = await super_admin.get(_snippet_path(talk.agent_id), headers=headers)
    assert error_of(answer) == (404, "agent_not_found")


async def test_an_unknown_agent_is_not_found(talk: Talker, subtests: pytest.Subtests) -> None:
    for agent in ["agt_none", "%22%3E%3Cscript%3E", "x" * 300]:
        with subtests.test(agent=agent):
            answer = await talk.client.get(_snippet_path(agent))
            assert error_of(answer) == (404, "agent_not_found")
            assert answer.headers["content-type"].startswith("application/json")
            assert len(answer.text) < 400


async def test_an_anonymous_caller_gets_no_snippet(talk: Talker, anonymous: Client) -> None:
    answer = await anonymous.get(_snippet_path(talk.agent_id))
    assert error_of(answer) == (401, "unauthorized")
    assert answer.headers["www-authenticate"] == "Bearer"


async def test_a_signed_out_caller_gets_no_snippet(talk: Talker) -> None:
    await talk.client.post("/auth/logout")
    assert error_of(await talk.client.get(_snippet_path(talk.agent_id))) == (401, "unauthorized")


async def test_a_sign_in_gets_no_cors_headers(talk: Talker) -> None:
    answer = await talk.client.get(_snippet_path(talk.agent_id), headers={"origin": ORIGIN})
    assert answer.status_code == 200
    assert not any(name.startswith("access-control") for name in answer.headers)


# With a key


async def test_a_key_gives_a_snippet_that_is_ready_to_use(
    talk: Talker, anonymous: Client, subtests: pytest.Subtests
) -> None:
    for transport in ["bearer", "header", "query"]:
        with subtests.test(transport=transport):
            key = (await create_embed_key(talk.client, talk.agent_id))["api_key"]
            snippet = await _get_snippet(anonymous, talk.agent_id, **key_options(transport, key))
            assert snippet["hint"] is None
            tag = _parse_script_tag(snippet["embed_code"])
            assert (tag["data-agent-id"], tag["data-api-key"]) == (talk.agent_id, key)


async def test_the_key_of_a_snippet_can_chat_with_the_agent(
    talk: Talker, anonymous: Client
) -> None:
    key = (await create_embed_key(talk.client, talk.agent_id))["api_key"]
    snippet = await _get_snippet(anonymous, talk.agent_id, headers={"x-api-key": key})
    tag = _parse_script_tag(snippet["embed_code"])
    answer = await anonymous.post(
        f"/api/v1/public/agents/{tag['data-agent-id']}/chat",
        {"session_id": "s", "message": "Hi"},
        headers={"x-api-key": str(tag["data-api-key"])},
    )
    assert answer.status_code == 200, answer.text


async def test_a_wrong_key_is_refused_and_not_repeated(
    talk: Talker, anonymous: Client, subtests: pytest.Subtests
) -> None:
    for key in ["emb_wrong", '"><script>alert(1)</script>', "wrong"]:
        with subtests.test(key=key):
            answer = await anonymous.get(_snippet_path(talk.agent_id), params={"api_key": key})
            assert error_of(answer) == (401, "unauthorized")
            assert key not in answer.text


async def test_a_sign_in_comes_before_a_key_that_is_sent_with_it(talk: Talker) -> None:
    answer = await talk.client.get(_snippet_path(talk.agent_id), params={"api_key": "emb_wrong"})
    assert answer.status_code == 200
    assert "emb_wrong" not in answer.text


async def test_a_revoked_key_gives_no_snippet(talk: Talker, anonymous: Client) -> None:
    key = await create_embed_key(talk.client, talk.agent_id)
    await talk.client.delete(KEYS_PATH, params={"id": key["id"]})
    answer = await anonymous.get(
        _snippet_path(talk.agent_id), headers={"x-api-key": key["api_key"]}
    )
    assert error_of(answer) == (401, "unauthorized")


async def test_a_key_gives_the_snippet_of_its_own_agent_only(
    talk: Talker, anonymous: Client
) -> None:
    other = await talk.agent("Secret name")
    key = (await create_embed_key(talk.client, talk.agent_id))["api_key"]
    answer = await anonymous.get(_snippet_path(other.agent_id), headers={"x-api-key": key})
    assert error_of(answer) == (404, "agent_not_found")
    assert "Secret name" not in answer.text


async def test_a_key_gives_no_snippet_of_an_agent_that_is_not_published(
    talk: Talker, anonymous: Client, subtests: pytest.Subtests
) -> None:
    for status in ["draft", "archived"]:
        with subtests.test(status=status):
            key = (await create_embed_key(talk.client, talk.agent_id))["api_key"]
            await talk.client.put(talk.path, {"status": status})
            answer = await anonymous.get(_snippet_path(talk.agent_id), headers={"x-api-key": key})
            assert error_of(answer) == (404, "agent_not_found")


async def test_the_keys_domains_hold_for_the_snippet(
    talk: Talker, anonymous: Client, subtests: pytest.Subtests
) -> None:
    for origin, status in [(ORIGIN, 200), ("https://evil.com", 403), (None, 403)]:
        with subtests.test(origin=origin, status=status):
            key = await create_embed_key(
                talk.client, talk.agent_id, allowed_domains=["shop.example.com"]
            )
            headers = {"x-api-key": key["api_key"]} | ({"origin": origin} if origin else {})
            answer = await anonymous.get(_snippet_path(talk.agent_id), headers=headers)
            assert answer.status_code == status
            expected = origin if status == 200 else None
            assert answer.headers.get("access-control-allow-origin") == expected


# Escaping


async def test_an_agents_name_stays_text(talk: Talker, subtests: pytest.Subtests) -> None:
    for name in [
        '"><script>alert(1)</script>',
        "Tom & Jerry's <b>",
        "</script>",
        "ü 日本 \U0001f600",
    ]:
        with subtests.test(name=name):
            await talk.client.put(talk.path, {"name": name})
            answer = await talk.client.get(_snippet_path(talk.agent_id))
            snippet = answer.json()
            assert snippet["agent_name"] == name
            # The name adds no attribute.
            assert set(_parse_script_tag(snippet["embed_code"])) == {
                "async",
                "src",
                "data-agent-id",
                "data-api-key",
            }
            assert answer.headers["content-type"].startswith("application/json")
            assert answer.headers["x-content-type-options"] == "nosniff"


async def test_the_address_of_the_instance_is_escaped(talk: Talker, services: Services) -> None:
    address = "https://parley.example.com/a&copy=1'\"<b>/"
    with changed_settings(services, base_url=address):
        snippet = await _get_snippet(talk.client, talk.agent_id)
    tag = _parse_script_tag(snippet["embed_code"])
    assert set(tag) == {"async", "src", "data-agent-id", "data-api-key"}
    assert tag["src"] == "https://parley.example.com/a&copy=1'\"<b>/embed/widget.js"
