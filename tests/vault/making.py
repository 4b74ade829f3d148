"""Credentials for tests, and what is asked about them again and again."""

from typing import Any

import httpx
import msgspec

from app.domain.vault import unseal
from app.domain.vault.decrypted import CredentialUser, DecryptedCredential, seal_context
from app.services import Services
from db.session import ALL_TENANTS
from tests.world import Client

PATH = "/v1/credentials"
TYPES = [
    "api_key",
    "oauth2",
    "basic_auth",
    "bearer_token",
    "database",
    "ssh",
    "smtp",
    "custom",
]
# One good set of secrets for each type, with every key.
GOOD: dict[str, dict[str, Any]] = {
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
WORKFLOW = CredentialUser("workflow", "wfl_1")


async def create(
    caller: Client, type_: str = "bearer_token", secrets: object = None, **fields: Any
) -> dict[str, Any]:
    given = GOOD[type_] if secrets is None else secrets
    body = {"name": "Ours", "type": type_, "secrets": given, **fields}
    answer = await caller.post(PATH, body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def wrong(answer: httpx.Response) -> dict[str, str]:
    """What was refused, by field."""
    assert answer.status_code == 422, answer.text
    error = answer.json()["error"]
    assert error["code"] == "validation_error"
    details: dict[str, str] = error["details"]
    return details


async def shown(caller: Client, credential_id: str) -> dict[str, Any]:
    answer = await caller.get(f"{PATH}/{credential_id}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def revealed(caller: Client, credential_id: str) -> dict[str, Any]:
    answer = await caller.get(f"{PATH}/{credential_id}/reveal")
    assert answer.status_code == 200, answer.text
    secrets: dict[str, Any] = answer.json()["secrets"]
    return secrets


async def tried(caller: Client, credential_id: str) -> dict[str, Any]:
    answer = await caller.post(f"{PATH}/{credential_id}/test")
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    assert set(result) == {"success", "message", "latency_ms", "tested_at"}
    return result


async def trail(caller: Client, credential_id: str | None = None) -> list[dict[str, Any]]:
    """The latest first."""
    path = f"{PATH}/{credential_id}/audit" if credential_id else f"{PATH}/audit"
    answer = await caller.get(path, params={"per_page": 100})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


async def actions(caller: Client, credential_id: str | None = None) -> list[str]:
    return [entry["action"] for entry in await trail(caller, credential_id)]


async def told(caller: Client, kind: str = "") -> list[dict[str, Any]]:
    """The data of the vault's events in the log, the latest first."""
    answer = await caller.get("/api/v1/event-log", params={"per_page": 100})
    assert answer.status_code == 200, answer.text
    wanted = f"system.credential.{kind}"
    entries = answer.json()["data"]
    return [entry["data"] for entry in entries if entry["type"].startswith(wanted)]


async def grant(
    caller: Client, credential_id: str, user: CredentialUser = WORKFLOW
) -> dict[str, Any]:
    body = {"integration_type": user.type, "integration_id": user.id}
    answer = await caller.post(f"{PATH}/{credential_id}/access", body)
    assert answer.status_code == 201, answer.text
    rule: dict[str, Any] = answer.json()
    return rule


async def opened(
    services: Services, caller: Client, credential_id: str, user: CredentialUser = WORKFLOW
) -> DecryptedCredential:
    return await unseal.unseal_for(services, caller.tenant_id, credential_id, user)


async def make_tool(caller: Client) -> str:
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


async def make_agent(caller: Client) -> str:
    body = {"name": "A", "primary_model": "scripted/echo", "system_prompt": "x"}
    answer = await caller.post("/api/v1/agents", body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def sql(services: Services, statement: str, *args: object) -> None:
    """What nobody can do through the interface: time passes, or somebody meddles."""
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(statement, *args)


async def fetch(services: Services, statement: str, *args: object) -> list[Any]:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        return list(await (await tx.raw()).fetch(statement, *args))


async def plant_secrets(
    services: Services, caller: Client, credential_id: str, secrets: dict[str, Any]
) -> None:
    """Seal secrets that the interface would not take."""
    packed = msgspec.json.encode(secrets)
    sealed = services.keyring.seal(packed, seal_context(caller.tenant_id, credential_id))
    await sql(services, "UPDATE credentials SET secrets = $2 WHERE id = $1", credential_id, sealed)
