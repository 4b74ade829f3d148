"""Texts of models, agents and sites that are hostile."""

import msgspec
from playwright.async_api import Route, expect

from app.domain.sources import SourceView
from tests.browser import hostile, screenshots
from tests.browser.widget.shop import Shop
from tests.model_server import Reply
from tests.scripted_agents import talker

STRICT = "default-src 'none'; script-src {0}; connect-src {0}"


async def test_no_text_of_a_model_runs_or_loads_anything(shop: Shop) -> None:
    texts = [hostile.MARKDOWN[start : start + 7] for start in range(0, len(hostile.MARKDOWN), 7)]
    shop.talk.script(Reply(texts=[*texts, "\n\nThe end."]))
    await shop.open_chat()
    await shop.ask(hostile.HTML, "The end.")
    own = (shop.site.url, shop.server.url)
    assert await hostile.find_harm(shop.page, shop.requested_urls, *own) == []
    body = shop.replies.last
    await expect(
        body.locator("img, script, iframe, style, link, form, svg:not(.icon)")
    ).to_have_count(0)
    addresses = await body.locator("a").evaluate_all("links => links.map((link) => link.href)")
    assert {address.split(":")[0] for address in addresses} <= {"https", "http"}
    for link in await body.locator("a").all():
        assert await link.get_attribute("rel") == "noopener noreferrer nofollow"
    await screenshots.take(shop.page, "widget-hostile")
    await shop.page.reload()
    await expect(shop.replies.last).to_contain_text("The end.")
    assert await hostile.find_harm(shop.page, shop.requested_urls, *own) == []


async def test_no_name_or_attribute_runs_or_loads_anything(shop: Shop) -> None:
    shop.talk = await talker(
        shop.talk.world, shop.talk.models, client=shop.talk.client, name=hostile.HTML[:100]
    )
    await shop.open_chat(
        greeting=hostile.MARKDOWN,
        suggestions=hostile.HTML,
        launcher_text="<img src=x onerror='window.hacked = 1'>",
        placeholder=hostile.HTML,
        note=hostile.HTML,
        color="red;background:url(https://evil.example.net)",
        lang='"><script>window.hacked = 1</script>',
        text_send=hostile.HTML,
    )
    own = (shop.site.url, shop.server.url)
    assert await hostile.find_harm(shop.page, shop.requested_urls, *own) == []


async def test_no_text_of_a_source_runs_or_loads_anything(shop: Shop) -> None:
    places = {"heading": hostile.HTML, "page": "<b>3</b>", "row": 1.5, "number": 1}
    sources = [
        SourceView(hostile.HTML, hostile.HTML, 0.9, places),
        SourceView("page", "text", 0.8, {"url": "javascript:window.hacked = 1", "number": 2}),
    ]

    async def add_sources(route: Route) -> None:
        answer = await route.fetch()
        encoded = msgspec.json.encode(sources).decode()
        text = (await answer.text()).replace('"sources":[]', f'"sources":{encoded}')
        await route.fulfill(response=answer, body=text)

    await shop.page.route("**/chat/stream", add_sources)
    shop.talk.script(Reply(texts=["See [1] and [2]."]))
    await shop.open_chat()
    await shop.ask("Hi", "See")
    for number in (1, 2):
        await shop.button(f"Source {number}").click()
        await expect(shop.replies.last.locator(".passage")).to_be_visible()
    await expect(shop.replies.last.locator("a")).to_have_count(0)
    own = (shop.site.url, shop.server.url)
    assert await hostile.find_harm(shop.page, shop.requested_urls, *own) == []


async def test_a_strict_policy_needs_only_our_origin_and_the_page_has_one_new_global(
    shop: Shop,
) -> None:
    lines: list[str] = []
    shop.page.on("console", lambda message: lines.append(message.text))
    shop.site.policy = STRICT.format(shop.server.url)
    await shop.site_without_widget()
    before = set(await shop.page.evaluate("Object.getOwnPropertyNames(window)"))
    await shop.open_chat(color="#b45309")
    await shop.ask("Hi", "Hello there")
    assert [line for line in lines if "favicon" not in line] == []
    after = set(await shop.page.evaluate("Object.getOwnPropertyNames(window)"))
    assert {name for name in after - before if not name.isdigit()} == {"Parley"}
