"""Creates credentials, access rules, tools and agents for tests."""

from typing import Any

from app.domain.agents.vault.decrypted import DecryptedCredential, IntegrationRef
from app.services import Services
from tests.agents.vault.api import PATH, WORKFLOW, unseal_credential
from tests.agents.vault.servers import TokenServer
from tests.agents.vault.sql import EXPIRE_TOKEN
from tests.database import run_sql
from tests.world import Client

# One valid set of secrets for each type, with every key.
VALID_SECRETS: dict[str, dict[str, Any]] = {
    "api_key": {"api_key": "planted-api-key"},
    "oauth2": {
        "client_id": "planted-client",
        "client_secret": "planted-client-secret",
        "token_url": "https://login.example.com/token",
        "access_token": "planted-access",
        "refresh_token": "planted-refresh",
        "scopes": ["read", "write"],
    },
    "basic_auth": {"username": "planted-user", "password": "planted-password"},
    "bearer_token": {"token": "planted-token"},
    "database": {
        "host": "db.example.com",
        "port": 5433,
        "database": "shop",
        "username": "planted-user",
        "password": "planted-password",
        "ssl_mode": "require",
        "engine": "mysql",
    },
    "ssh": {
        "host": "ssh.example.com",
        "port": 2222,
        "username": "planted-user",
        "private_key": "planted-private-key",
        "passphrase": "planted-passphrase",
        "host_key": "ssh-ed25519 AAAA",
    },
    "smtp": {
        "host": "mail.example.com",
        "port": 2525,
        "username": "planted-user",
        "password": "planted-password",
        "use_tls": False,
    },
    "custom": {"X-First": "planted-first", "second": "planted-second"},
}


def build_body(**fields: Any) -> dict[str, Any]:
    return {"name": "Ours", "type": "bearer_token", "secrets": {"token": "planted-token"}, **fields}


async def create_credential(
    caller: Client, type_: str = "bearer_token", secrets: object = None, **fields: Any
) -> dict[str, Any]:
    values = VALID_SECRETS[type_] if secrets is None else secrets
    answer = await caller.post(PATH, build_body(type=type_, secrets=values, **fields))
    assert answer.status_code == 201, answer.text
    credential: dict[str, Any] = answer.json()
    return credential


async def create_oauth2_credential(
    caller: Client, token_server: TokenServer, **secrets: Any
) -> str:
    """Returns the id of a credential that WORKFLOW may use."""
    credential = await create_credential(caller, "oauth2", token_server.secrets(**secrets))
    await grant_access(caller, credential["id"])
    return str(credential["id"])


async def create_expired_credential(
    caller: Client, services: Services, token_server: TokenServer, **secrets: Any
) -> DecryptedCredential:
    """Returns an OAuth 2 credential whose token has expired."""
    values = {"access_token": "stale", "refresh_token": "planted-refresh", **secrets}
    credential_id = await create_oauth2_credential(caller, token_server, **values)
    await run_sql(services, EXPIRE_TOKEN, credential_id)
    return await unseal_credential(services, caller, credential_id)


async def grant_access(
    caller: Client, credential_id: str, user: IntegrationRef = WORKFLOW
) -> dict[str, Any]:
    body = {"integration_type": user.type, "integration_id": user.id}
    answer = await caller.post(f"{PATH}/{credential_id}/access", body)
    assert answer.status_code == 201, answer.text
    rule: dict[str, Any] = answer.json()
    return rule


async def create_tool(caller: Client) -> str:
    body = {
        "name": "Add",
        "category": "automation",
        "tool_type": "function",
        "config": {"runtime": "python", "code": "def main(input):\n    return {}\n"},
        "auth_type": "none",
    }
    answer = await caller.post("/v1/tools", body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["data"]["id"])


async def create_agent(caller: Client) -> str:
    body = {"name": "A", "primary_model": "scripted/echo", "system_prompt": "x"}
    answer = await caller.post("/api/v1/agents", body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])
