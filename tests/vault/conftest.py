from collections.abc import AsyncIterator

import pytest

from tests.vault.servers import (
    DatabaseServer,
    MailServer,
    ShellServer,
    TokenServer,
    mail_server,
    shell_server,
)


@pytest.fixture
async def tokens() -> AsyncIterator[TokenServer]:
    server = TokenServer()
    await server.start()
    yield server
    server.open.set()
    await server.close()


@pytest.fixture(scope="session")
async def database() -> AsyncIterator[DatabaseServer]:
    server = DatabaseServer()
    try:
        await server.start()
        yield server
    finally:
        server.close()


@pytest.fixture
async def mail() -> AsyncIterator[MailServer]:
    async with mail_server() as server:
        yield server


@pytest.fixture(scope="session")
async def shell() -> AsyncIterator[ShellServer]:
    async with shell_server() as server:
        yield server
