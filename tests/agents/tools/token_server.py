"""A site that issues OAuth 2 tokens and accepts them."""

from typing import Any

from aiohttp import web

from tests.agents.tools.factories import ToolCaller
from tests.agents.tools.rest_api_tools import create_rest_api
from tests.agents.tools.site import Site


class TokenServer(Site):
    """Accepts the tokens that it issued at /token, unless they are revoked."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens: list[str] = []
        self.revoked: set[str] = set()
        self.expires_in: int | None = 3600
        self.refusal: dict[str, str] | None = None
        self.handler = self.respond

    async def respond(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/token":
            return self._issue_token()
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in self.tokens or token in self.revoked:
            return web.json_response({"error": "token"}, status=401)
        return web.json_response({"ok": True})

    def _issue_token(self) -> web.Response:
        if self.refusal is not None:
            return web.json_response(self.refusal, status=400)
        self.tokens.append(f"issued-token-{len(self.tokens)}")
        body: dict[str, Any] = {"access_token": self.tokens[-1], "token_type": "bearer"}
        if self.expires_in is not None:
            body["expires_in"] = self.expires_in
        return web.json_response(body)

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.requests]


def build_client_config(token_server: TokenServer, **fields: str) -> dict[str, str]:
    return {
        "token_url": f"{token_server.url}/token",
        "client_id": "client-1",
        "client_secret": "secret-0123456789",
        **fields,
    }


async def create_oauth2_tool(tools: ToolCaller, token_server: TokenServer, **fields: str) -> str:
    return await create_rest_api(
        tools,
        token_server,
        auth_type="oauth2",
        auth_config=build_client_config(token_server, **fields),
    )
