"""Nothing but the database is waited for while a connection is held."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from app.domain.agents.llm.gateway import Models
from app.domain.agents.llm.protocol import Target
from app.jobs import background
from app.kit import logs
from app.net import databases, smtp
from app.net.smtp import SmtpServer
from app.observe import transaction_waits
from app.observe.metrics import WAITED_IN_TRANSACTION
from app.sandbox import child_process
from app.sandbox.child_process import Limits
from app.sandbox.program import Program
from app.security import passwords
from app.services import Services
from app.settings import LogFormat
from app.templating.expressions import Expressions
from db import connection_use
from db.connection_use import WaitedInTransaction
from db.session import ALL_TENANTS


@pytest.fixture(autouse=True)
def _count() -> Iterator[None]:
    """As in a request or a job."""
    connections = connection_use.begin()
    yield
    connection_use.end(connections)


async def _open_smtp(services: Services) -> None:
    server = SmtpServer(host="127.0.0.1", port=25, tls="none")
    async with smtp.connect(server, guard=services.egress.guard, timeout_seconds=1):
        pass


async def _open_database(services: Services) -> None:
    login = databases.Login(
        engine="postgresql", host="127.0.0.1", database="d", username="u", password="p"
    )
    async with databases.postgres(services.egress.guard, login, 1):
        pass


_WAYS: dict[str, Callable[[Services], Awaitable[object]]] = {
    "a server": lambda s: s.egress.request("GET", "https://example.com/"),
    "a nameserver": lambda s: s.egress.guard.resolve_host("example.com", 443),
    "a child process": lambda _: child_process.run(
        Path("x.py"), b"", limits=Limits(seconds=1, cpu_seconds=1)
    ),
    "a process for expressions": lambda s: s.get(Expressions).render("{{ 1 }}", {}, group="a"),
    "user code": lambda s: s.sandbox.run(
        Program(language="python", files={"main.py": ""}, entry="main.py"), b"", 1
    ),
    "a file store": lambda s: s.files.put("key", b""),
    "a hashing thread": lambda _: passwords.hash_password("Correct7Horse"),
    "a worker": lambda s: s.doorbell.wait_for_done("wrk_1", 0.1),
    "a model": lambda s: s.get(Models).check(Target("local/smollm2", "local")),
    "a mail server": _open_smtp,
    "a database of a tenant": _open_database,
}


async def test_every_way_out_is_closed_while_a_connection_is_held(
    services: Services, subtests: pytest.Subtests
) -> None:
    for what, wait in _WAYS.items():
        with subtests.test(what):
            async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
                await tx.raw()
                with pytest.raises(WaitedInTransaction, match=what):
                    await wait(services)


async def test_the_ways_are_open_again_when_the_transaction_ends(services: Services) -> None:
    for end in ("commit", "rollback"):
        tx = services.db.begin(ALL_TENANTS)
        await tx.raw()
        await (tx.commit() if end == "commit" else tx.rollback())
        connection_use.check_wait("a server")


async def test_child_tasks_belong_to_the_transaction_and_background_tasks_do_not(
    services: Services,
) -> None:
    async def wait() -> None:
        connection_use.check_wait("a server")

    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        await tx.raw()
        with pytest.raises(WaitedInTransaction):
            await asyncio.gather(wait())
        await background.spawn(wait())


async def test_a_wait_is_counted_where_users_are_served(
    services: Services, capsys: pytest.CaptureFixture[str], subtests: pytest.Subtests
) -> None:
    cases: list[LogFormat] = ["console", "json"]
    for log_format in cases:
        with subtests.test(log_format=log_format):
            logs.configure("warning", log_format)
            transaction_waits._logged_at.clear()
            counter = WAITED_IN_TRANSACTION.labels("a server")
            before = counter._value.get()
            transaction_waits.count()
            try:
                async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
                    await tx.raw()
                    connection_use.check_wait("a server")
            finally:
                connection_use.report_to(connection_use.refuse)
                logs.configure("warning", "json")
            assert counter._value.get() == before + 1
            assert "a database connection was held during a wait" in "".join(capsys.readouterr())
