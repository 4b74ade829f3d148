"""Name resolution: a domain whose nameserver never answers does not delay others."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from app.kit import egress_guard
from app.kit.egress_guard import NameResolver


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """An event; names under `slow.test` do not resolve before it is set."""
    event, real = threading.Event(), socket.getaddrinfo

    def look_up(host: str, port: int, *rest: Any, **more: Any) -> Any:
        if host.endswith("slow.test"):
            event.wait(30)
            raise socket.gaierror("unknown name")
        return real(host, port, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    yield event
    event.set()


async def test_names_of_other_domains_resolve_meanwhile(release: threading.Event) -> None:
    resolver = NameResolver()
    tasks = [asyncio.create_task(resolver.resolve(f"h{n}.slow.test", 80)) for n in range(150)]
    await asyncio.sleep(0)
    assert await resolver.resolve("localhost", 80)
    release.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(outcome, OSError) for outcome in outcomes)


async def test_a_lookup_that_times_out_blocks_no_later_one(
    monkeypatch: pytest.MonkeyPatch, release: threading.Event
) -> None:
    monkeypatch.setattr(egress_guard, "LOOKUP_SECONDS", 0.05)
    resolver = NameResolver()
    lookups = [resolver.resolve(f"h{n}.slow.test", 80) for n in range(20)]
    outcomes = await asyncio.gather(*lookups, return_exceptions=True)
    assert all("in time" in str(outcome) for outcome in outcomes)
    release.set()
    monkeypatch.undo()
    assert await resolver.resolve("localhost", 80)


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("a.b.example.com", "example.com"),
        ("a.shop.co.uk", "shop.co.uk"),
        ("other.co.uk", "other.co.uk"),
        ("localhost", "localhost"),
        ("EXAMPLE.com.", "example.com"),
        ("a.example.de", "example.de"),
    ],
)
def test_the_registered_domain_of_a_host(host: str, domain: str) -> None:
    assert egress_guard._registered_domain(host) == domain
