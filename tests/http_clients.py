"""HTTP clients of servers that tests start."""

import ssl
from functools import cache
from typing import Any

import httpx


@cache
def _tls_context() -> ssl.SSLContext:
    return httpx.create_ssl_context()


def open_client(**options: Any) -> httpx.AsyncClient:
    """Returns a client. All have one TLS context: httpx would take 50 ms to build one for each."""
    return httpx.AsyncClient(verify=_tls_context(), **options)
