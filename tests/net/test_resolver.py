"""Name resolution: kinds of names, errors, and one tenant's slow names beside those of others."""

import asyncio
import contextvars
import socket
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

import pytest

from app.kit import trace
from app.kit.trace import Trace
from app.net import resolver as name_resolver
from app.net.guard import EgressError, Guard
from app.net.resolver import NameNotFound, NameResolver
from tests.assertions import until
from tests.net.dns_server import DnsServer, run_dns_server

TASKS, FILES = Path("/proc/self/task"), Path("/proc/self/fd")
SHARE = name_resolver._MAX_LOOKUPS_PER_TENANT


@pytest.fixture
async def dns() -> AsyncIterator[DnsServer]:
    async with run_dns_server() as server:
        server.addresses["fast.test"] = ["192.0.2.1", "2001:db8::1"]
        yield server


@pytest.fixture
async def resolver(dns: DnsServer) -> AsyncIterator[NameResolver]:
    resolver = NameResolver([dns.address])
    yield resolver
    await resolver.close()


def _start_as(tenant_id: str, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """Starts a task within a request of the tenant."""
    context = contextvars.copy_context()
    context.run(trace.begin, Trace("cor_1", tenant_id=tenant_id))
    return asyncio.create_task(coroutine, context=context)


def _start_slow(
    resolver: NameResolver, tenant_id: str, count: int
) -> list[asyncio.Task[list[str]]]:
    names = [f"h{number}.{tenant_id}.slow.test" for number in range(count)]
    return [_start_as(tenant_id, resolver.resolve(name, 80)) for name in names]


async def _wait_for_questions(dns: DnsServer, count: int) -> None:
    await until(lambda: len({name for name in dns.names if name.endswith("slow.test")}) == count)


# Names


async def test_a_name_has_addresses_of_both_kinds(resolver: NameResolver) -> None:
    assert sorted(await resolver.resolve("fast.test", 80)) == ["192.0.2.1", "2001:db8::1"]


async def test_a_name_with_one_kind_of_address(resolver: NameResolver, dns: DnsServer) -> None:
    dns.addresses |= {"four.test": ["192.0.2.4"], "six.test": ["2001:db8::6"]}
    assert await resolver.resolve("four.test", 80) == ["192.0.2.4"]
    assert await resolver.resolve("six.test", 80) == ["2001:db8::6"]


async def test_localhost_is_this_machine_without_a_nameserver(
    resolver: NameResolver, dns: DnsServer, subtests: pytest.Subtests
) -> None:
    for name in ("localhost", "LOCALHOST", "app.localhost"):
        with subtests.test(name=name):
            addresses = await resolver.resolve(name, 80)
            known = {entry[4][0] for entry in socket.getaddrinfo("localhost", 80)}
            assert known <= set(addresses) <= {"127.0.0.1", "::1"}
            assert dns.names == []


async def test_names_of_the_hosts_file_need_no_nameserver(
    resolver: NameResolver, dns: DnsServer
) -> None:
    with open("/etc/hosts", encoding="utf-8") as file:  # noqa: ASYNC230, PTH123
        lines = [line.partition("#")[0].split() for line in file]
    names = {line[1]: line[0] for line in lines if len(line) > 1 and ":" not in line[0]}
    for name, address in names.items():
        assert address in await resolver.resolve(name, 80)
    assert dns.names == []


async def test_an_international_name_is_asked_for_in_its_ascii_form(
    resolver: NameResolver, dns: DnsServer
) -> None:
    dns.addresses["xn--bcher-kva.test"] = ["192.0.2.7"]
    assert await resolver.resolve("bücher.test", 80) == ["192.0.2.7"]


# Errors


async def test_a_name_that_does_not_exist(
    resolver: NameResolver, subtests: pytest.Subtests
) -> None:
    cases: list[str] = ["unknown.test", "fast.test\0.example.com", "a..b", "x" * 64]
    for name in cases:
        with subtests.test(name=name), pytest.raises(NameNotFound):
            await resolver.resolve(name, 80)


async def test_a_name_that_cannot_be_encoded_takes_no_slot(resolver: NameResolver) -> None:
    guard = Guard(["192.0.2.0/24", "2001:db8::/32"], resolver.resolve)
    for name in ("ü_x.example", "ü" * 64, "ü" * 253, "ü" * 254, f"{'a.' * 200}ü"):
        for _ in range(SHARE):
            with pytest.raises(EgressError, match="the name does not exist"):
                await guard.resolve_addresses(name, 80)
        assert not resolver._shares
    assert await guard.resolve_addresses("fast.test", 80)


async def test_a_name_without_addresses(resolver: NameResolver, dns: DnsServer) -> None:
    dns.addresses["empty.test"] = []
    with pytest.raises(NameNotFound):
        await resolver.resolve("empty.test", 80)


async def test_a_nameserver_that_fails(resolver: NameResolver) -> None:
    with pytest.raises(OSError, match="nameserver failed") as caught:
        await resolver.resolve("a.broken.test", 80)
    assert type(caught.value) is OSError


async def test_a_nameserver_that_does_not_answer(
    resolver: NameResolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(name_resolver, "LOOKUP_SECONDS", 0.05)
    with pytest.raises(TimeoutError, match="no nameserver answered"):
        await resolver.resolve("a.slow.test", 80)


async def test_the_guard_tells_unknown_names_from_silent_nameservers(
    resolver: NameResolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = Guard([], resolver.resolve)
    with pytest.raises(EgressError, match=r"unknown\.test cannot be resolved: the name"):
        await guard.resolve_addresses("unknown.test", 80)
    monkeypatch.setattr(name_resolver, "LOOKUP_SECONDS", 0.05)
    with pytest.raises(EgressError, match=r"a\.slow\.test cannot be resolved: no nameserver"):
        await guard.resolve_addresses("a.slow.test", 80)


# Slow names


async def test_slow_names_of_one_tenant_do_not_delay_another(
    resolver: NameResolver, dns: DnsServer
) -> None:
    slow = _start_slow(resolver, "one", 300)
    await _wait_for_questions(dns, SHARE)
    async with asyncio.timeout(3):
        assert await _start_as("two", resolver.resolve("fast.test", 80))
    dns.release()
    outcomes = await asyncio.gather(*slow, return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {NameNotFound}


async def test_a_tenant_waits_for_its_own_slow_names_only(
    resolver: NameResolver, dns: DnsServer
) -> None:
    slow = [*_start_slow(resolver, "one", SHARE + 1), *_start_slow(resolver, "two", SHARE + 1)]
    await _wait_for_questions(dns, 2 * SHARE)
    assert not any(task.done() for task in slow)
    dns.release()
    await asyncio.gather(*slow, return_exceptions=True)
    await until(lambda: not resolver._shares)


async def test_a_lookup_that_was_given_up_counts_until_it_ends(
    resolver: NameResolver, dns: DnsServer
) -> None:
    slow = _start_slow(resolver, "one", SHARE)
    await _wait_for_questions(dns, SHARE)
    for task in slow:
        task.cancel()
    await asyncio.gather(*slow, return_exceptions=True)
    waiting = _start_as("one", resolver.resolve("fast.test", 80))
    # By now its question would have arrived.
    with pytest.raises(NameNotFound):
        await _start_as("two", resolver.resolve("unknown.test", 80))
    assert "fast.test" not in dns.names
    dns.release()
    assert await waiting


async def test_a_lookup_of_another_tenant_is_not_shared(
    resolver: NameResolver, dns: DnsServer
) -> None:
    """Tenant one cannot start another lookup, so tenant two must not wait for its lookup."""
    guard, slow = Guard(["192.0.2.0/24", "2001:db8::/32"], resolver.resolve), list[Any]()
    slow += _start_slow(resolver, "one", SHARE)
    slow.append(_start_as("one", guard.resolve_addresses("fast.test", 80)))
    await _wait_for_questions(dns, SHARE)
    async with asyncio.timeout(3):
        assert await _start_as("two", guard.resolve_addresses("fast.test", 80))
    assert not slow[-1].done()
    dns.release()
    await asyncio.gather(*slow, return_exceptions=True)


# Loops


async def test_closing_ends_the_lookups_that_run(resolver: NameResolver, dns: DnsServer) -> None:
    """Also those that wait for a slot."""
    slow = _start_slow(resolver, "one", SHARE + 1)
    await _wait_for_questions(dns, SHARE)
    await resolver.close()
    outcomes = await asyncio.gather(*slow, return_exceptions=True)
    assert all(isinstance(outcome, OSError) for outcome in outcomes)
    assert not resolver._shares
    assert await resolver.resolve("fast.test", 80)


async def test_a_resolver_can_be_used_in_one_loop_after_another(
    resolver: NameResolver, dns: DnsServer
) -> None:
    assert await resolver.resolve("fast.test", 80)

    async def resolve_and_close() -> list[str]:
        addresses = await resolver.resolve("fast.test", 80)
        await resolver.close()
        return addresses

    await resolver.close()
    assert await asyncio.to_thread(asyncio.run, resolve_and_close())
    assert await resolver.resolve("fast.test", 80)


def _count_resources() -> tuple[int, int]:
    """Returns the numbers of threads and open files of this process."""
    return len(list(TASKS.iterdir())), len(list(FILES.iterdir()))


async def _use_and_close(resolver: NameResolver) -> None:
    """The first time, this starts the thread in which pycares closes its channels."""
    await resolver.resolve("fast.test", 80)
    await resolver.close()


async def _wait_for_resources(before: tuple[int, int]) -> None:
    await until(
        lambda: all(now <= then for now, then in zip(_count_resources(), before, strict=True))
    )


async def test_a_closed_resolver_leaves_neither_threads_nor_files_behind(
    resolver: NameResolver,
) -> None:
    await _use_and_close(resolver)
    before = _count_resources()
    for _ in range(5):
        await _use_and_close(resolver)
    await _wait_for_resources(before)


async def test_the_cache_of_names_is_dropped_without_losing_lookups(
    resolver: NameResolver, dns: DnsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(name_resolver, "_MAX_LOOKUPS_PER_CLIENT", 4)
    await _use_and_close(resolver)
    assert await resolver.resolve("fast.test", 80)
    before = _count_resources()
    slow, clients = _start_slow(resolver, "one", 2), {id(resolver._client)}
    await _wait_for_questions(dns, 2)
    for _ in range(10):
        assert await resolver.resolve("fast.test", 80)
        clients.add(id(resolver._client))
    assert len(clients) > 1
    dns.release()
    outcomes = await asyncio.gather(*slow, return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {NameNotFound}
    del slow, outcomes
    await _wait_for_resources(before)
