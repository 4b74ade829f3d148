"""Users with MFA, and the clock of their authenticators."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.identity.mfa.api_calls import open_session, turn_on_mfa
from tests.identity.mfa.authenticators import FrozenClock, MfaUser
from tests.world import Client, World


@pytest.fixture
def frozen_clock() -> Iterator[FrozenClock]:
    with ExitStack() as stack:
        yield FrozenClock(stack)


@pytest.fixture
async def mfa_user(developer: Client, frozen_clock: FrozenClock) -> MfaUser:
    return await turn_on_mfa(developer, frozen_clock)


@pytest.fixture
async def user_and_old_session(
    world: World, developer: Client, frozen_clock: FrozenClock
) -> tuple[MfaUser, Client]:
    """A user with MFA enabled, and a session of theirs that was opened before MFA."""
    other = await open_session(world, developer)
    return await turn_on_mfa(developer, frozen_clock), other


@pytest.fixture
async def user_and_admin(mfa_user: MfaUser, world: World) -> tuple[MfaUser, Client]:
    """A user with MFA enabled, and an administrator of their tenant."""
    return mfa_user, await world.user("tenant_admin", mfa_user.client.tenant_id)
