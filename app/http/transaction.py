"""One transaction per request, committed before the response is sent.

A generator dependency, because Litestar runs its clean-up before it sends the response, and an
error in it reaches the error handler: a commit that fails is a 500, never a 201.
"""

from collections.abc import AsyncGenerator
from typing import Any

from litestar import Request

from app.context import RequestContext
from app.http.authorization import caller_of, principal_of
from app.http.dependencies import services_of
from app.http.route_options import request_options
from db.session import Scope, Tx

_READS = {"GET", "HEAD", "OPTIONS"}


def request_tx(request: Request[Any, Any, Any]) -> Tx:
    """Returns the request's transaction, which takes no connection before its first statement."""
    state = request.scope["state"]
    if state.get("tx") is None:
        autocommit = request.method in _READS
        state["tx"] = services_of(request).db.begin(_scope(request), autocommit=autocommit)
    tx: Tx = state["tx"]
    return tx


def _scope(request: Request[Any, Any, Any]) -> Scope | None:
    principal, options = caller_of(request).principal, request_options(request)
    if principal is None or options.finds_tenant:
        return None
    return principal.tenant_id if options.own else principal.scope


async def provide_tx(request: Request[Any, Any, Any]) -> AsyncGenerator[Tx, None]:
    tx = request_tx(request)
    yield tx
    # Not reached when the handler raised; the gate then rolls the transaction back.
    await tx.commit()


async def provide_context(request: Request[Any, Any, Any]) -> AsyncGenerator[RequestContext, None]:
    caller = caller_of(request)
    tx = request_tx(request)
    yield RequestContext(tx, services_of(request), principal_of(request), caller.address)
    await tx.commit()
