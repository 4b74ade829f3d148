"""Reads and changes credentials in the database."""

from typing import Any

import msgspec

from app.domain.agents.vault.decrypted import seal_context
from app.services import Services
from tests.database import Row, fetch_rows, run_sql
from tests.world import Client

EXPIRE_TOKEN = "UPDATE credentials SET token_expires_at = now() - interval '1 second' WHERE id = $1"


async def fetch_credential(services: Services, credential_id: str) -> Row:
    (row,) = await fetch_rows(services, "SELECT * FROM credentials WHERE id = $1", credential_id)
    return row


async def store_secrets(
    services: Services, caller: Client, credential_id: str, secrets: dict[str, Any]
) -> None:
    """Stores secrets that the API refuses."""
    plaintext = msgspec.json.encode(secrets)
    sealed_secrets = services.keyring.seal(plaintext, seal_context(caller.tenant_id, credential_id))
    statement = "UPDATE credentials SET secrets = $2 WHERE id = $1"
    await run_sql(services, statement, credential_id, sealed_secrets)
