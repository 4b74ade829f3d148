from collections.abc import AsyncIterator

import pytest

from tests.chat.stream_helpers import SilentModel


@pytest.fixture
async def silent() -> AsyncIterator[SilentModel]:
    made = SilentModel()
    await made.start()
    yield made
    await made.close()
