"""What other areas may call."""

from app.domain.agents.vault import audit
from app.domain.agents.vault.decrypted import DecryptedCredential, IntegrationRef
from app.domain.agents.vault.destinations import CredentialUse, check_reference
from app.domain.agents.vault.oauth import TokenGrant, TokenRefresher, is_expired, request_token
from app.domain.agents.vault.queries import delete_rules, find_credential, has_rules
from app.domain.agents.vault.types import (
    ApiKeySecrets,
    BasicAuthSecrets,
    BearerTokenSecrets,
    DatabaseSecrets,
    OAuth2Secrets,
    secret_texts,
)
from app.domain.agents.vault.unseal import unseal_for
