from collections.abc import AsyncIterator

import pytest

from tests.chat.stream_helpers import SilentModel


@pytest.fixture
async def silent() -> AsyncIterator[SilentModel]:
    model = SilentModel()
    await model.start()
    yield model
    await model.close()
