"""Calls of the credential API that tests repeat; each checks the status of the response."""

from typing import Any

import httpx

from app.domain.agents.vault import unseal
from app.domain.agents.vault.decrypted import DecryptedCredential, IntegrationRef
from app.services import Services
from tests.world import Client

PATH = "/v1/credentials"
# The fields of a credential in a list.
LIST_FIELDS = {
    "id",
    "name",
    "type",
    "description",
    "is_valid",
    "last_tested_at",
    "last_used_at",
    "token_expires_at",
    "created_at",
    "updated_at",
}
WORKFLOW = IntegrationRef("workflow", "wfl_1")


def read_invalid_fields(answer: httpx.Response) -> dict[str, str]:
    """Returns the refused fields and their messages."""
    assert answer.status_code == 422, answer.text
    error = answer.json()["error"]
    assert error["code"] == "validation_error"
    details: dict[str, str] = error["details"]
    assert details
    return details


async def list_credentials(caller: Client, **query: Any) -> list[dict[str, Any]]:
    answer = await caller.get(PATH, params=query)
    assert answer.status_code == 200, answer.text
    credentials: list[dict[str, Any]] = answer.json()["data"]
    return credentials


async def get_credential(caller: Client, credential_id: str) -> dict[str, Any]:
    answer = await caller.get(f"{PATH}/{credential_id}")
    assert answer.status_code == 200, answer.text
    credential: dict[str, Any] = answer.json()
    return credential


async def reveal_secrets(caller: Client, credential_id: str) -> dict[str, Any]:
    answer = await caller.get(f"{PATH}/{credential_id}/reveal")
    assert answer.status_code == 200, answer.text
    secrets: dict[str, Any] = answer.json()["secrets"]
    return secrets


async def run_connection_test(caller: Client, credential_id: str) -> dict[str, Any]:
    answer = await caller.post(f"{PATH}/{credential_id}/test")
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    assert set(result) == {"success", "message", "latency_ms", "tested_at"}
    return result


async def list_audit(caller: Client, credential_id: str | None = None) -> list[dict[str, Any]]:
    """Returns the audit rows, the latest first."""
    path = f"{PATH}/{credential_id}/audit" if credential_id else f"{PATH}/audit"
    answer = await caller.get(path, params={"per_page": 100})
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.json()["data"]
    return rows


async def list_actions(caller: Client, credential_id: str | None = None) -> list[str]:
    return [row["action"] for row in await list_audit(caller, credential_id)]


async def list_events(caller: Client, action: str = "") -> list[dict[str, Any]]:
    """Returns the data of the credential events in the event log, the latest first."""
    answer = await caller.get("/api/v1/event-log", params={"per_page": 100})
    assert answer.status_code == 200, answer.text
    prefix = f"system.credential.{action}"
    entries = answer.json()["data"]
    return [entry["data"] for entry in entries if entry["type"].startswith(prefix)]


async def list_rules(caller: Client, credential_id: str) -> list[dict[str, Any]]:
    answer = await caller.get(f"{PATH}/{credential_id}/access")
    assert answer.status_code == 200
    assert set(answer.json()) == {"data"}
    rules: list[dict[str, Any]] = answer.json()["data"]
    return rules


async def unseal_credential(
    services: Services,
    caller: Client,
    credential_id: str,
    user: IntegrationRef = WORKFLOW,
    host: str = "",
) -> DecryptedCredential:
    return await unseal.unseal_for(services, caller.tenant_id, credential_id, user, host)
