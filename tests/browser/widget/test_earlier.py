"""Earlier conversations, the greeting and the note about the AI."""

from playwright.async_api import expect

from tests.browser import looks, screenshots
from tests.browser.widget.shop import Shop
from tests.model_server import Reply

_AI_NOTICE = "You are talking to an AI. Answers can be wrong."


async def test_an_earlier_conversation_can_be_read_and_continued(shop: Shop) -> None:
    shop.talk.script(*(Reply(texts=[text]) for text in ("One.", "Two.", "Three.")))
    await shop.open_chat()
    earlier = shop.button("Earlier conversations")
    await expect(earlier).to_be_hidden()
    await shop.ask("The first question", "One.")
    await expect(earlier).to_be_hidden()
    await shop.button("Start a new conversation").click()
    await expect(shop.questions).to_have_count(0)
    await expect(earlier).to_be_visible()
    await shop.ask("<b>Another</b>", "Two.")
    await earlier.click()
    entries = shop.panel.get_by_role("list").get_by_role("button")
    await expect(entries).to_contain_text(["The first question"])
    assert await looks.find_problems(shop.page, "widget-earlier", 1280, 360) == []
    await shop.page.keyboard.press("Escape")
    await expect(shop.input).to_be_focused()
    await earlier.press("Enter")
    await expect(shop.button("Back to the conversation")).to_be_focused()
    await shop.page.keyboard.press("Tab")
    await shop.page.keyboard.press("Enter")
    await expect(shop.questions).to_have_text(["The first question"])
    await expect(shop.replies).to_contain_text(["One."])
    await shop.ask("And then?", "Three.")
    asked = [item["content"] for item in shop.talk.asked[-1]["messages"] if item["role"] == "user"]
    assert asked == ["The first question", "And then?"]
    await shop.page.reload()
    await expect(shop.questions).to_have_text(["The first question", "And then?"])
    await earlier.click()
    await expect(entries).to_contain_text(["<b>Another</b>"])


async def test_conversations_of_more_than_ninety_days_ago_are_not_listed(shop: Shop) -> None:
    await shop.open_chat()
    await shop.ask("Hi", "Hello there")
    fill = """(agent) => {
        const key = `parley:${agent}:conversations`;
        const day = 24 * 3600 * 1000;
        const items = [89, 91].map((days) => (
            { id: "vis_" + days, title: `${days} days`, at: Date.now() - days * day }
        ));
        localStorage.setItem(key, JSON.stringify(items));
    }"""
    await shop.page.evaluate(fill, shop.talk.agent_id)
    await shop.page.reload()
    await shop.button("Earlier conversations").click()
    entries = shop.panel.get_by_role("list").get_by_role("button")
    await expect(entries).to_contain_text(["89 days"])
    await screenshots.take(shop.page, "widget-earlier")


async def test_a_panel_greets_and_says_that_it_is_an_ai(shop: Shop) -> None:
    await shop.open_chat()
    await expect(shop.messages).to_contain_text("Hello! How can I help you?")
    await expect(shop.panel.get_by_text(_AI_NOTICE)).to_be_visible()
    await shop.open_page(greeting="Welcome!", note="Answers of an AI.")
    await expect(shop.messages).to_contain_text("Welcome!")
    await expect(shop.panel.get_by_text("Answers of an AI.")).to_be_visible()
    await expect(shop.panel.get_by_text(_AI_NOTICE)).to_have_count(0)
    await shop.open_page(ai_notice="off")
    await expect(shop.messages).to_contain_text("Hello! How can I help you?")
    await expect(shop.panel.get_by_text(_AI_NOTICE)).to_have_count(0)
