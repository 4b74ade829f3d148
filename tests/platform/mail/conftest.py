from collections.abc import AsyncIterator

import pytest

from tests.platform.mail.inbox import Inbox, run_smtp_server


@pytest.fixture
async def inbox() -> AsyncIterator[Inbox]:
    async with run_smtp_server() as running_inbox:
        yield running_inbox
