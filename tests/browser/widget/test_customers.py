"""Visitors who are signed in at the customer's site."""

from playwright.async_api import Browser, expect

from tests.browser.widget.customers import sign
from tests.browser.widget.shop import Shop
from tests.model_server import Reply


async def test_a_conversation_follows_a_customer_to_another_device(
    shop: Shop, browser: Browser
) -> None:
    await shop.create_key(require_user_token=True)
    shop.talk.script(Reply(texts=["Your order is on its way."]))
    token = sign(shop, sub="customer-7", name="Ada")
    await shop.open_chat(user_token=token, greeting="Hello {name}!")
    await expect(shop.messages).to_contain_text("Hello Ada!")
    await shop.ask("Where is my order?", "Your order is on its way.")
    context = await browser.new_context()
    other = Shop(await context.new_page(), shop.site, shop.server, shop.talk)
    other.key = shop.key
    await other.open_chat(user_token=sign(shop, sub="customer-7"))
    await expect(other.replies.last).to_contain_text("Your order is on its way.")
    await other.page.evaluate("(token) => Parley.identify(token)", sign(shop, sub="customer-8"))
    await expect(other.replies).to_have_count(0)
    await expect(other.questions).to_have_count(0)
    await context.close()


async def test_a_customer_begins_a_new_conversation_and_finds_the_earlier_one_on_another_device(
    shop: Shop, browser: Browser
) -> None:
    await shop.create_key(require_user_token=True)
    shop.talk.script(Reply(texts=["It is on its way."]), Reply(texts=["By post."]))
    await shop.open_chat(user_token=sign(shop, sub="customer-7"))
    await expect(shop.button("Start a new conversation")).to_be_hidden()
    await shop.ask("Where is my order?", "It is on its way.")
    await expect(shop.button("Earlier conversations")).to_be_hidden()
    await shop.button("Start a new conversation").click()
    await expect(shop.questions).to_have_count(0)
    await shop.ask("How do I get my invoice?", "By post.")
    await expect(shop.questions).to_have_count(1)
    context = await browser.new_context()
    other = Shop(await context.new_page(), shop.site, shop.server, shop.talk)
    other.key = shop.key
    await other.open_chat(user_token=sign(shop, sub="customer-7"))
    await expect(other.replies.last).to_contain_text("By post.")
    await other.button("Earlier conversations").click()
    await expect(other.panel.locator(".entry")).to_have_count(1)
    await other.panel.get_by_role("button", name="Where is my order?").click()
    await expect(other.replies.last).to_contain_text("It is on its way.")
    await expect(other.questions).to_have_text(["Where is my order?"])
    await context.close()


async def test_a_forged_user_token_is_refused(shop: Shop) -> None:
    await shop.create_key(require_user_token=True)
    await shop.open_page(user_token=sign(shop, "not-the-secret-of-this-key-0123456789", sub="x"))
    await shop.launcher.click()
    await expect(shop.notice).to_have_text("Sign in on this page to use the chat.")
