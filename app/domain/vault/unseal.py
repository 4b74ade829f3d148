"""Opening a credential for something that was granted the use of it: the one way to its secrets
besides revealing them.
"""

import msgspec

from app.domain.vault import audit, queries
from app.domain.vault.audit import Actor
from app.domain.vault.decrypted import CredentialUser, DecryptedCredential, decrypt_secrets
from app.domain.vault.errors import AccessDenied
from app.kit.crypto import CannotOpen
from app.services import Services


async def unseal_for(
    services: Services, tenant_id: str, credential_id: str, user: CredentialUser
) -> DecryptedCredential:
    """Rule checked, use written down and committed, and only then opened."""
    actor = Actor(user.type, user.id, None, user.text)
    async with services.db.tx(tenant_id) as tx:
        row = await queries.for_use(tx, tenant_id, credential_id, user.type, user.id)
        allowed = row is not None and row["allowed"]
        if allowed:
            # The credential before the trail, as all who change it do: nobody waits in a circle.
            await queries.touch(tx, tenant_id, credential_id)
        if row is not None:
            await audit.append(
                tx,
                services.keyring,
                tenant_id,
                credential_id,
                "used" if allowed else "denied",
                actor,
                success=allowed,
            )
    if row is None:
        raise AccessDenied("the credential does not exist any more")
    if not allowed:
        raise AccessDenied(f"this {user.type} has no access rule for the credential")
    try:
        secrets = decrypt_secrets(
            services.keyring, tenant_id, row["id"], row["type"], row["secrets"]
        )
    except CannotOpen as error:
        raise AccessDenied("the credential does not open; was a root key lost?") from error
    return DecryptedCredential(
        tenant_id,
        row["id"],
        row["name"],
        row["type"],
        secrets,
        row["secrets_version"],
        row["token_expires_at"],
        msgspec.json.decode(row["metadata"]),
    )
