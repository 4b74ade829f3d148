"""Refresh tokens that are refused."""

import base64
import json
import time
from collections.abc import Callable
from typing import Any

import jwt
import pytest

from app.kit.ids import new_id
from app.services import Services
from tests.identity.accounts.api_calls import refresh_pair, refresh_tokens
from tests.identity.accounts.records import execute, read_sessions
from tests.world import Client, World

REMOVALS = {
    "an ended session": "UPDATE sessions SET ended_at = now() WHERE user_id = $1",
    "an expired session": (
        "UPDATE sessions SET expires_at = now() - interval '1 second' WHERE user_id = $1"
    ),
    "a deleted session": "DELETE FROM sessions WHERE user_id = $1",
    "an inactive user": "UPDATE users SET status = 'inactive' WHERE id = $1",
    "a deleted user": "DELETE FROM users WHERE id = $1",
}


async def test_the_refresh_token_of_a_removed_session_or_user_is_refused(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    for removal, sql in REMOVALS.items():
        anonymous = world.anonymous()
        developer = await world.user()
        with subtests.test(removal=removal):
            await execute(services, sql, developer.user_id)
            answer = await refresh_tokens(anonymous, developer.refresh_token)
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")


async def test_a_repeat_after_a_removal_is_refused(
    world: World, services: Services, subtests: pytest.Subtests
) -> None:
    """The same holds within the ten seconds of the grace period."""
    for removal, sql in REMOVALS.items():
        anonymous = world.anonymous()
        developer = await world.user()
        with subtests.test(removal=removal):
            await refresh_pair(anonymous, developer.refresh_token)
            await execute(services, sql, developer.user_id)
            assert (await refresh_tokens(anonymous, developer.refresh_token)).status_code == 401


def _encode_part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


class Forger:
    """Signs tokens with the real key and the claims of a real refresh token."""

    def __init__(self, services: Services, user: Client) -> None:
        self.user = user
        self.kid = services.keyring.active
        self.key = services.keyring.derive(self.kid, "jwt", "")
        self.claims: dict[str, Any] = jwt.decode(
            user.refresh_token, options={"verify_signature": False}
        )

    def sign(self, key: bytes | None = None, **changes: object) -> str:
        headers = {"kid": self.kid}
        claims = {**self.claims, **changes}
        return jwt.encode(claims, key or self.key, algorithm="HS256", headers=headers)

    def build_unsigned(self) -> str:
        header = {"alg": "none", "typ": "JWT", "kid": self.kid}
        return f"{_encode_part(header)}.{_encode_part(self.claims)}."


@pytest.fixture
async def forger(services: Services, developer: Client) -> Forger:
    return Forger(services, developer)


BAD_TOKENS: dict[str, tuple[int, Callable[[Forger], object]]] = {
    "the access token": (401, lambda f: f.user.token),
    "alg none": (401, Forger.build_unsigned),
    "another key": (401, lambda f: f.sign(b"x" * 32)),
    "expired": (401, lambda f: f.sign(exp=int(time.time()) - 1)),
    "no such type": (401, lambda f: f.sign(typ="mfa")),
    "another user's": (401, lambda f: f.sign(sub=new_id("usr"))),
    "another tenant's": (401, lambda f: f.sign(tid=new_id("ten"))),
    "another session's": (401, lambda f: f.sign(sid=new_id("ses"))),
    "no session": (401, lambda f: f.sign(sid=None)),
    "tampered": (401, lambda f: f.user.refresh_token[:-6] + "AAAAAA"),
    "cut short": (401, lambda f: f.user.refresh_token[:-4]),
    "with the scheme before it": (401, lambda f: f"Bearer {f.user.refresh_token}"),
    "with a space after it": (401, lambda f: f"{f.user.refresh_token} "),
    "garbage": (401, lambda _: "garbage"),
    "dots": (401, lambda _: "..."),
    "not ASCII": (401, lambda _: "t\xf6ken"),
    "long": (401, lambda _: "x" * 4096),
    "oversized": (422, lambda _: "x" * 4097),
    "oversized, of the right form": (422, lambda f: f.sign(more="x" * 4096)),
    "empty": (422, lambda _: ""),
    "null": (422, lambda _: None),
    "a number": (422, lambda _: 5),
    "a list": (422, lambda f: [f.user.refresh_token]),
    "an object": (422, lambda f: {"token": f.user.refresh_token}),
}


async def test_a_correctly_signed_refresh_token_is_accepted(
    anonymous: Client, forger: Forger
) -> None:
    """Proves that the tokens below are refused for their defect, not for how they are built."""
    assert (await refresh_tokens(anonymous, forger.sign())).status_code == 200


async def test_a_bad_refresh_token_is_refused_and_changes_no_session(
    world: World, forger: Forger, services: Services, subtests: pytest.Subtests
) -> None:
    before = await read_sessions(services, forger.user)
    for name, (status, build) in BAD_TOKENS.items():
        with subtests.test(name):
            answer = await refresh_tokens(world.anonymous(), build(forger))
            error = answer.json()["error"]
            code = {401: "unauthorized", 422: "validation_error"}[status]
            assert (answer.status_code, error["code"]) == (status, code)
            assert await read_sessions(services, forger.user) == before
            if status == 422:
                assert set(error["details"]) == {"refresh_token"}


async def test_a_refresh_without_a_token_is_422(anonymous: Client) -> None:
    answer = await anonymous.post("/auth/refresh", {})
    assert answer.status_code == 422
    assert answer.json()["error"]["details"] == {"refresh_token": "is required"}
