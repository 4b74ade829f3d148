"""The auth of a tool as it is stored: sealed, together with the only server that may receive it."""

from typing import Any

import msgspec

from app.context import RequestContext
from app.crypto.keyring import CannotOpen, Keyring, SealContext
from app.net.egress import Guard
from db.models import Tool

from . import auth_configs, configs
from .auth_configs import AuthConfig, CredentialAuth
from .configs import TOOL_TYPES, Config
from .errors import AuthDestinationMismatch
from .schemas import AuthSource


def stored_destination(
    context: RequestContext, tool_type: str, config: dict[str, Any]
) -> tuple[Any, ...]:
    return auth_destination(tool_type, parse_config(tool_type, config), context.guard)


def auth_destination(tool_type: str, config: Config, guard: Guard) -> tuple[Any, ...]:
    """Returns the type of a tool and its server: auth is stored for the two together."""
    return (tool_type, *configs.destination(config, guard))


def parse_config(tool_type: str, stored: dict[str, Any]) -> Config:
    config: Config = msgspec.convert(stored, TOOL_TYPES[tool_type].config)
    return config


def find_credential_id(context: RequestContext, tool: Tool) -> str | None:
    """Returns the credential that the tool sends to its host now."""
    if tool.auth_config is None:
        return None
    destination = stored_destination(context, tool.tool_type, tool.config)
    try:
        content = context.keyring.open(tool.auth_config, seal_context(tool.tenant_id, tool.id))
        auth = auth_configs.decode(tool.auth_type, content, destination)
    except (CannotOpen, AuthDestinationMismatch):
        return None
    return auth.credential_id if isinstance(auth, CredentialAuth) else None


def read_source(
    keyring: Keyring, tenant_id: str, tool_id: str, sealed: bytes | None
) -> tuple[AuthSource, str | None]:
    """Returns where the secrets of a tool come from, and the credential that has them."""
    if sealed is None:
        return "none", None
    try:
        content = keyring.open(sealed, seal_context(tenant_id, tool_id))
    except CannotOpen:
        return "own", None
    credential_id = auth_configs.read_credential_id(content)
    return ("own", None) if credential_id is None else ("credential", credential_id)


def seal_context(tenant_id: str, tool_id: str) -> SealContext:
    return SealContext.of(Tool.auth_config, tenant_id, tool_id)


def seal_auth(
    context: RequestContext,
    tenant_id: str,
    tool_id: str,
    auth: AuthConfig | None,
    type_and_config: tuple[str, dict[str, Any]],
) -> bytes | None:
    """Encrypts the auth together with the tool's destination, so that a later change of the config
    cannot send it elsewhere.
    """
    if auth is None:
        return None
    content = auth_configs.encode(auth, stored_destination(context, *type_and_config))
    return context.keyring.seal(content, seal_context(tenant_id, tool_id))
