"""Visitors who are signed in at the customer's site."""

import jwt
from playwright.async_api import Browser, expect

from app.kit import clock
from tests.browser.widget.shop import Shop
from tests.model_server import Reply


def _sign(shop: Shop, secret: str | None = None, **claims: str) -> str:
    payload = {"exp": int(clock.epoch()) + 600, **claims}
    return jwt.encode(payload, secret or shop.key["identity_secret"], algorithm="HS256")


async def test_a_conversation_follows_a_customer_to_another_device(
    shop: Shop, browser: Browser
) -> None:
    await shop.create_key(require_user_token=True)
    shop.talk.script(Reply(texts=["Your order is on its way."]))
    token = _sign(shop, sub="customer-7", name="Ada")
    await shop.open_chat(user_token=token, greeting="Hello {name}!")
    await expect(shop.messages).to_contain_text("Hello Ada!")
    await shop.ask("Where is my order?", "Your order is on its way.")
    await expect(shop.button("Start a new conversation")).to_have_count(0)
    context = await browser.new_context()
    other = Shop(await context.new_page(), shop.site, shop.server, shop.talk)
    other.key = shop.key
    await other.open_chat(user_token=_sign(shop, sub="customer-7"))
    await expect(other.replies.last).to_contain_text("Your order is on its way.")
    await other.page.evaluate("(token) => Parley.identify(token)", _sign(shop, sub="customer-8"))
    await expect(other.replies).to_have_count(0)
    await expect(other.questions).to_have_count(0)
    await context.close()


async def test_a_forged_user_token_is_refused(shop: Shop) -> None:
    await shop.create_key(require_user_token=True)
    await shop.open_page(user_token=_sign(shop, "not-the-secret-of-this-key-0123456789", sub="x"))
    await shop.launcher.click()
    await expect(shop.notice).to_have_text("Sign in on this page to use the chat.")
