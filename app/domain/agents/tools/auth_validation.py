"""Validates an auth_config for the host that receives it."""

from typing import Any

from app.context import RequestContext
from app.domain.agents.vault import api as vault
from app.domain.agents.vault.api import CredentialUse
from app.kit.errors import Invalid

from . import auth_configs
from .auth_configs import AUTH_TYPES, AuthConfig, CredentialAuth


async def validate_auth(
    context: RequestContext, use: CredentialUse, auth_type: str, value: dict[str, Any], name: str
) -> AuthConfig:
    """Returns the auth_config as a struct. Raises Invalid for the field `name`, also when its
    credential does not exist, has an unfit type or may not be sent to the host, and Forbidden when
    the caller may not decide that it is sent there.
    """
    auth = auth_configs.validate(auth_type, value, context.guard, name)
    if isinstance(auth, CredentialAuth):
        await _check_credential(context, use, auth_type, auth.credential_id, name)
    return auth


async def _check_credential(
    context: RequestContext, use: CredentialUse, auth_type: str, credential_id: str, name: str
) -> None:
    field = f"{name}.credential_id"
    credential = await vault.find_credential(context.tx, use.tenant_id, credential_id)
    if credential is None:
        raise Invalid.field(field, "this credential does not exist")
    if credential.type not in AUTH_TYPES[auth_type].credential_types:
        message = f"is of type {credential.type}, which does not fit the auth_type {auth_type}"
        raise Invalid.field(field, message)
    await vault.check_reference(context, credential, use, field)
