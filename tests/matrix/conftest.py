from collections.abc import Iterator

import pytest

from app.domain.messaging.notifications import feed
from app.domain.platform.events import live


@pytest.fixture(autouse=True, scope="module")
def _short_streams() -> Iterator[None]:
    """The client here waits for the end of every response."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (feed, live):
            patch.setattr(module, "STREAM_SECONDS", 0.0)
        yield
