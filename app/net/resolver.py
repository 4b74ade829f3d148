"""Resolves host names that tenants chose, without a thread per lookup.

`getaddrinfo` keeps a thread for many seconds while a nameserver does not answer, so a few slow
names would stop all others. c-ares waits for all nameservers together. Like `getaddrinfo` it reads
/etc/hosts and resolv.conf with its search domains, and notices when they change.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from socket import SOCK_STREAM

import pycares
from aiodns import DNSResolver
from aiodns import error as dns

from app.kit import trace

LOOKUP_SECONDS = 5.0
# After this time c-ares asks again, or asks the next nameserver.
_RETRY_SECONDS = 2.0
_TRIES = 2
_MAX_LOOKUPS_PER_TENANT = 32
# c-ares caches every name for as long as its nameserver allows, 2.5 KB each, without a limit.
_MAX_LOOKUPS_PER_CLIENT = 10_000
_MAX_NAME_CHARS = 253
_IPV6_LOOPBACK = "::1"
_NO_ADDRESS = {dns.ARES_ENOTFOUND, dns.ARES_ENODATA, dns.ARES_ENONAME, dns.ARES_EBADNAME}


class NameNotFound(OSError):
    """The name does not exist, or has no address."""


class _Share:
    """The lookups of one tenant."""

    def __init__(self) -> None:
        self.slots = asyncio.Semaphore(_MAX_LOOKUPS_PER_TENANT)
        # Those that run, and those that wait for a slot.
        self.lookups = 0


class NameResolver:
    """Limits the concurrent lookups of each tenant, so that slow names of one delay no other.

    The owner closes it. It can be used again afterwards, also by another event loop.
    """

    def __init__(self, nameservers: Sequence[str] | None = None) -> None:
        self._nameservers = nameservers
        self._client: DNSResolver | None = None
        self._client_lookups = 0
        self._shares: dict[str, _Share] = {}

    async def resolve(self, host: str, _port: int) -> list[str]:
        """Returns the IPv4 and IPv6 addresses of a host, the preferred one first.

        Raises NameNotFound, TimeoutError, or another OSError.
        """
        if "\0" in host or len(host.removesuffix(".")) > _MAX_NAME_CHARS:
            # c-ares would resolve the part before the NUL.
            raise NameNotFound(f"a name has {_MAX_NAME_CHARS} characters at most, and no NUL")
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                # Shielded: a lookup whose caller gave up counts until c-ares has finished it.
                result = await asyncio.shield(await self._start_lookup(host))
        except TimeoutError:
            raise TimeoutError(f"no nameserver answered within {LOOKUP_SECONDS:g} s") from None
        except (dns.DNSError, pycares.AresError) as error:
            raise _to_os_error(error) from error
        except UnicodeError as error:
            raise NameNotFound(f"the name has no ASCII form: {error}") from error
        except RuntimeError as error:
            raise OSError("the resolver was closed before the lookup started") from error
        addresses = dict.fromkeys(node.addr[0].decode() for node in result.nodes)
        # c-ares adds ::1 to localhost even where /etc/hosts has 127.0.0.1 alone.
        return sorted(addresses, key=_IPV6_LOOPBACK.__eq__)

    async def _start_lookup(self, host: str) -> asyncio.Future[pycares.AddrInfoResult]:
        client, tenant = self._open(), trace.current_tenant()
        share = self._shares.setdefault(tenant, _Share())
        share.lookups += 1
        try:
            await share.slots.acquire()
            try:
                # Raises when the name cannot be encoded, or the client was closed in the meantime.
                lookup = client.getaddrinfo(host, type=SOCK_STREAM)
            except BaseException:
                share.slots.release()
                raise
        except BaseException:
            self._leave(tenant, share)
            raise
        lookup.add_done_callback(partial(self._finish, tenant, share))
        return lookup

    def _open(self) -> DNSResolver:
        """Returns the client for one lookup; a client belongs to one loop. One that is replaced
        finishes its lookups and is then closed, because nothing refers to it.
        """
        loop, client = asyncio.get_running_loop(), self._client
        if client is not None and client.loop is not loop:
            client, self._shares = None, {}
        if client is None or self._client_lookups >= _MAX_LOOKUPS_PER_CLIENT:
            client = DNSResolver(self._nameservers, loop, timeout=_RETRY_SECONDS, tries=_TRIES)
            self._client, self._client_lookups = client, 0
        self._client_lookups += 1
        return client

    def _finish(
        self, tenant: str, share: _Share, lookup: asyncio.Future[pycares.AddrInfoResult]
    ) -> None:
        if not lookup.cancelled():
            # Marks the error as retrieved: the caller may have given up.
            lookup.exception()
        share.slots.release()
        self._leave(tenant, share)

    def _leave(self, tenant: str, share: _Share) -> None:
        share.lookups -= 1
        if not share.lookups and self._shares.get(tenant) is share:
            del self._shares[tenant]

    async def close(self) -> None:
        """Ends the lookups that run."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()


def _to_os_error(error: Exception) -> OSError:
    code, *texts = error.args or (None,)
    text = str(texts[0] if texts else error)
    if code in _NO_ADDRESS:
        return NameNotFound(text)
    if code == dns.ARES_ETIMEOUT:
        return TimeoutError("no nameserver answered")
    return OSError(f"the nameserver failed: {text}")
