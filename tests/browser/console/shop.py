"""A tenant with some of everything that the console shows, with hostile names and texts."""

import itertools
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

import msgspec

from app.kit import clock
from app.services import Services
from tests.agents.knowledge.librarian import HANDBOOK, Librarian
from tests.agents.usage.rows import add_count, add_usage
from tests.browser import hostile
from tests.browser.account_pages import invite
from tests.browser.console.conversation_rows import add_conversation, add_messages, add_turn
from tests.browser.console.document_rows import add_document
from tests.browser.console.work_rows import NOT_RETRYABLE, RETRYABLE, add_dead_work
from tests.conversations.embed.factories import create_embed_key
from tests.database import run_sql
from tests.identity.service_keys.keys import create_key
from tests.model_server import ModelServer, Reply
from tests.scripted_agents import Talker, give_key, talker
from tests.world import Client, World

SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "customer": {"type": "string", "title": "Customer", "description": hostile.HTML[:90]},
        "count": {"type": "integer", "default": 2},
        hostile.NAMES[1][:60]: {"enum": ["warm", hostile.HTML[:60]]},
        "address": {"type": "object", "properties": {"street": {"type": "string"}}},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["customer"],
}
_CODE: Final = """
def main(input):
    if "error" in input:
        raise ValueError(input["error"])
    return input
"""
_NAME_USER = "UPDATE users SET first_name = $2, last_name = $3 WHERE id = $1 RETURNING id"
_NAME_TENANT = "UPDATE tenants SET name = $2 WHERE id = $1 RETURNING id"


class Shop(msgspec.Struct):
    """`ids` are those of the records that have a screen, by their kind."""

    talk: Talker
    services: Services
    ids: dict[str, str]
    _names: Iterator[str]

    @property
    def owner(self) -> Client:
        return self.talk.client

    def name(self, start: str, length: int = 100) -> str:
        return f"{start} {next(self._names)}"[:length].strip()

    async def create(self, path: str, body: object) -> dict[str, Any]:
        answer = await self.owner.post(path, body)
        assert answer.status_code in {200, 201}, answer.text
        created: dict[str, Any] = answer.json()
        return created


async def furnish(world: World, models: ModelServer, services: Services) -> Shop:
    """The owner may see everything. A worker has to read documents and to run tools meanwhile."""
    owner = await world.user("super_admin")
    owner.http.headers["x-tenant-id"] = owner.tenant_id
    talk = await talker(world, models, client=owner, name=f"Shop assistant {hostile.HTML}"[:100])
    ids = {"agent": talk.agent_id, "tenant": owner.tenant_id}
    shop = Shop(talk, services, ids, itertools.cycle(hostile.NAMES))
    for add in (
        _add_agents,
        _add_documents,
        _add_sources,
        _add_tools,
        _add_credentials,
        _add_conversations,
        _add_people,
        _add_usage,
        _add_settings,
    ):
        await add(shop)
    return shop


async def _add_agents(shop: Shop) -> None:
    owner, path = shop.owner, shop.talk.path
    for number in range(6):
        fields = {"name": shop.name(f"Agent {number}"), "description": hostile.MARKDOWN[:2000]}
        other = await shop.talk.agent(
            **fields, status=("published", "draft", "archived")[number % 3]
        )
        if number < 2:
            body = {"agent_id": other.agent_id, "delegation_prompt": hostile.HTML}
            await shop.create(f"{path}/sub-agents/attach", body)
    for prompt in ("Help.", hostile.MARKDOWN):
        answer = await owner.put(path, {"system_prompt": prompt, "description": hostile.HTML})
        assert answer.status_code == 200, answer.text
    answer = await owner.put(f"{path}/draft", {"system_prompt": f"{hostile.MARKDOWN}\n\nBe brief."})
    assert answer.status_code == 200, answer.text
    for allowed in ([], ["https://shop.example.com"]):
        await create_embed_key(
            owner,
            shop.talk.agent_id,
            shop.name("Our site"),
            allowed_domains=allowed,
            max_messages_per_day=200,
            max_tokens_per_day=100_000,
        )


async def _add_documents(shop: Shop) -> None:
    name = f"Handbook {hostile.HTML.replace('/', ' ')[:120].strip()}.md"
    text = f"{HANDBOOK}\n\n# {hostile.HTML[:150]}\n\n{hostile.MARKDOWN}"
    librarian = Librarian(shop.owner, shop.talk.agent_id)
    files = [("files", (name, text.encode()))]
    answer = await shop.owner.http.post(f"{librarian.path}/train", files=files)
    assert answer.status_code == 202, answer.text
    shop.ids["document"] = answer.json()["documents"][0]["id"]
    await librarian.wait_for(shop.ids["document"])
    for status, lease in (("ready", 20), ("processing", 20), ("processing", -5)):
        document = f"{shop.name(status, 140)}.pdf"
        await add_document(shop.services, shop.talk, document, status, lease=lease)
    scan = f"{shop.name('Scan')}.docx"
    await add_document(shop.services, shop.talk, scan, "failed", error=hostile.HTML)


async def _add_sources(shop: Shop) -> None:
    for kind, config in (
        ("page", {"url": f"https://example.com/{'long/' * 60}"}),
        ("sitemap", {"url": "https://example.com/sitemap.xml"}),
    ):
        body = {"type": kind, "config": config, "schedule": "manual"}
        await shop.create(f"{shop.talk.path}/sources", {"name": shop.name("Help"), **body})
    sql = "UPDATE document_sources SET status = 'failed', error = $2 WHERE tenant_id = $1"
    await run_sql(shop.services, sql, shop.owner.tenant_id, hostile.HTML)


async def _add_tools(shop: Shop) -> None:
    common = {"auth_type": "none", "description": hostile.MARKDOWN[:2000]}
    hook = {"url": "https://hooks.example.com/in", "headers": {"X-Team": hostile.HTML[:90]}}
    for number in range(3):
        body = {"tool_type": "webhook", "category": "webhook", "is_enabled": number > 0}
        body |= {**common, "name": shop.name(f"Hook {number}"), "config": hook}
        shop.ids["hook"] = (await shop.create("/v1/tools", body))["data"]["id"]
    function = {
        "tool_type": "function",
        "category": "automation",
        "config": {"runtime": "python", "code": _CODE},
        "input_schema": SCHEMA,
    }
    tool = await shop.create("/v1/tools", {**common, **function, "name": shop.name("Find orders")})
    shop.ids["tool"] = tool["data"]["id"]
    body = {"tool_id": shop.ids["tool"]}
    await shop.create(f"/v1/agents/{shop.talk.agent_id}/tools", body)
    for entry in ({"note": hostile.HTML}, {"error": hostile.HTML}):
        values = {"customer": "Ada", **entry}
        await shop.create(f"/v1/tools/{shop.ids['tool']}/execute", {"input": values})


async def _add_credentials(shop: Shop) -> None:
    for number in range(3):
        body = {
            "name": shop.name(f"Ticket system {number}"),
            "type": "bearer_token",
            "secrets": {"token": "planted"},
            "description": hostile.MARKDOWN[:2000],
            "metadata": {"allowed_hosts": ["hooks.example.com"], hostile.HTML[:60]: hostile.HTML},
        }
        shop.ids["credential"] = (await shop.create("/v1/credentials", body))["id"]
    path = f"/v1/credentials/{shop.ids['credential']}/access"
    body = {"integration_type": "tool", "integration_id": shop.ids["hook"]}
    await shop.create(path, body)


async def _add_conversations(shop: Shop) -> None:
    talk = shop.talk
    visitor = {"id": hostile.HTML[:150], "name": shop.name("Ada"), "email": hostile.HTML[:100]}
    kinds: tuple[dict[str, Any], ...] = (
        {"source": "openai"},
        {"ratings_up": 2},
        {"ratings_down": 1, "failed_answers": 3},
        {"source": "preview"},
    )
    for number, fields in enumerate(kinds):
        title = shop.name(f"Conversation {number}", 200)
        await add_conversation(talk, title, minutes=number * 900, visitor=visitor, **fields)
    conversation_id = await add_conversation(talk, shop.name("Opening hours", 200), visitor=visitor)
    shop.ids["conversation"] = conversation_id
    await add_messages(talk, conversation_id, 3)
    source = {"document_name": hostile.HTML, "chunk_preview": hostile.HTML, "relevance_score": 0.8}
    call = {"tool": hostile.HTML[:90], "input": {hostile.HTML: 1}, "output": hostile.HTML}
    more = {
        "sources": [source],
        "attachments": [{"id": "a", "name": hostile.HTML, "size_bytes": 1}],
    }
    await add_turn(talk, conversation_id, "w" * 200, hostile.MARKDOWN, call=call, **more)
    failure = {"code": "model_unavailable", "message": hostile.HTML}
    await add_turn(talk, conversation_id, hostile.NAMES[2], "", error=failure)
    talk.script(Reply(texts=["We open at **nine**.\n\n- on weekdays\n- on Saturdays"]))
    reply = await talk.say("When do you open?")
    messages = f"/api/v1/conversations/{reply['conversation_id']}/messages"
    feedback = {"rating": "down", "comment": hostile.HTML}
    await shop.create(f"{messages}/{reply['message']['id']}/feedback", feedback)
    view = {"kind": "conversations", "filters": {"failed": "true"}, "is_shared": True}
    for start in ("What failed", "Mine"):
        await shop.create("/api/v1/views", {**view, "name": shop.name(start)})


async def _add_people(shop: Shop) -> None:
    world, tenant_id = shop.talk.world, shop.owner.tenant_id
    for role in ("tenant_admin", "agent_developer", "agent_user", "viewer"):
        user = await world.user(role, tenant_id)
        await run_sql(shop.services, _NAME_USER, user.user_id, shop.name("Ada", 60), "w" * 60)
        shop.ids["user"] = user.user_id
    await run_sql(shop.services, _NAME_USER, shop.owner.user_id, hostile.HTML[:90], "Owner")
    await run_sql(shop.services, _NAME_TENANT, tenant_id, shop.name("Acme"))
    for number in range(2):
        await invite(shop.owner, f"{'w' * 50}.{number}.{tenant_id[-8:]}@{'w' * 60}.example.com")


async def _add_usage(shop: Shop) -> None:
    for day in range(28):
        for number, model in enumerate((hostile.HTML[:150], "local/smollm2", hostile.NAMES[1])):
            tokens = (9_000 * (day % 7 + 1) // (number + 1), 1_000)
            at = clock.now() - timedelta(days=day, hours=1)
            await add_usage(
                shop.services,
                shop.owner.tenant_id,
                model=model,
                tokens=tokens,
                cost=f"{tokens[0] / 50_000:.2f}",
                agent_id=shop.talk.agent_id,
                conversations=3,
                at=at,
            )
    await add_count(shop.services, shop.owner.tenant_id)


async def _add_settings(shop: Shop) -> None:
    await give_key(shop.owner, shop.talk.models, "openai")
    key = {"provider": "anthropic", "api_key": "sk-ant-0123456789"}
    await shop.create("/api/v1/api-keys", {**key, "name": shop.name("Ours")})
    for role in ("agent_developer", "viewer"):
        await create_key(shop.owner, role, name=shop.name("Import"))
    tenant_id = shop.owner.tenant_id
    await add_dead_work(shop.services, tenant_id, RETRYABLE, hostile.HTML)
    shop.ids["work"] = await add_dead_work(shop.services, tenant_id, NOT_RETRYABLE, "w" * 300)
