"""What other areas may call."""

from . import audit
from .decrypted import DecryptedCredential, IntegrationRef
from .destinations import CredentialUse, check_reference
from .oauth import TokenGrant, TokenRefresher, is_expired, request_token
from .queries import delete_rules, find_credential, has_rules
from .types import (
    ApiKeySecrets,
    BasicAuthSecrets,
    BearerTokenSecrets,
    DatabaseSecrets,
    OAuth2Secrets,
    secret_texts,
)
from .unseal import unseal_for
