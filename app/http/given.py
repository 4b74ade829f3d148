"""What a handler may ask for: its transaction, the caller, the parts, the page, an id."""

from typing import Any

from litestar import Request
from litestar.di import NamedDependency
from litestar.params import FromPath

from app.http.paging import Page as _Page
from app.parts import Parts as _Parts
from app.security.principal import Principal as _Principal
from db.session import Tx as _Tx

Tx = NamedDependency[_Tx]
Parts = NamedDependency[_Parts]
Principal = NamedDependency[_Principal]
Page = NamedDependency[_Page]
Id = FromPath[str]
# Litestar starts a task for each dependency where there are several: the hottest handlers take the
# request alone.
HttpRequest = Request[Any, Any, Any]
