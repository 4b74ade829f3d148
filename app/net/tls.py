"""TLS to servers that are connected to by an address, and verified by their name."""

import asyncio
import ssl
from functools import lru_cache
from typing import Any


class _NamedContext(ssl.SSLContext):
    """Verifies the certificate for a host name although the connection goes to an address."""

    name = ""

    def wrap_bio(self, *args: Any, **options: Any) -> ssl.SSLObject:
        options["server_hostname"] = self.name
        return super().wrap_bio(*args, **options)


async def load_named_context(host: str) -> ssl.SSLContext:
    """Reads the certificates of the system once for a host, in a thread: it takes about 40 ms."""
    return await asyncio.to_thread(_cached_context, host)


@lru_cache(maxsize=256)
def _cached_context(host: str) -> ssl.SSLContext:
    return named_context(host)


def named_context(host: str, *, verified: bool = True) -> ssl.SSLContext:
    context = _NamedContext(ssl.PROTOCOL_TLS_CLIENT)
    context.name = host
    if verified:
        context.load_default_certs()
    else:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
