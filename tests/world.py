"""Creates tenants, users and signed-in clients for tests, without the HTTP API."""

import ipaddress
import itertools
from datetime import timedelta
from typing import Any, cast

import httpx
from litestar import Litestar

from app.domain.accounts import sessions
from app.kit import clock
from app.kit.ids import new_id
from app.security import passwords
from app.services import Services
from db.models import Session, Tenant, User
from db.session import ALL_TENANTS

PASSWORD = "Correct7Horse"
_HIGH_LIMITS = {"requests_per_minute": 1_000_000}
_number = itertools.count(1)


class Client:
    """An HTTP client of one caller, which calls the application without a socket."""

    def __init__(self, app: Litestar, token: str | None = None, **ids: str) -> None:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        # Each client has its own address, so that no test is throttled for another one's requests.
        address = str(ipaddress.IPv4Address("10.0.0.0") + next(_number))
        transport = httpx.ASGITransport(
            cast("Any", app), raise_app_exceptions=False, client=(address, 40000)
        )
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
        tenant = Tenant(
            id=new_id("ten"),
            name=f"Tenant {next(_number)}",
            plan=plan,
            limits=_HIGH_LIMITS if limits is None and plan == "enterprise" else limits or {},
        )
        async with self.services.db.tx(ALL_TENANTS) as tx:
            (await tx.session()).add(tenant)
        return tenant.id

    async def user(self, role: str = "agent_developer", tenant_id: str | None = None) -> Client:
        """Creates a signed-in user, in a new tenant unless `tenant_id` is set."""
        tenant_id = tenant_id or await self.tenant()
        if self._hash is None:
            self._hash = await passwords.hash_password(PASSWORD)
        user = User(
            id=new_id("usr"),
            tenant_id=tenant_id,
            email=f"user{next(_number)}.{new_id('x')[-8:]}@example.com",
            first_name="Test",
            last_name="User",
            password_hash=self._hash,
            role=role,
        )
        session = Session(
            id=new_id("ses"),
            user_id=user.id,
            tenant_id=tenant_id,
            refresh_jti=new_id("jti"),
            expires_at=clock.now() + timedelta(days=7),
        )
        async with self.services.db.tx(ALL_TENANTS) as tx:
            orm = await tx.session()
            orm.add(user)
            await orm.flush()
            orm.add(session)
        row = {"id": user.id, "tenant_id": tenant_id, "role": role}
        pair = sessions.issue_token_pair(
            self.services.tokens, row, session.id, new_id("jti"), session.refresh_jti
        )
        return Client(
            self.app,
            pair.access_token,
            refresh_token=pair.refresh_token,
            user_id=user.id,
            tenant_id=tenant_id,
            session_id=session.id,
            email=user.email,
        )
