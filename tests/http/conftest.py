"""An application with settings and routes of its own."""

from collections.abc import AsyncIterator

import msgspec
import pytest
from litestar import Litestar

from app.main import create_app
from tests.stores import Stores

ANONYMOUS_PER_MINUTE = 60


@pytest.fixture(scope="session")
async def changed_app(stores: Stores) -> AsyncIterator[Litestar]:
    """One for all tests of settings and routes that the application of all tests does not have:
    half a second each. Its lifespan does not run.
    """
    from tests.http import test_disconnects, test_secrets_in_logs  # noqa: PLC0415  # collected first

    settings = msgspec.structs.replace(
        stores.settings,
        anonymous_per_minute=ANONYMOUS_PER_MINUTE,
        body_memory_mb=16,
        metrics_address=f"{stores.settings.host}:{stores.settings.port}",
        trusted_proxies=("10.0.0.0/8",),
    )
    app = create_app(settings, routes=[*test_disconnects.ROUTES, test_secrets_in_logs.fail])
    yield app
    await app.state.services.close()
