"""Decrypts a credential for an integration: checks the access rule and records the use first."""

from typing import Any

import msgspec

from app.crypto.keyring import CannotOpen, Keyring
from app.services import Services
from db.fast import Row
from db.session import Tx

from . import audit, destinations, queries
from .audit import Actor
from .decrypted import DecryptedCredential, IntegrationRef, decrypt_secrets
from .errors import AccessDenied
from .schemas import Action


async def unseal_for(
    services: Services, tenant_id: str, credential_id: str, integration: IntegrationRef, host: str
) -> DecryptedCredential:
    """Returns the credential with its secrets, for the host that the integration connects to.

    Checks the access rule and the host, and commits an audit row before it decrypts anything.
    Raises AccessDenied.
    """
    async with services.db.tx(tenant_id) as tx:
        row = await queries.find_for_use(
            tx, tenant_id, credential_id, integration.type, integration.id
        )
        if row is None:
            raise AccessDenied("the credential no longer exists")
        metadata = msgspec.json.decode(row["metadata"])
        refusal = _find_refusal(row, metadata, integration, host)
        await _record_use(
            tx, services.keyring, tenant_id, credential_id, integration, is_allowed=refusal is None
        )
    if refusal is not None:
        raise AccessDenied(refusal)
    try:
        secrets = decrypt_secrets(
            services.keyring, tenant_id, row["id"], row["type"], row["secrets"]
        )
    except CannotOpen as error:
        raise AccessDenied("the credential cannot be decrypted; was a root key lost?") from error
    return DecryptedCredential(
        tenant_id,
        row["id"],
        row["name"],
        row["type"],
        secrets,
        row["secrets_version"],
        row["token_expires_at"],
        metadata,
    )


def _find_refusal(
    row: Row, metadata: dict[str, Any], integration: IntegrationRef, host: str
) -> str | None:
    if not row["allowed"]:
        return f"this {integration.type} has no access rule for the credential"
    return destinations.find_refusal(metadata, row["type"], host)


async def _record_use(
    tx: Tx,
    keyring: Keyring,
    tenant_id: str,
    credential_id: str,
    integration: IntegrationRef,
    *,
    is_allowed: bool,
) -> None:
    if is_allowed:
        # Locks the credential before the audit chain, as every writer does: no deadlock.
        await queries.mark_used(tx, tenant_id, credential_id)
    action: Action = "used" if is_allowed else "denied"
    actor = Actor(integration.type, integration.id, None, integration.text)
    await audit.append_entry(
        tx, keyring, tenant_id, credential_id, action, actor, success=is_allowed
    )
