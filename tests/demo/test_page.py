"""The page of the demo: what it embeds, and its headers."""

import re

from app.demo import service, shop
from tests.demo.instance import Instance
from tests.model_server import ModelServer, Reply
from tests.scripted_agents import PROVIDER, give_key
from tests.world import Client


async def test_there_is_no_page_without_the_setting(anonymous: Client) -> None:
    assert (await anonymous.get("/demo")).status_code == 404


async def test_the_page_waits_until_the_demo_is_created(instance: Instance) -> None:
    page = await instance.visitor.get("/demo")
    assert (page.status_code, page.headers["retry-after"]) == (503, "1")
    assert "preparing the demo" in page.text
    await service.ensure(instance.services)
    page = await instance.visitor.get("/demo")
    assert page.status_code == 200
    assert shop.NAME in page.text


async def test_the_page_allows_only_its_own_scripts_and_frames(instance: Instance) -> None:
    await service.ensure(instance.services)
    page = await instance.visitor.get("/demo")
    policy = dict(
        part.strip().split(" ", 1) for part in page.headers["content-security-policy"].split(";")
    )
    names = ("script-src", "style-src", "connect-src", "frame-src")
    assert policy["default-src"] == "'none'"
    assert {policy[name] for name in names} == {"'self'"}
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=|<style", page.text)
    addresses = re.findall(r'\b(?:src|href)="([^"]+)"', page.text)
    assert [address for address in addresses if not re.match(r"/(?!/)|#", address)] == []
    assert "x-ratelimit-limit" in page.headers


async def test_the_key_of_the_page_chats_from_the_own_origin_only(
    instance: Instance, models: ModelServer
) -> None:
    await service.ensure(instance.services)
    operator = await instance.operator()
    await give_key(operator, models)
    agent_id = (await instance.scripts())["/embed/widget.js"]["data-agent-id"]
    body = {"primary_model": f"{PROVIDER}/demo"}
    assert (await operator.put(f"/api/v1/agents/{agent_id}", body)).is_success
    models.script("demo", Reply(texts=["The shop opens at ten."]))
    answer = await instance.chat("When do you open?")
    assert answer.json()["assistant_reply"]["content"] == "The shop opens at ten."
    for origin in ("https://other.example.com", "http://parley.example.com"):
        assert (await instance.chat("Hello", origin=origin)).status_code == 403
    assert (await instance.open_session()).is_success
    assert (await instance.open_session(origin="https://other.example.com")).status_code == 403


async def test_the_page_leaves_out_what_is_deleted_or_not_published(instance: Instance) -> None:
    await service.ensure(instance.services)
    operator = await instance.operator()
    both = ["/embed/form.js", "/embed/widget.js"]
    assert sorted(await instance.scripts()) == both
    (form,) = (await operator.get("/api/v1/forms")).json()["data"]
    assert (await operator.post(f"/api/v1/forms/{form['id']}/unpublish")).is_success
    assert list(await instance.scripts()) == ["/embed/widget.js"]
    assert "#contact" not in (await instance.visitor.get("/demo")).text
    assert (await operator.post(f"/api/v1/forms/{form['id']}/publish")).is_success
    agent_id = (await instance.scripts())["/embed/widget.js"]["data-agent-id"]
    assert (await operator.put(f"/api/v1/agents/{agent_id}", {"status": "draft"})).is_success
    assert list(await instance.scripts()) == ["/embed/form.js"]


async def test_the_page_names_the_prices_of_the_documents(instance: Instance) -> None:
    """What the agent answers and what the page says must agree."""
    await service.ensure(instance.services)
    page = (await instance.visitor.get("/demo")).text
    text = "".join(path.read_text(encoding="utf-8") for path in shop.DOCUMENTS.glob("*.md"))
    products = dict(re.findall(r"<h3>([^<]+)</h3>.*?€(\d+)", page))
    assert len(products) == 6
    for name, price in products.items():
        assert f"The {name} costs €{price}." in text
