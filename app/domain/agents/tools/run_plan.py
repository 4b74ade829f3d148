"""Resolves how a tool runs for an agent: the merged config, and the auth that applies."""

from typing import Any

import msgspec

from app.crypto.keyring import CannotOpen, Keyring, SealContext
from app.domain.agents.vault.api import IntegrationRef
from app.kit.errors import ApiError
from app.net.egress import Guard
from db.fast import Row
from db.models import AgentTool, Tool

from . import auth_configs, configs, stored_auth
from .auth_configs import AuthConfig
from .configs import Config
from .errors import AuthDestinationMismatch


class RunPlan(msgspec.Struct, frozen=True):
    """`integration` is the tool or agent that an access rule of the credential must name."""

    tool_id: str
    tool_type: str
    config: Config
    auth_type: str
    sealed_auth: bytes | None
    seal_context: SealContext
    integration: IntegrationRef

    def open_auth_config(self, keyring: Keyring, guard: Guard) -> AuthConfig | None:
        """Raises AuthDestinationMismatch when it was stored for another destination."""
        if self.sealed_auth is None:
            return None
        content = keyring.open(self.sealed_auth, self.seal_context)
        destination = stored_auth.auth_destination(self.tool_type, self.config, guard)
        return auth_configs.decode(self.auth_type, content, destination)


def override_seal_context(tenant_id: str, attachment_id: str) -> SealContext:
    return SealContext.of(AgentTool.override_auth, tenant_id, attachment_id)


def build_plan(row: Row, agent_id: str | None, guard: Guard) -> RunPlan:
    """Builds the plan from a row of `queries.load_tool` or `queries.start_execution`. Raises
    Invalid when the agent's override does not fit the tool's config.
    """
    tool_id, tool_type, tenant_id = row["tool_id"], row["tool_type"], row["tenant_id"]
    tool_config = msgspec.json.decode(row["config"])
    plan = RunPlan(
        tool_id,
        tool_type,
        stored_auth.parse_config(tool_type, tool_config),
        row["auth_type"],
        row["auth_config"],
        stored_auth.seal_context(tenant_id, tool_id),
        IntegrationRef("tool", tool_id),
    )
    if agent_id is None or row["attachment_id"] is None or row["config_override"] is None:
        return plan
    override: dict[str, Any] = msgspec.json.decode(row["config_override"])
    config = apply_override(tool_type, tool_config, override, guard)
    if row["override_auth"] is not None:
        return msgspec.structs.replace(
            plan,
            config=config,
            sealed_auth=row["override_auth"],
            seal_context=override_seal_context(tenant_id, row["attachment_id"]),
            integration=IntegrationRef("agent", agent_id),
        )
    if configs.destination(config, guard) != configs.destination(plan.config, guard):
        # The tool's auth is for its own host only.
        return msgspec.structs.replace(plan, config=config, auth_type="none", sealed_auth=None)
    return msgspec.structs.replace(plan, config=config)


def apply_override(
    tool_type: str, tool_config: dict[str, Any], override: dict[str, Any], guard: Guard
) -> Config:
    """Returns the merged config. It may use plain HTTP: the caller decides about its auth."""
    merged = configs.select_known_keys(tool_type, configs.merge(tool_config, override))
    return configs.validate(tool_type, merged, guard, "config_override", allow_http=True)


def open_override(
    attachment: AgentTool, tool: Tool, keyring: Keyring, guard: Guard
) -> tuple[Config, AuthConfig] | None:
    """Returns the merged config of an attachment and the auth of its override; None when it has
    none, or none that can be used.
    """
    if attachment.override_auth is None:
        return None
    override = attachment.config_override or {}
    try:
        config = apply_override(tool.tool_type, tool.config, override, guard)
        context = override_seal_context(attachment.tenant_id, attachment.id)
        content = keyring.open(attachment.override_auth, context)
        destination = stored_auth.auth_destination(tool.tool_type, config, guard)
        return config, auth_configs.decode(tool.auth_type, content, destination)
    except (ApiError, CannotOpen, AuthDestinationMismatch):
        return None


def timeout_seconds(config: Config) -> float:
    return config.timeout_ms / 1000
