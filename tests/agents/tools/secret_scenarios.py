"""Runs of tools with every kind of secret."""

import itertools
from typing import Any

from tests.agents.tools import tenant_postgres
from tests.agents.tools.echo_databases import EchoDatabase
from tests.agents.tools.echo_site import ECHOES, EchoSite
from tests.agents.tools.factories import ToolClient
from tests.agents.tools.planted_secrets import PlantedSecrets, RunRecord
from tests.lengths import rounds
from tests.ports import free_port


def build_auth_configs(
    secrets: PlantedSecrets, echo_site: EchoSite, prefix: str = ""
) -> dict[str, dict[str, Any]]:
    client = {"token_url": f"{echo_site.url}/token", "client_id": "client-1"}
    return {
        "bearer": {"auth_type": "bearer", "auth_config": {"token": secrets.add(f"{prefix}bearer")}},
        "basic": {
            "auth_type": "basic",
            "auth_config": {"username": "zoe", "password": secrets.add(f"{prefix}password")},
        },
        "header key": {
            "auth_type": "api_key",
            "auth_config": {"api_key_value": secrets.add(f"{prefix}header key")},
        },
        "query key": {
            "auth_type": "api_key",
            "auth_config": {
                "api_key_value": secrets.add(f"{prefix}query key"),
                "api_key_header": "k",
                "api_key_location": "query",
            },
        },
        "custom": {
            "auth_type": "custom",
            "auth_config": {
                "headers": {
                    "X-Plain": secrets.add(f"{prefix}custom"),
                    "Authorization": "Token " + secrets.add_token(f"{prefix}custom word"),
                }
            },
        },
        "oauth2": {
            "auth_type": "oauth2",
            "auth_config": {**client, "client_secret": secrets.add(f"{prefix}client secret")},
        },
    }


def build_credentials(
    secrets: PlantedSecrets, echo_site: EchoSite
) -> dict[str, tuple[str, dict[str, Any]]]:
    return {
        "bearer": ("bearer_token", {"token": secrets.add("vault bearer")}),
        "basic": ("basic_auth", {"username": "zoe", "password": secrets.add("vault password")}),
        "api_key": ("api_key", {"api_key": secrets.add("vault key")}),
        "custom": ("custom", {"X-Plain": secrets.add("vault custom")}),
        "oauth2": (
            "oauth2",
            {
                "client_id": "client-2",
                "client_secret": secrets.add("vault client secret"),
                "token_url": f"{echo_site.url}/token",
                "access_token": secrets.add("vault access token"),
                "refresh_token": secrets.add("vault refresh token"),
            },
        ),
    }


# A short run tries each tool with some of the echoes: all tools together meet each of them.
_ECHOES_PER_TOOL = rounds(2, len(ECHOES))


class SecretScenarios:
    """Uses every kind of secret that a tool can have, with the echoes of the site."""

    def __init__(self, record: RunRecord, tools: ToolClient, echo_site: EchoSite) -> None:
        self.record = record
        self.tools = tools
        self.echo_site = echo_site
        self._echoes = itertools.cycle(ECHOES.values())

    async def create_tool(self, tool_type: str, config: dict[str, Any], **auth: Any) -> str:
        tool_id = await self.tools.create(tool_type, config, **auth)
        self.record.tool_ids.append(tool_id)
        return tool_id

    async def run_tool(
        self, tool_id: str, arguments: dict[str, Any] | None = None, **fields: Any
    ) -> None:
        self.record.outcomes.append(await self.tools.run(tool_id, arguments, **fields))

    async def run_with_echoes(
        self, tool_id: str, arguments: dict[str, Any] | None = None, **fields: Any
    ) -> None:
        some_echoes = itertools.islice(self._echoes, _ECHOES_PER_TOOL)
        # Tokens are renewed after this one.
        for echo in (ECHOES["unauthorized"], *some_echoes):
            self.echo_site.echo = echo
            await self.run_tool(tool_id, arguments, **fields)

    async def use_own_secrets(self) -> None:
        api = {
            "base_url": self.echo_site.url,
            "endpoints": {"one": {"method": "POST", "path": "/things/{id}"}},
            "timeout_ms": 300,
        }
        webhook = {"url": f"{self.echo_site.url}/hook", "timeout_ms": 300}
        for name, auth in build_auth_configs(self.record.secrets, self.echo_site).items():
            if name == "oauth2":
                self.echo_site.token_response = None
                await self.run_tool(await self.create_tool("webhook", webhook, **auth))
                token = self.record.secrets.add_token("issued token")
                self.echo_site.token_response = {
                    "access_token": token,
                    "expires_in": 1,
                    "scope": token,
                }
            await self.run_with_echoes(
                await self.create_tool("rest_api", api, **auth), {"params": {"id": 1}}
            )
            await self.run_with_echoes(await self.create_tool("webhook", webhook, **auth), {"a": 1})

    async def use_credentials(self) -> None:
        webhook = {"url": f"{self.echo_site.url}/hook", "timeout_ms": 300}
        self.echo_site.token_response = None
        for auth_type, (type_, secrets) in build_credentials(
            self.record.secrets, self.echo_site
        ).items():
            credential = await self.tools.create_credential(type_, secrets)
            auth = {"auth_type": auth_type, "auth_config": {"credential_id": credential}}
            tool_id = await self.create_tool("webhook", webhook, **auth)
            await self.run_tool(tool_id)  # there is no rule yet
            await self.tools.grant_access(credential, tool_id)
            await self.run_with_echoes(tool_id, {"a": 1})
            for path in ("", "/audit", "/access"):
                await self.tools.client.get(f"/v1/credentials/{credential}{path}")

    async def use_overrides(self) -> None:
        webhook = {"url": f"{self.echo_site.url}/hook", "timeout_ms": 300}
        auth = {"token": self.record.secrets.add("below an override")}
        tool_id = await self.create_tool("webhook", webhook, auth_type="bearer", auth_config=auth)
        agent = await self.tools.create_agent()
        override = {"auth_config": {"token": self.record.secrets.add("override")}}
        body = {"tool_id": tool_id, "config_override": override}
        path = f"/v1/agents/{agent}/tools"
        assert (await self.tools.client.post(path, body)).status_code == 201
        await self.run_with_echoes(tool_id, {"a": 1}, agent_id=agent)
        override = {"auth_config": {"token": self.record.secrets.add("another override")}}
        patched = await self.tools.client(
            "PATCH", f"{path}/{tool_id}", json={"config_override": override}
        )
        assert patched.status_code == 200
        await self.run_with_echoes(tool_id, {"a": 1}, agent_id=agent)
        await self.tools.client.get(path)

    async def use_mcp_server(self, url: str) -> None:
        for auth in build_auth_configs(self.record.secrets, self.echo_site, "mcp ").values():
            if auth["auth_type"] == "oauth2":
                token = self.record.secrets.add_token("token for mcp")
                self.echo_site.token_response = {"access_token": token}
            for name in ("echo", "fail", "nothing"):
                tool_id = await self.create_tool(
                    "custom", {"kind": "mcp", "url": url, "tool": name}, **auth
                )
                await self.run_tool(tool_id)
            await self.tools.client.post(f"/v1/tools/{tool_id}/discover")
            self.echo_site.echo = ECHOES["bad request"]
            config = {"kind": "mcp", "url": self.echo_site.url, "tool": "x", "timeout_ms": 300}
            tool_id = await self.create_tool("custom", config, **auth)
            await self.run_with_echoes(tool_id)
            await self.tools.client.post(f"/v1/tools/{tool_id}/discover")

    async def use_database(self, postgres: tenant_postgres.TenantPostgres) -> None:
        config = {
            "db_type": "postgresql",
            "host": "127.0.0.1",
            "port": postgres.port,
            "database": tenant_postgres.DATABASE,
            "timeout_ms": 1000,
        }
        password = self.record.secrets.add("database password")
        owner = await postgres.connect()
        await owner.execute(f"CREATE ROLE planted LOGIN PASSWORD '{password}'")
        await owner.close()
        for candidate in (password, self.record.secrets.add("wrong database password")):
            auth = {"username": "planted", "password": candidate}
            tool_id = await self.create_tool(
                "database", config, auth_type="basic", auth_config=auth
            )
            for query in ("SELECT 1", "SELECT 1 / 0", "SELECT nothing", "DROP TABLE x"):
                await self.run_tool(tool_id, {"query": query})
            unreachable = await self.create_tool(
                "database",
                {**config, "port": free_port()},
                auth_type="basic",
                auth_config=auth,
            )
            await self.run_tool(unreachable, {"query": "SELECT 1"})

    async def use_echo_database(self, db_type: str, echo: EchoDatabase) -> None:
        """The server repeats the password in its errors, whole and changed."""
        password = self.record.secrets.add(f"password for {db_type}")
        server = {"db_type": db_type, "host": "127.0.0.1", "port": echo.port, "database": "shop"}
        auth = {"username": "zoe", "password": password}
        tool_id = await self.create_tool("database", server, auth_type="basic", auth_config=auth)
        login = {"host": "127.0.0.1", "port": echo.port, "database": "shop", "engine": db_type}
        credential = await self.tools.create_credential("database", {**login, **auth})
        errors = (password, password[::-1], " ".join(password), "x" * 480 + password)
        codes = (("XX000", 1064), ("28P01", 1045), ("57P03", 2013))
        for error, (code, mysql_code) in zip(errors, itertools.cycle(codes), strict=False):
            echo.error, echo.code, echo.mysql_code = error, code, mysql_code
            await self.run_tool(tool_id, {"query": "SELECT 1"})
            await self.tools.client.post(f"/v1/credentials/{credential}/test")

    async def save_invalid_secrets(self) -> None:
        """Each body has a secret beside an invalid field. Only the field may be named."""
        secrets = self.record.secrets
        invalid_auths: list[dict[str, Any]] = [
            {"auth_type": "bearer", "auth_config": {"token": secrets.add("typo"), "tokn": 1}},
            {"auth_type": "bearer", "auth_config": {"token": [secrets.add("no text")]}},
            {"auth_type": "basic", "auth_config": {"password": secrets.add("no name")}},
            {"auth_type": "bearer", "auth_config": secrets.add("no object")},
            {
                "auth_type": "oauth2",
                "auth_config": {
                    "token_url": "http://10.0.0.1/",
                    "client_id": "a",
                    "client_secret": secrets.add("private token url"),
                },
            },
        ]
        for auth in invalid_auths:
            body = {"name": "T", "category": "custom", "tool_type": "webhook", **auth}
            answer = await self.tools.client.post(
                "/v1/tools", {**body, "config": {"url": self.echo_site.url}}
            )
            assert answer.status_code == 422
        invalid = {"token": secrets.add("credential with a typo"), "tokn": "x"}
        body = {"name": "C", "type": "bearer_token", "secrets": invalid}
        assert (await self.tools.client.post("/v1/credentials", body)).status_code == 422

    async def read_everything(self) -> None:
        for tool_id in self.record.tool_ids:
            for path in ("", "/executions?per_page=100", "/stats"):
                answer = await self.tools.client.get(f"/v1/tools/{tool_id}{path}")
                assert answer.status_code == 200
        for path in (
            "/api/v1/event-log?per_page=100",
            "/v1/tools?per_page=100",
            "/v1/credentials?per_page=100",
            "/v1/credentials/audit",
        ):
            assert (await self.tools.client.get(path)).status_code == 200
