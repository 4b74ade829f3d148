"""Types of the dependencies that handlers declare: transaction, services, caller, page, id.

`context` holds transaction, services and caller together. Litestar starts a task for each of
several dependencies, so the most frequent handlers declare `context` alone.
"""

from typing import Any

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.di import NamedDependency
from litestar.params import FromPath

from app.context import RequestContext
from app.kit.paging import Page as _Page
from app.security.principal import ClientInfo as _ClientInfo
from app.security.principal import Principal as _Principal
from app.services import Services as _Services
from db.session import Tx as _Tx

Tx = NamedDependency[_Tx]
Services = NamedDependency[_Services]
Principal = NamedDependency[_Principal]
Context = NamedDependency[RequestContext]
Page = NamedDependency[_Page]
# The client's network address.
Address = NamedDependency[str]
ClientInfo = NamedDependency[_ClientInfo]
Id = FromPath[str]
HttpRequest = Request[Any, Any, Any]


def services_of(connection: ASGIConnection[Any, Any, Any, Any]) -> _Services:
    services: _Services = connection.app.state.services
    return services
