"""Customers who are signed in at a shop."""

import jwt

from app.kit import clock
from tests.browser.widget.shop import Shop


def sign(shop: Shop, secret: str | None = None, **claims: str) -> str:
    """Returns the token that the server of the shop gives to a customer."""
    payload = {"exp": int(clock.epoch()) + 600, **claims}
    return jwt.encode(payload, secret or shop.key["identity_secret"], algorithm="HS256")
