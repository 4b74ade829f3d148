"""Creates tenants, users and signed-in clients for tests, without the HTTP API."""

import ipaddress
import itertools
import json
from datetime import timedelta
from typing import Any, cast

import httpx
from litestar import Litestar

from app.domain.identity.accounts import sessions
from app.kit import clock
from app.kit.ids import new_id
from app.security import passwords
from app.services import Services
from tests.database import fetch_rows

PASSWORD = "Correct7Horse"
_HIGH_LIMITS = {"requests_per_minute": 1_000_000}
_number = itertools.count(1)
# One statement, since most tests begin with it.
_INSERT_USER = """
    WITH tenant AS (
        INSERT INTO tenants (id, name, plan, limits) VALUES ($1, $9, 'enterprise', $10)
        ON CONFLICT (id) DO NOTHING
    ), account AS (
        INSERT INTO users
            (tenant_id, id, email, role, password_hash, email_verified, first_name, last_name)
        VALUES ($1, $2, $4, $5, $6, $11, 'Test', 'User')
    )
    INSERT INTO sessions (tenant_id, user_id, id, refresh_jti, expires_at)
    VALUES ($1, $2, $3, $7, $8)
"""


class Client:
    """An HTTP client of one caller, which calls the application without a socket."""

    def __init__(
        self, app: Litestar, token: str | None = None, *, address: str | None = None, **ids: str
    ) -> None:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        # Each client has its own address, so that no test is throttled for another one's requests.
        address = address or str(ipaddress.IPv4Address("10.0.0.0") + next(_number))
        transport = httpx.ASGITransport(
            cast("Any", app), raise_app_exceptions=False, client=(address, 40000)
        )
        self.app = app
        self.address = address
        self.http = httpx.AsyncClient(
            transport=transport, base_url="http://parley.test", headers=headers
        )
        self.token = token
        self.user_id = ids.get("user_id", "")
        self.tenant_id = ids.get("tenant_id", "")
        self.session_id = ids.get("session_id", "")
        self.email = ids.get("email", "")
        self.refresh_token = ids.get("refresh_token", "")

    async def __call__(self, method: str, path: str, **more: Any) -> httpx.Response:
        return await self.http.request(method, path, **more)

    async def get(self, path: str, **more: Any) -> httpx.Response:
        return await self.http.get(path, **more)

    async def post(self, path: str, body: object = None, **more: Any) -> httpx.Response:
        return await self.http.post(path, json=body, **more)

    async def put(self, path: str, body: object = None, **more: Any) -> httpx.Response:
        return await self.http.put(path, json=body, **more)

    async def delete(self, path: str, **more: Any) -> httpx.Response:
        return await self.http.delete(path, **more)


class World:
    def __init__(self, app: Litestar) -> None:
        self.app = app
        self.services: Services = app.state.services
        self._hash: str | None = None

    def anonymous(self) -> Client:
        return Client(self.app)

    async def tenant(self, plan: str = "enterprise", limits: dict[str, Any] | None = None) -> str:
        tenant_id, name = new_id("ten"), f"Tenant {next(_number)}"
        if limits is None:
            limits = _HIGH_LIMITS if plan == "enterprise" else {}
        sql = "INSERT INTO tenants (id, name, plan, limits) VALUES ($1, $2, $3, $4)"
        await fetch_rows(self.services, sql, tenant_id, name, plan, json.dumps(limits))
        return tenant_id

    async def user(
        self,
        role: str = "agent_developer",
        tenant_id: str | None = None,
        *,
        is_verified: bool = True,
    ) -> Client:
        """Creates a signed-in user, in a new tenant unless `tenant_id` is set."""
        if self._hash is None:
            self._hash = await passwords.hash_password(PASSWORD)
        number = next(_number)
        ids = {
            "tenant_id": tenant_id or new_id("ten"),
            "user_id": new_id("usr"),
            "session_id": new_id("ses"),
            "email": f"user{number}.{new_id('x')[-8:]}@example.com",
        }
        refresh_jti, expires_at = new_id("jti"), clock.now() + timedelta(days=7)
        values = (role, self._hash, refresh_jti, expires_at)
        tenant = (f"Tenant {number}", json.dumps(_HIGH_LIMITS))
        more = (*values, *tenant, is_verified)
        await fetch_rows(self.services, _INSERT_USER, *ids.values(), *more)
        row = {"id": ids["user_id"], "tenant_id": ids["tenant_id"], "role": role}
        pair = sessions.issue_token_pair(
            self.services.tokens, row, ids["session_id"], new_id("jti"), refresh_jti
        )
        return Client(self.app, pair.access_token, refresh_token=pair.refresh_token, **ids)
