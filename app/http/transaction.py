"""One transaction per request, committed before the answer is sent.

A generator dependency, because its clean-up runs before the response goes out and an error in it
reaches the error handler: a commit that fails is a 500, never a 201.
"""

from collections.abc import AsyncGenerator
from typing import Any

from litestar import Request

from app.parts import parts_of
from app.security.principal import caller_of
from db.session import Tx

_READS = {"GET", "HEAD", "OPTIONS"}


def request_tx(request: Request[Any, Any, Any]) -> Tx:
    """The request's transaction; nothing is borrowed from the pool before its first statement."""
    state = request.scope["state"]
    if state.get("tx") is None:
        principal = caller_of(request).principal
        # A public endpoint finds out its tenant by itself, whoever else the caller may be.
        known = principal is not None and not request.route_handler.opt.get("public")
        scope = principal.scope if principal and known else None
        state["tx"] = parts_of(request).db.begin(scope, read_only=request.method in _READS)
    tx: Tx = state["tx"]
    return tx


async def provide_tx(request: Request[Any, Any, Any]) -> AsyncGenerator[Tx, None]:
    tx = request_tx(request)
    yield tx
    # Not reached when the handler raised: the gate then rolls back what is still open.
    await tx.commit()
