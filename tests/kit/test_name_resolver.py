"""Looking up names: one domain whose nameserver never answers is in nobody's way."""

import asyncio
import socket
import threading
from typing import Any

import pytest

from app.kit import egress_guard
from app.kit.egress_guard import NameResolver


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Names under `slow.test` are not found before this is set."""
    released, real = threading.Event(), socket.getaddrinfo

    def look(host: str, port: int, *rest: Any, **more: Any) -> Any:
        if host.endswith("slow.test"):
            released.wait(30)
            raise socket.gaierror("nobody knows")
        return real(host, port, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", look)
    yield released
    released.set()


async def test_others_names_are_found_meanwhile(
    monkeypatch: pytest.MonkeyPatch, stuck: threading.Event
) -> None:
    names = NameResolver()
    hanging = [asyncio.create_task(names.resolve(f"h{n}.slow.test", 80)) for n in range(150)]
    await asyncio.sleep(0)
    assert await names.resolve("localhost", 80)
    stuck.set()
    outcomes = await asyncio.gather(*hanging, return_exceptions=True)
    assert all(isinstance(outcome, OSError) for outcome in outcomes)


async def test_who_gives_up_waiting_leaves_no_trace(
    monkeypatch: pytest.MonkeyPatch, stuck: threading.Event
) -> None:
    monkeypatch.setattr(egress_guard, "LOOKUP_SECONDS", 0.05)
    names = NameResolver()
    asked = [names.resolve(f"h{n}.slow.test", 80) for n in range(20)]
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert all("in time" in str(outcome) for outcome in outcomes)
    stuck.set()
    monkeypatch.undo()
    assert await names.resolve("localhost", 80)


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
def test_a_domain_is_what_somebody_registered(host: str, domain: str) -> None:
    assert egress_guard._registered_domain(host) == domain
