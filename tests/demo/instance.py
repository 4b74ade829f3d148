"""An instance with a database of its own, in this process."""

import re
from typing import Any

import httpx
import msgspec

from app import bootstrap
from app.main import create_app
from app.services import Services
from app.settings import Settings
from db.base import Base
from db.session import ALL_TENANTS
from tests.database import fetch_rows
from tests.world import PASSWORD, Client, World

ORIGIN = "https://parley.example.com"
_SCRIPT = re.compile(r'<script async src="(/embed/\w+\.js)"([^>]*)></script>')
_ATTRIBUTE = re.compile(r'([a-z-]+)="([^"]*)"')


class Instance:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.app = create_app(settings)
        self.services: Services = self.app.state.services
        self.visitor = Client(self.app)

    async def empty(self) -> None:
        """Deletes all rows."""
        async with self.services.db.tx(ALL_TENANTS) as tx:
            raw = await tx.raw()
            await raw.execute("SET LOCAL session_replication_role = replica")
            for table in reversed(Base.metadata.sorted_tables):
                await raw.execute(f'DELETE FROM "{table.name}"')

    async def prepare(self) -> None:
        await bootstrap.prepare(self.services.db, self.services.keyring, "enterprise")
        await self.create_admin()

    async def create_admin(self) -> None:
        await bootstrap.ensure_admin(self.services.db, "admin@example.com", PASSWORD, "enterprise")

    async def operator(self) -> Client:
        """Signs in as the super_admin who owns the demo."""
        rows = await fetch_rows(self.services, "SELECT tenant_id FROM users")
        return await World(self.app).user("super_admin", rows[0]["tenant_id"])

    def with_keys(self, *entries: str) -> "Instance":
        """The same instance as a process sees it that was started with these root keys."""
        settings = msgspec.structs.replace(self.settings, master_keys=",".join(entries))
        return Instance(settings)

    async def count(self) -> dict[str, int]:
        tables = ("agents", "embed_keys", "documents", "forms")
        counts = {}
        for table in tables:
            condition = "WHERE deleted_at IS NULL" if table == "forms" else ""
            rows = await fetch_rows(self.services, f"SELECT count(*) AS n FROM {table} {condition}")
            counts[table] = rows[0]["n"]
        return counts

    async def scripts(self) -> dict[str, dict[str, str]]:
        """Returns the attributes of the embedded scripts of the page, by their paths."""
        page = await self.visitor.get("/demo")
        assert page.status_code == 200, page.text
        return {path: dict(_ATTRIBUTE.findall(rest)) for path, rest in _SCRIPT.findall(page.text)}

    async def open_session(self, **headers: str) -> httpx.Response:
        """Opens a visitor's session with the key of the page."""
        widget = (await self.scripts())["/embed/widget.js"]
        path = f"/api/v1/public/agents/{widget['data-agent-id']}/session"
        headers = {"authorization": f"Bearer {widget['data-api-key']}", "origin": ORIGIN} | headers
        return await self.visitor.post(path, {}, headers=headers)

    async def chat(self, message: str, **headers: str) -> Any:
        widget = (await self.scripts())["/embed/widget.js"]
        path = f"/api/v1/public/agents/{widget['data-agent-id']}/chat"
        headers = {"authorization": f"Bearer {widget['data-api-key']}", "origin": ORIGIN} | headers
        body = {"session_id": "session-of-a-visitor", "message": message}
        return await self.visitor.post(path, body, headers=headers)
