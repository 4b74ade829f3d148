"""A refresh token that is used again after the grace period."""

import httpx
import msgspec

from app.kit import clock
from tests.identity.accounts.api_calls import Pair, refresh_pair, refresh_tokens
from tests.identity.accounts.records import add_seconds
from tests.world import Client


class ReplayedSession(msgspec.Struct):
    """A session whose first refresh token was replayed, and the response to the replay."""

    user: Client
    pair: Pair
    answer: httpx.Response


async def replay_refresh_token(caller: Client, user: Client) -> ReplayedSession:
    past = add_seconds(clock.now(), -60)
    with clock.frozen(past):
        pair = await refresh_pair(caller, user.refresh_token)
    with clock.frozen(add_seconds(past, 10.1)):
        answer = await refresh_tokens(caller, user.refresh_token)
    return ReplayedSession(user, pair, answer)
